//! How long a target port is waited for, over a cable, on a simulated clock.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{env, fs};

use ::io::memory::Pool;
use ::io::ring::{FileRing, SendBatch, SocketId, SocketRing, Token};
use fc::target::{FcpLimits, FcpTarget};

use super::*;

/// A ring that carries calls out at once, and waits for nothing.
#[derive(Default)]
struct CallingRing {
    called: Option<io::Result<u64>>,
}

impl FileRing for CallingRing {
    fn file(&mut self, _: Token, op: FileOp) {
        if let FileOp::Apart { call, .. } = op {
            self.called = Some(call());
        }
    }
}

impl SocketRing for CallingRing {
    fn adopt(&mut self, _: OwnedFd) -> io::Result<SocketId> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn receive(&mut self, _: SocketId, _: Token) {}

    fn send(&mut self, _: SocketId, _: Token, _: Box<SendBatch>) {}

    fn close(&mut self, _: SocketId) {}
}

/// A target port at one end of a cable, and a link that seeks it from the other end.
struct SeekRig {
    target: NPort<FcpTarget<BlockLease>>,
    link: FcoeLink,
    ring: CallingRing,
    now: Now,
}

const STEP: Duration = Duration::from_millis(10);

impl SeekRig {
    /// The target has been there for long enough to have an address.
    fn new() -> Self {
        Self::with_partners(Partners::Any)
    }

    /// The target lets these ports log in.
    fn with_partners(partners: Partners) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let name = format!("lunar-seek-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        let place = Place::Cable(path);
        let mut site = Attachment::open(&place, &PortOwner::Server).unwrap();
        site.config.partners = partners;
        let port_name = site.config.wwpn;
        let machine = FcpTarget::new(FcpLimits::default());
        let core = CoreContext::new(Pool::new(1 << 20).unwrap());
        let target = TargetPortAddress {
            place,
            port_name,
            terms: PortTerms::default(),
            ports: IdlePorts::default(),
        };
        Self {
            target: NPort::begin(site, machine, Now::ZERO),
            link: FcoeLink::new(&core, target, "the target".into()),
            ring: CallingRing::default(),
            now: Now::ZERO,
        }
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut FcoeLink, &mut Context<'_>) -> T) -> T {
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut Vec::new(),
            now: self.now,
            call: &mut None,
        };
        act(&mut self.link, &mut cx)
    }

    /// What comes of a search for the target: what it ends with, and how long it took. The target
    /// speaks, and hears, from these times on.
    fn search(&mut self, speaks: Duration, hears: Duration) -> (LinkEvent, Duration) {
        self.act(FcoeLink::connect);
        let opened = self.ring.called.take().unwrap();
        let event = HandleEvent::File {
            result: opened,
            buffer: None,
        };
        self.act(|link, cx| link.event(cx, 1, event)).unwrap();
        loop {
            assert!(self.now < 2 * SEEK_LINK, "neither found nor given up");
            self.act(|link, cx| {
                link.expire(cx.now);
                link.push(cx);
            });
            if let Some(event) = self.act(FcoeLink::poll) {
                return (event, self.now);
            }
            if self.now >= speaks {
                self.target_turns(self.now >= hears);
            }
            // The ring tells of frames as soon as there are some.
            for (generation, _) in self.link.watched.clone() {
                self.act(|link, cx| link.event(cx, generation, HandleEvent::Ready))
                    .unwrap();
            }
            self.now += STEP;
        }
    }

    fn target_turns(&mut self, hears: bool) {
        if hears {
            self.target.receive(self.now);
        }
        self.target.expire(self.now);
        while self.target.poll().is_some() {}
        self.target.transmit();
    }
}

const NEVER: Duration = Duration::MAX;

#[test]
fn a_port_that_hears_is_found_at_once() {
    let (event, took) = SeekRig::new().search(Duration::ZERO, Duration::ZERO);
    assert!(matches!(event, LinkEvent::LoggedIn { .. }), "{event:?}");
    assert!(took < SEEK, "{took:?}");
}

/// As Linux is deaf for 8 s after a FLOGI that was not answered.
#[test]
fn a_port_that_is_heard_but_answers_late_is_found() {
    let late = Duration::from_secs(9);
    let (event, took) = SeekRig::new().search(Duration::ZERO, late);
    assert!(matches!(event, LinkEvent::LoggedIn { .. }), "{event:?}");
    assert!((late..SEEK_LINK).contains(&took), "{took:?}");
}

#[test]
fn a_port_that_is_heard_but_never_answers_is_given_up() {
    assert_eq!(given_up(Duration::ZERO), (SEEK_LINK, SEEK_LINK));
}

#[test]
fn a_port_that_is_not_heard_is_given_up_soon() {
    assert_eq!(given_up(NEVER), (SEEK, SEEK));
    // One that comes later than that has come too late.
    assert_eq!(given_up(Duration::from_secs(6)), (SEEK, SEEK));
}

#[test]
fn a_port_that_refuses_is_told_with_its_reason() {
    let mut rig = SeekRig::with_partners(Partners::Only([Wwn(7)].into()));
    let (event, _) = rig.search(Duration::ZERO, Duration::ZERO);
    let LinkEvent::Ended { end, .. } = event else {
        panic!("{event:?}");
    };
    let told = end.to_string();
    let [who, what, why] = told.splitn(3, ": ").collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    assert!(who.starts_with("target 20:00:"), "{told}");
    assert!(who.contains(" on fcoe://cable:"), "{told}");
    assert_eq!(what, "it rejects the login (PLOGI)");
    let reason = "unable to perform, invalid N_Port name (LS_RJT 09h/0dh); let the target admit ";
    assert!(why.starts_with(reason), "{told}");
}

/// In a fabric its own login would stay there.
#[test]
fn a_port_that_has_not_found_its_target_logs_out_too() {
    let mut rig = SeekRig::new();
    rig.search(NEVER, NEVER);
    assert!(rig.act(|link, cx| link.log_out(cx.now)));
    assert!(!rig.link.is_down());
    rig.act(|link, cx| link.expire(cx.now));
    let end = LinkEnd::Fcoe(FcoeLinkEnd::Lost(remote::NexusEnd::ByUs));
    match rig.act(FcoeLink::poll) {
        Some(LinkEvent::Ended { end: told, .. }) => assert_eq!(told, end),
        other => panic!("{other:?}"),
    }
    assert!(rig.link.is_down());
}

/// How long a target was waited for that hears nothing, and how long that was said to be.
fn given_up(speaks: Duration) -> (Duration, Duration) {
    let (event, took) = SeekRig::new().search(speaks, NEVER);
    let LinkEvent::Ended {
        end: LinkEnd::Fcoe(FcoeLinkEnd::NotFound { waited, .. }),
        ..
    } = event
    else {
        panic!("{event:?}");
    };
    (took, waited)
}
