//! The target's side: a core between the bytes that came and the bytes that go.

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use engine::core::{Core, accept_token};
use engine::mailbox::CoreMailbox;
use scsi::wire::lun::Lun;
use tests::cdb;
use tests::initiator::{Data, Initiator, Reply, Settings};
use tests::iser_end::IserSettings;
use tests::one_core::{BLOCK, TARGET, serving};

use super::still::Still;
use super::{COMMANDS, Counts};

/// All of it is written before anything is counted.
const DISK: u64 = 4 << 20;

/// What a command does.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Ready,
    Inquiry,
    Nop,
    /// So many bytes.
    Read(u32),
    Write(u32),
}

/// A core, and the way to it.
pub(crate) struct Target(Core<Still, CoreMailbox>);

impl Target {
    pub(crate) fn new() -> Self {
        let limits = iscsi::target::TargetLimits::default();
        Self(serving(Still::default(), DISK, limits).expect("memory"))
    }

    /// A connection comes in.
    pub(crate) fn connect(&mut self, counts: Counts) {
        let (socket, _) = UnixStream::pair().expect("a descriptor");
        self.0.ring().connect(socket.into(), accept_token(0));
        self.turn(counts);
    }

    /// What it answers to these bytes.
    pub(crate) fn answer(&mut self, bytes: &[u8], counts: Counts) -> Vec<u8> {
        self.0.ring().arrive(bytes);
        let mut answer = Vec::new();
        while self.0.ring().is_ready() {
            self.turn(counts);
            answer.append(&mut self.0.ring().sent());
        }
        answer
    }

    fn turn(&mut self, counts: Counts) {
        counts.run(|| self.0.turn(Duration::ZERO));
    }
}

/// A target whose initiator costs nothing.
struct Rig {
    target: Target,
    initiator: Initiator,
    counts: Counts,
}

impl Rig {
    fn new(target: Target, keys: &[(&'static str, &str)], counts: Counts) -> Self {
        let mut settings = Settings::new(1, TARGET);
        settings.keys = keys.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        Self::of(target, settings, counts)
    }

    fn of(target: Target, settings: Settings, counts: Counts) -> Self {
        let mut rig = Self {
            target,
            initiator: Initiator::new(settings),
            counts,
        };
        rig.target.connect(counts);
        rig.exchange();
        assert_eq!(rig.initiator.poll(), Some(Reply::LoggedIn));
        rig
    }

    /// Each side says all that it has to say.
    fn exchange(&mut self) {
        while !self.initiator.output().is_empty() {
            let bytes = std::mem::take(self.initiator.output());
            let answer = self.target.answer(&bytes, self.counts);
            self.initiator.receive(&answer).expect("sound PDUs");
        }
    }

    /// So many commands at once, from the `first` place on the disk.
    fn batch(&mut self, kind: Kind, first: u64, len: u64) {
        for number in first..first + len {
            self.command(kind, number);
        }
        self.exchange();
        for _ in 0..len {
            let reply = self.initiator.poll();
            let good = matches!(reply, Some(Reply::Done { status: 0, .. } | Reply::Nop(..)));
            assert!(good, "{reply:?}");
        }
    }

    fn command(&mut self, kind: Kind, number: u64) {
        let place = |bytes: u32| {
            let blocks = bytes / BLOCK;
            (
                number % (DISK / u64::from(bytes)) * u64::from(blocks),
                blocks,
            )
        };
        let (cdb, data) = match kind {
            Kind::Nop => {
                self.initiator.ping(&[]);
                return;
            }
            Kind::Ready => ([0; 16], Data::None),
            Kind::Inquiry => (inquiry(96), Data::In(96)),
            Kind::Read(bytes) => {
                let (lba, blocks) = place(bytes);
                (cdb::read(lba, blocks), Data::In(bytes))
            }
            Kind::Write(bytes) => {
                let (lba, blocks) = place(bytes);
                let data: Rc<[u8]> = vec![7; bytes as usize].into();
                (cdb::write(lba, blocks, false), Data::Out(data))
            }
        };
        self.initiator
            .command(number, Lun::from_index(0), &cdb, data);
    }

    /// Unit attentions are over, the disk is full, the window has grown, and whatever keeps its
    /// memory has it.
    fn warm_up(&mut self, kind: Kind) {
        for number in 0..4 {
            self.command(Kind::Ready, number);
            self.exchange();
            self.initiator.poll();
        }
        let pieces = DISK >> 16;
        (0..pieces).for_each(|piece| self.batch(Kind::Write(1 << 16), piece, 1));
        (1..=32).for_each(|len| self.batch(kind, 0, len));
    }
}

/// INQUIRY, SPC-5 §6.7.
fn inquiry(bytes: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[4]) = (0x12, bytes);
    cdb
}

/// Commands, `len` of them at a time.
pub(crate) fn commands(kind: Kind, len: u64, keys: &[(&'static str, &str)]) {
    run(Rig::new(Target::new(), keys, Counts::No), kind, len);
}

/// Commands over iSER, 32 of them at a time; what the initiator's end of that does is not counted.
pub(crate) fn commands_over_iser(kind: Kind, iser: IserSettings) {
    let settings = Settings {
        iser: Some(iser),
        ..Settings::new(1, TARGET)
    };
    run(Rig::of(Target::new(), settings, Counts::No), kind, 32);
}

fn run(mut rig: Rig, kind: Kind, len: u64) {
    rig.warm_up(kind);
    rig.counts = Counts::Yes;
    for first in (0..COMMANDS).step_by(len as usize) {
        rig.batch(kind, first, len);
    }
}

/// Sessions from the connection to the end of the login.
pub(crate) fn logins() {
    let mut target = Target::new();
    for _ in 0..COMMANDS {
        let mut rig = Rig::new(target, &[], Counts::Yes);
        rig.counts = Counts::No;
        rig.initiator.log_out();
        rig.exchange();
        target = rig.target;
    }
}
