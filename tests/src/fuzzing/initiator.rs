//! An initiator against a target that says anything, in any pieces: logins that come to something
//! and logins that do not, then PDUs of every kind with right and wrong numbers, tags and lengths.
//!
//! Random bytes seldom get past the login, so most scripts have the target do that well, with
//! keys of their choice.

mod iser;
mod login;
mod target;
mod tcp;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iscsi::initiator::config::{
    Auth, Digest, HASHES, InitiatorChap, InitiatorConfig, InitiatorLimits, Misconfigured, Mutual,
};
use iscsi::initiator::mover::InitiatorMover;
use iscsi::initiator::{
    ClientCommand, Data, Fate, Initiator, InitiatorEvent, IscsiCause, IscsiWhy, Tmf,
};
use iscsi::test_support::bytes_of;
use iscsi::wire::control::reason;
use scsi::medium::{HeapLease, Lease};
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use self::iser::Rdma;
use self::target::{COMES, Target};
use self::tcp::Tcp;
use self::watch::Watch;
use super::script::Script;

const SECRET: &[u8] = b"a secret of twenty o";
const THEIRS: &[u8] = b"another secret, yes.";
const ISID: [u8; 6] = [0x80, 0, 0, 0, 0, 1];

/// See docs/fuzzing.md.
pub fn initiator(data: &[u8]) {
    play::<Tcp>(data);
}

/// See docs/fuzzing.md.
pub fn iser_initiator(data: &[u8]) {
    play::<Rdma>(data);
}

fn play<C: Carrier>(data: &[u8]) {
    let mut script = Script::new(data);
    let config = Arc::new(config(&mut script));
    let carrier = C::new(&mut script);
    let mut play = Play::new(config, carrier);
    if script.byte() < 224 {
        play.log_in(&mut script);
    }
    while !script.is_over() && !play.ended {
        play.act(&mut script);
    }
    play.end();
}

/// What carries the PDUs of both.
trait Carrier: Sized {
    type Mover: InitiatorMover;

    fn new(script: &mut Script<'_>) -> Self;

    fn initiator(
        config: Arc<InitiatorConfig>,
        random: [u8; 37],
    ) -> Result<Initiator<HeapLease, Self::Mover>, Misconfigured>;

    /// Whether it is known which data has come.
    fn knows(&self) -> bool;

    /// PDUs come, in pieces or in a manner that `step` tells.
    fn give(play: &mut Play<Self>, bytes: &[u8], step: usize);

    /// The initiator sends, up to a limit.
    fn transmit(play: &mut Play<Self>, limit: usize);

    /// A user has taken all events.
    fn told(play: &mut Play<Self>);

    /// After the end nothing is taken or sent.
    fn is_over(play: &mut Play<Self>);
}

/// A session between the two of them.
struct Play<C: Carrier> {
    initiator: Initiator<HeapLease, C::Mover>,
    carrier: C,
    now: Duration,
    target: Target,
    watch: Watch,
    /// Commands that have not ended, by id, with their expected length.
    commands: BTreeMap<u64, usize>,
    functions: BTreeMap<u64, ()>,
    next_id: u64,
    ended: bool,
}

impl<C: Carrier> Play<C> {
    fn new(config: Arc<InitiatorConfig>, carrier: C) -> Self {
        let random = std::array::from_fn(|at| if at < 4 { 0xff } else { at as u8 });
        let discovery = config.is_discovery();
        let initiator = C::initiator(config, random);
        Self {
            initiator: initiator.expect("the configuration can work"),
            carrier,
            now: Duration::ZERO,
            target: Target::default(),
            watch: Watch::new(u32::MAX, discovery),
            commands: BTreeMap::new(),
            functions: BTreeMap::new(),
            next_id: 0,
            ended: false,
        }
    }

