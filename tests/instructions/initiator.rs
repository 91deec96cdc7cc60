//! The initiator's side: from the command to what goes, and from what came to its end.

use std::sync::Arc;
use std::time::Duration;

use ::io::ring::SendBatch;
use block::lease::BlockLease;
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::{ClientCommand, Data, Initiator, InitiatorEvent};
use iscsi::pdu_sink::PduSink;
use scsi::medium::Lease as _;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;
use tests::cdb;
use tests::one_core::{BLOCK, TARGET};

use super::target::{Kind, Target};
use super::{COMMANDS, Counts};

const NOW: Duration = Duration::ZERO;

/// Commands at once.
const DEPTH: u64 = 32;

/// An initiator whose target costs nothing.
struct Rig {
    initiator: Initiator<BlockLease>,
    target: Target,
    batch: SendBatch,
    counts: Counts,
}

impl Rig {
    /// Logged in.
    fn new(mut target: Target, counts: Counts) -> Self {
        target.connect(Counts::No);
        let host = "iqn.2026-11.org.lunar:initiator";
        let config = Arc::new(InitiatorConfig::normal(host, [0x80, 0, 0, 0, 0, 1], TARGET));
        let initiator = counts.run(|| Initiator::new(config, NOW, [7; 37]));
        let mut rig = Self {
            initiator: initiator.expect("a sound configuration"),
            target,
            batch: SendBatch::default(),
            counts,
        };
        while rig.initiator.outcome().is_none() {
            rig.exchange();
        }
        rig
    }

    /// Each side says what it has to say.
    fn exchange(&mut self) {
        let (counts, batch) = (self.counts, &mut self.batch);
        counts.run(|| self.initiator.transmit(&mut Out(batch)));
        let answer = self.target.answer(&batch.to_vec(), Counts::No);
        counts.run(|| {
            batch.clear();
            let mut rest = &answer[..];
            while !rest.is_empty() {
                rest = &rest[self.initiator.receive(NOW, rest)..];
                while let Some(event) = self.initiator.poll() {
                    let good = matches!(
                        event,
                        InitiatorEvent::Done(_)
                            | InitiatorEvent::LoggedIn
                            | InitiatorEvent::Ended(_)
                    );
                    assert!(good, "{event:?}");
                }
            }
        });
    }

    /// As many commands at once as there may be.
    fn batch(&mut self, kind: Kind) {
        let commands: Vec<_> = (0..DEPTH).map(|id| command(kind, id)).collect();
        self.counts.run(|| {
            for command in commands {
                self.initiator.execute(NOW, command).expect("room");
            }
        });
        while !self.initiator.is_idle() {
            self.exchange();
        }
    }
}

fn command(kind: Kind, id: u64) -> ClientCommand<BlockLease> {
    let bytes = |bytes: u32| BlockLease::from_bytes(vec![7; bytes as usize]);
    let (cdb, data) = match kind {
        Kind::Read(len) => (cdb::read(id, len / BLOCK), Data::In(bytes(len))),
        Kind::Write(len) => (cdb::write(id, len / BLOCK, false), Data::Out(bytes(len))),
        _ => ([0; 16], Data::None),
    };
    ClientCommand {
        id,
        lun: Lun::from_index(0),
        cdb,
        attribute: Attribute::Simple,
        data,
        deadline: None,
    }
}

/// A batch as the engine fills it.
struct Out<'a>(&'a mut SendBatch);

impl PduSink<BlockLease> for Out<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    fn lease(&mut self, data: BlockLease) {
        self.0.buffer(data.into());
    }

    fn copied(&mut self, data: &BlockLease) -> &[u8] {
        self.0.buffer_copied(data.buffer())
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

/// Commands, from their begin to their end.
pub(crate) fn commands(kind: Kind) {
    let mut rig = Rig::new(Target::new(), Counts::No);
    (0..8).for_each(|_| rig.batch(Kind::Ready));
    (0..2).for_each(|_| rig.batch(kind));
    rig.counts = Counts::Yes;
    (0..COMMANDS / DEPTH).for_each(|_| rig.batch(kind));
}

/// Sessions from the connection to the end of the login.
pub(crate) fn logins() {
    let mut target = Target::new();
    for _ in 0..COMMANDS {
        let mut rig = Rig::new(target, Counts::Yes);
        rig.counts = Counts::No;
        rig.initiator.logout(NOW).expect("a session");
        while !rig.initiator.is_idle() {
            rig.exchange();
        }
        target = rig.target;
    }
}
