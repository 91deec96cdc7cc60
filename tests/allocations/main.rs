//! The I/O path does not use the heap once it is warm: that of a session by itself, and that of a
//! whole core.
#![forbid(unsafe_code)]
#![cfg(test)]

mod composed;
mod device_pair;
mod iser_pair;
mod own_client;
mod own_initiator;
mod ports;
mod switch;
mod whole_core;
mod whole_switch;

use std::sync::Arc;
use std::time::Duration;

use io::counting::{CountingAllocator, allocations};
use iscsi::datamover::Datamover;
use iscsi::parameters::{Operational, Parameters, SessionProof, SessionPurpose};
use iscsi::pdu_sink::{Digests, PduSink};
use iscsi::session::{Session, SessionEvent};
use iscsi::target::{Endpoints, InitiatorPort, NodeAccess, TargetLimits};
use iscsi::wire::bhs::{Itt, Ttt};
use iscsi::wire::data::{DataOut, R2t};
use iscsi::wire::framer::{Framer, PduPiece};
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::{CmdSn, DataSn, StatSn};
use scsi::medium::Lease;
use scsi::task::{Completed, SenseBytes};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Memory of which only the length matters.
#[derive(Clone, Debug)]
struct Nowhere(usize);

impl Lease for Nowhere {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes.len())
    }

    fn len(&self) -> usize {
        self.0
    }

    fn slice(&self, _offset: usize, len: usize) -> Self {
        Self(len)
    }

    fn copy_in(&mut self, _offset: usize, _bytes: &[u8]) {}

    fn copy_out(&self, _offset: usize, bytes: &mut [u8]) {
        bytes.fill(0);
    }

    fn difference(&self, _other: &Self) -> Option<usize> {
        None
    }

    fn or_with(&mut self, _other: &Self) {}
}

/// A batch that keeps its memory.
#[derive(Default)]
struct Batch(Vec<u8>);

impl PduSink<Nowhere> for Batch {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: Nowhere) {
        self.0.resize(self.0.len() + data.len(), 0);
    }

    fn copied(&mut self, data: &Nowhere) -> &[u8] {
        let start = self.0.len();
        self.0.resize(start + data.len(), 0);
        &self.0[start..]
    }

    fn is_full(&self) -> bool {
        false
    }
}

const LENGTH: u32 = 4096;

struct Rig {
    session: Session<Nowhere>,
    batch: Batch,
    /// What the initiator sends.
    stream: Batch,
    cmd_sn: u32,
}

impl Rig {
    fn new(initial_r2t: bool, digests: bool) -> Self {
        let name = "iqn.2026-11.org.lunar:test";
        let config = tests::target_config(name, NodeAccess::default(), LIMITS);
        let address = "192.0.2.1:3260".parse().unwrap();
        let keys = Operational {
            initial_r2t,
            immediate_data: !initial_r2t,
            header_digest: digests,
            data_digest: digests,
            ..Operational::default()
        };
        let parameters = Parameters {
            initiator: InitiatorPort {
                name: "iqn.2026-11.org.lunar:initiator".into(),
                isid: [0; 6],
            },
            initiator_alias: None,
            user: None,
            proof: SessionProof::None,
            purpose: SessionPurpose::Normal(config.nodes[0].clone()),
            portal_group: 1,
            tsih: 1,
            cid: 0,
            endpoints: Endpoints {
                local: address,
                peer: address,
            },
            stat_sn: 0,
            exp_cmd_sn: 0,
            keys,
        };
        Self {
            session: Session::new(parameters, Arc::new(config), Duration::ZERO),
            batch: Batch::default(),
            stream: Batch::default(),
            cmd_sn: 0,
        }
    }

    fn command(&mut self, itt: u32, write: bool) -> ScsiCommand {
        let cmd_sn = CmdSn(self.cmd_sn);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        ScsiCommand {
            immediate: false,
            last: true,
            read: !write,
            write,
            attribute: 1,
            priority: 0,
            lun: Lun([0; 8]),
            itt: Itt(itt),
            expected: LENGTH,
            cmd_sn,
            exp_stat_sn: StatSn(0),
            cdb: [0; 16],
        }
    }