    /// A login as it should be.
    fn log_in(&mut self, script: &mut Script<'_>) {
        for _ in 0..16 {
            self.transmit(0);
            if self.ended || self.initiator.outcome().is_some() {
                return;
            }
            let bytes = login::answer(&mut self.target, &self.watch, script);
            self.give(&bytes, 1 + script.below(256));
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        match script.byte() & 15 {
            0..=6 => {
                let bytes = self.target.pdu(script, &self.watch);
                let step = 1 + usize::from(script.byte()) * 16;
                self.give(&bytes, step);
            }
            7 => {
                let len = script.below(256);
                self.give(script.take(len), 1 + script.below(64));
            }
            8 | 9 => self.transmit(script.pick(&[0, 1, 512, 4096])),
            10 => {
                self.now += Duration::from_millis(script.half().into());
                self.initiator.expire(self.now);
            }
            11 if script.byte() > 240 => drop(self.initiator.logout(self.now)),
            11 => drop(self.initiator.send_targets(self.now, "All")),
            12 => self.manage(script),
            _ => self.execute(script),
        }
        self.events();
        C::told(self);
    }

    fn execute(&mut self, script: &mut Script<'_>) {
        let len = script.pick(&[0, 512, 1, 513, 3000, 4096, 20_000]);
        let data = match script.byte() & 3 {
            0 => Data::None,
            1 => Data::Out(HeapLease::from_bytes(
                (0..len).map(watch::pattern).collect(),
            )),
            _ => Data::In(HeapLease::from_bytes(vec![0; len])),
        };
        let len = if matches!(data, Data::None) { 0 } else { len };
        let id = self.next_id;
        self.next_id += 1;
        let mut cdb = [0; 16];
        cdb[8..].copy_from_slice(&id.to_be_bytes());
        let command = ClientCommand {
            id,
            lun: Lun::from_index(script.byte().into()),
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: script
                .flag()
                .then(|| self.now + Duration::from_secs(script.byte().into())),
        };
        let room = self.initiator.room();
        match self.initiator.execute(self.now, command) {
            Ok(()) => {
                assert!(room > 0);
                self.commands.insert(id, len);
            }
            Err(refused) => assert_eq!(refused.command.id, id),
        }
    }

    fn manage(&mut self, script: &mut Script<'_>) {
        let named = script.byte().into();
        let function = script.pick(&[
            Tmf::AbortTask(named),
            Tmf::AbortTaskSet,
            Tmf::ClearAca,
            Tmf::ClearTaskSet,
            Tmf::LogicalUnitReset,
            Tmf::TargetWarmReset,
            Tmf::TargetColdReset,
            Tmf::QueryTask(named),
            Tmf::QueryTaskSet,
            Tmf::NexusReset,
            Tmf::QueryAsynchronousEvent,
        ]);
        let id = self.next_id;
        self.next_id += 1;
        let lun = Lun::from_index(script.byte().into());
        if self.initiator.manage(self.now, id, lun, function).is_ok() {
            self.functions.insert(id, ());
        }
    }

    /// Takes the events; how many there were.
    fn events(&mut self) -> usize {
        let mut count = 0;
        while let Some(event) = self.initiator.poll() {
            count += 1;
            assert!(!self.ended, "{event:?} after the end");
            self.event(event);
        }
        count
    }

    fn event(&mut self, event: InitiatorEvent<HeapLease>) {
        match event {
            InitiatorEvent::LoggedIn => {
                let keys = self.initiator.outcome().expect("logged in").keys;
                super::text::within_bounds(&keys);
                self.watch.logged_in(&keys);
                self.target.logged_in(&keys);
            }
            InitiatorEvent::Done(done) => {
                if done.status == 0
                    && self.carrier.knows()
                    && let Data::In(into) = &done.data
                {
                    let bytes = bytes_of(into);
                    let has_come = |byte: &u8| *byte == COMES;
                    assert!(
                        bytes[..done.moved as usize].iter().all(has_come),
                        "bytes that have not come are good"
                    );
                }
                self.over(done.id, &done.data, None);
            }
            InitiatorEvent::Failed(failed) => {
                // What came damaged was sent, and is as if it had not been.
                let damaged = IscsiWhy::Own(IscsiCause::Rejected(reason::DATA_DIGEST));
                let fate = (failed.why != damaged).then_some(failed.fate);
                self.over(failed.id, &failed.data, fate);
            }
            InitiatorEvent::Managed { id, .. } => {
                assert!(
                    self.functions.remove(&id).is_some(),
                    "function {id} ended twice"
                );
            }
            InitiatorEvent::Ended(end) => {
                assert!(!end.to_string().is_empty());
                assert!(
                    self.commands.is_empty(),
                    "{:?} have not ended",
                    self.commands
                );
                assert!(self.functions.is_empty());
                self.ended = true;
            }
            InitiatorEvent::Targets(targets) => {
                let mut names = targets.iter().flat_map(|target| target.name.chars());
                assert!(!names.any(char::is_control), "{targets:?}");
            }
            InitiatorEvent::TargetsRefused(_) | InitiatorEvent::Notice(_) => {}
        }
    }

    /// Each command ends once, with its own lease, and is told to be unsent only if it is.
    fn over(&mut self, id: u64, data: &Data<HeapLease>, fate: Option<Fate>) {
        let len = self.commands.remove(&id);
        let len = len.unwrap_or_else(|| panic!("command {id} ended twice"));
        let came_back = match data {
            Data::None => 0,
            Data::In(lease) | Data::Out(lease) => lease.len(),
        };
        assert_eq!(came_back, len, "another lease");
        let unsent = fate == Some(Fate::NeverSent);
        assert_eq!(unsent, !self.watch.saw(id), "command {id}: {fate:?}");
    }

    fn give(&mut self, bytes: &[u8], step: usize) {
        C::give(self, bytes, step);
    }

    fn transmit(&mut self, limit: usize) {
        C::transmit(self, limit);
    }

    /// The target falls silent: everything ends by itself, or when the connection is lost.
    fn end(mut self) {
        // Some are asked to leave: that must come to something too.
        let leaves = self.next_id % 2 == 1 && self.initiator.logout(self.now).is_ok();
        for _ in 0..2000 {
            self.transmit(0);
            self.events();
            let Some(deadline) = self.initiator.next_deadline() else {
                break;
            };
            self.now = self.now.max(deadline);
            self.initiator.expire(self.now);
        }
        self.events();
        let waits = self.initiator.next_deadline().is_some();
        assert!(!waits, "it waits for ever");
        assert!(self.ended || !leaves, "it never leaves");
        self.initiator.lost();
        self.events();
        assert!(self.ended && self.initiator.poll().is_none());
        C::is_over(&mut self);
    }
}

/// Anything that can work.
fn config(script: &mut Script<'_>) -> InitiatorConfig {
    let name = "iqn.2026-11.org.test:host";
    let flags = script.byte();
    let mut config = if flags & 7 == 7 {
        InitiatorConfig::discovery(name, ISID)
    } else {
        InitiatorConfig::normal(name, ISID, "iqn.2026-11.org.lunar:a")
    };
    if flags & 8 != 0 {
        config.auth = Auth::Chap(InitiatorChap {
            user: "user".into(),
            secret: SECRET.to_vec().into(),
            mutual: (flags & 16 != 0).then(|| Mutual {
                name: Some("them".into()),
                secret: THEIRS.to_vec().into(),
            }),
            hashes: HASHES.to_vec(),
        });
    }
    let digests = [
        Digest::Accept,
        Digest::Never,
        Digest::Prefer,
        Digest::Require,
    ];
    let offer = &mut config.offer;
    offer.header_digest = script.pick(&digests);
    offer.data_digest = script.pick(&digests);
    let flags = script.byte();
    offer.keys.initial_r2t = flags & 1 != 0;
    offer.keys.immediate_data = flags & 2 == 0;
    offer.keys.pdu_in_order = flags & 4 == 0;
    offer.keys.sequence_in_order = flags & 8 == 0;
    offer.keys.own_data_segment = script.pick(&[4096, 512, 65_536]);
    offer.keys.max_burst = script.pick(&[4096, 512, 65_536]);
    offer.keys.first_burst = offer.keys.max_burst.min(script.pick(&[1024, 512, 4096]));
    offer.keys.outstanding_r2t = script.pick(&[2, 1, 8]);
    config.limits = InitiatorLimits {
        tasks: script.pick(&[8, 1, 100]),
        targets: 4096,
    };
    config
}
