//! Turns of a core, some of whose sessions have much to say: all of them are served alike.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ::io::ring::{AnyRing, Kind, Ring};
use engine::core::{Core, accept_token};
use engine::mail::Counter;
use iscsi::target::Limits;
use scsi::wire::lun::Lun;

use super::{BLOCK, TARGET, serving};
use crate::cdb;
use crate::initiator::{Data, Initiator, Reply, Settings};

const SESSIONS: usize = 12;
/// Commands that each session has under way.
const DEPTH: usize = 32;

#[test]
fn a_turn_answers_few_at_once() {
    let Some(mut rig) = Rig::new(Kind::Uring) else {
        return;
    };
    rig.hosts.iter_mut().for_each(Host::ask);
    rig.wait();
    let mut answered = Vec::new();
    for _ in 0..3 {
        rig.turn();
        rig.wait();
        answered.extend(rig.answers().iter().map(|answers| answers / DEPTH));
    }
    let turns: Vec<_> = answered.chunks(SESSIONS).collect();
    let four_more = [[1; 4], [0; 4], [0; 4]].concat();
    assert_eq!(turns[0], four_more);
    assert_eq!(turns[1], [&four_more[8..], &four_more[..8]].concat());
    assert_eq!(turns[2], [&four_more[4..], &four_more[..4]].concat());
}

#[test]
fn who_asks_again_at_once_is_heard_after_the_others() {
    for kind in [Kind::Uring, Kind::Epoll] {
        let Some(mut rig) = Rig::new(kind) else {
            continue;
        };
        rig.hosts.iter_mut().for_each(Host::ask);
        let mut sums = [0; SESSIONS];
        for _ in 0..50 {
            rig.wait();
            let answers = rig.answers();
            for ((host, answers), sum) in rig.hosts.iter_mut().zip(answers).zip(&mut sums) {
                *sum += answers;
                (0..answers).for_each(|_| host.command());
                host.say();
            }
            let (least, most) = (sums.iter().min(), sums.iter().max());
            assert!(
                most <= least.map(|least| least + DEPTH).as_ref(),
                "{sums:?}"
            );
            rig.turn();
        }
        assert!(sums.iter().all(|sum| *sum > DEPTH), "{sums:?}");
    }
}

/// A core, and hosts that take turns with it.
struct Rig {
    core: Core<AnyRing, Counter>,
    hosts: Vec<Host>,
}

struct Host {
    initiator: Initiator,
    socket: TcpStream,
}

impl Rig {
    /// All logged in, with windows that have grown; `None` where the kernel does not have the ring.
    fn new(kind: Kind) -> Option<Self> {
        let (mut ring, _) = AnyRing::open(kind)
            .inspect_err(|cause| eprintln!("SKIPPED: {kind:?}: {cause}"))
            .ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        ring.listen(listener.into(), accept_token(0)).unwrap();
        let mut core = serving(ring, 1 << 20, Limits::default()).unwrap();
        core.begin(Duration::ZERO);
        let hosts = (0..SESSIONS).map(|number| Host::new(address, number as u32));
        let mut rig = Self {
            hosts: hosts.collect(),
            core,
        };
        rig.until(|host| host.initiator.poll() == Some(Reply::LoggedIn));
        for depth in 1..=DEPTH {
            for host in &mut rig.hosts {
                (0..depth).for_each(|_| host.command());
            }
            rig.until(|host| {
                while host.initiator.poll().is_some() {}
                host.initiator.outstanding() == 0
            });
        }
        Some(rig)
    }

    /// Turns, until this has been so for every host.
    fn until(&mut self, mut so: impl FnMut(&mut Host) -> bool) {
        let mut left: Vec<_> = (0..SESSIONS).collect();
        for _ in 0..1000 {
            self.hosts.iter_mut().for_each(Host::say);
            self.wait();
            self.turn();
            self.hosts.iter_mut().for_each(Host::hear);
            left.retain(|at| !so(&mut self.hosts[*at]));
            if left.is_empty() {
                return;
            }
        }
        panic!("nothing comes any more for {left:?}");
    }

    /// What there is to send leaves, and what has come is found.
    fn wait(&mut self) {
        let little = Some(Duration::from_millis(1));
        self.core.ring().wait(little).unwrap();
    }

    fn turn(&mut self) {
        self.core.turn(Duration::ZERO);
    }

    /// How many answers have come to each host.
    fn answers(&mut self) -> Vec<usize> {
        let answers = self.hosts.iter_mut().map(|host| {
            host.hear();
            std::iter::from_fn(|| host.initiator.poll()).count()
        });
        answers.collect()
    }
}

impl Host {
    fn new(address: SocketAddr, number: u32) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let initiator = Initiator::new(Settings::new(number, TARGET));
        Self { initiator, socket }
    }

    fn command(&mut self) {
        let data = Data::In(BLOCK);
        self.initiator
            .command(0, Lun::from_index(0), &cdb::read(0, 1), data);
    }

    /// Says as much as it may.
    fn ask(&mut self) {
        (0..DEPTH).for_each(|_| self.command());
        self.say();
    }

    fn say(&mut self) {
        let output = std::mem::take(self.initiator.output());
        self.socket.write_all(&output).unwrap();
    }

    fn hear(&mut self) {
        let mut input = [0; 65_536];
        match self.socket.read(&mut input) {
            Ok(0) => panic!("the core has closed the connection"),
            Ok(len) => self.initiator.receive(&input[..len]).unwrap(),
            Err(cause) => assert_eq!(cause.kind(), io::ErrorKind::WouldBlock, "{cause}"),
        }
    }
}