    /// Gives what is in `stream`; the device server does the rest.
    fn run(&mut self) {
        let mut rest = &self.stream.0[..];
        while !rest.is_empty() {
            let used = self.session.receive(Duration::ZERO, rest);
            rest = &rest[used..];
            while let Some(event) = self.session.poll() {
                serve(&mut self.session, event, &Nowhere(LENGTH as usize));
            }
        }
        self.stream.0.clear();
        self.batch.0.clear();
        while self.session.transmit(&mut self.batch) {}
    }

    /// Eight commands, with this much immediate data each.
    fn commands(&mut self, write: bool, data: &[u8]) {
        for itt in 0..8 {
            let bhs = self.command(itt, write).encode();
            self.digests().put_bytes(&mut self.stream, bhs, data);
        }
        self.run();
    }

    fn reads(&mut self) {
        self.commands(false, &[]);
    }

    fn immediate_writes(&mut self) {
        self.commands(true, &[7; LENGTH as usize]);
    }

    fn solicited_writes(&mut self) {
        self.commands(true, &[]);
        self.answer();
        self.run();
    }

    /// Answers the R2Ts of the batch.
    fn answer(&mut self) {
        let mut framer = Framer::new(1 << 20);
        let digests = self.digests();
        framer.set_digests(digests.header, false);
        let mut rest = &self.batch.0[..];
        while let Ok(Some(PduPiece::Header(bhs))) = framer.next(&mut rest) {
            let r2t = R2t::decode(&bhs);
            let data = DataOut {
                last: true,
                lun: r2t.lun,
                itt: r2t.itt,
                ttt: Ttt(r2t.ttt.0),
                exp_stat_sn: StatSn(0),
                data_sn: DataSn(0),
                offset: r2t.offset,
            };
            let bytes = &[7; LENGTH as usize];
            digests.put_bytes(&mut self.stream, data.encode(), bytes);
        }
    }

    fn digests(&self) -> Digests {
        let keys = self.session.parameters().keys;
        Digests {
            header: keys.header_digest,
            data: keys.data_digest,
        }
    }
}

/// A device server that answers at once, with data in `memory`.
fn serve<L: Lease + std::fmt::Debug, D: Datamover<L>>(
    session: &mut Session<L, D>,
    event: SessionEvent<L>,
    memory: &L,
) {
    let done = |length_in, length_out| Completed {
        status: Status::Good,
        sense: SenseBytes::EMPTY,
        qualifier: 0,
        length_in,
        length_out,
    };
    match event {
        SessionEvent::Execute(command) if command.expected_out > 0 => {
            session.receive_data_out(command.tag, 0, memory.clone());
        }
        SessionEvent::Execute(command) => {
            session.send_data_in(command.tag, 0, memory.clone());
            session.complete(command.tag, &done(u64::from(LENGTH), 0));
        }
        SessionEvent::DataOut { tag, .. } => session.complete(tag, &done(0, u64::from(LENGTH))),
        other => panic!("{other:?}"),
    }
}

const LIMITS: TargetLimits = TargetLimits {
    login_timeout: Duration::from_secs(15),
    nop_interval: Duration::from_secs(30),
    nop_timeout: Duration::from_secs(60),
    logins: 1,
    sessions: 1,
    data_segment: 262_144,
    first_burst: 65_536,
    max_burst: 262_144,
    outstanding_r2t: 1,
    window: 128,
    held_bytes: 64 * 65_536,
};

/// How often `turn` uses the heap in 100,000 commands, eight of them a turn, after some turns that
/// warm it up.
fn cost(mut turn: impl FnMut()) -> usize {
    for _ in 0..20 {
        turn();
    }
    let before = allocations();
    for _ in 0..100_000 / 8 {
        turn();
    }
    allocations() - before
}

/// With digests and without.
#[track_caller]
fn costs_nothing(initial_r2t: bool, turn: fn(&mut Rig)) {
    for digests in [false, true] {
        let mut rig = Rig::new(initial_r2t, digests);
        assert_eq!(cost(|| turn(&mut rig)), 0, "digests: {digests}");
    }
}

#[test]
fn reads_do_not_use_the_heap() {
    costs_nothing(false, Rig::reads);
}

#[test]
fn writes_with_immediate_data_do_not_use_the_heap() {
    costs_nothing(false, Rig::immediate_writes);
}

#[test]
fn writes_that_ask_for_their_data_do_not_use_the_heap() {
    costs_nothing(true, Rig::solicited_writes);
}
