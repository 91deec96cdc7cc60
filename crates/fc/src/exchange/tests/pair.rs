//! An initiator and a target with a disk, and two directions of wire that lose what they are told
//! to.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use scsi::medium::{HeapLease, Lease, Now};
use scsi::task::{Attribute, Completed, Function, FunctionResult, SenseBytes, Tag};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use super::trace;
use crate::exchange::frames;
use crate::frame_sink::HeapFrames;
use crate::initiator::{self, ClientCommand, Data, FcpInitiator};
use crate::remote::{Fcp, FcpPeer, PeerAddress, RemoteId};
use crate::target::{self, FcpLimits, FcpTarget};
use crate::wire::ethernet::{self, Mac};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::frame::FrameHeader;
use crate::wire::names::{FcId, Wwn};

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    IsLost,
    ComesTwice,
    /// Behind so many frames of its direction that leave later.
    ComesLate(usize),
}

/// Which frame does what: its number in its direction, whether it goes to the target.
pub(crate) type Plan = Box<dyn FnMut(usize, bool) -> Fate>;

/// One direction of the wire.
#[derive(Default)]
struct Direction {
    frames: VecDeque<Vec<u8>>,
    /// With how many frames are to pass first.
    late: Vec<(usize, Vec<u8>)>,
    count: usize,
}

impl Direction {
    fn put(&mut self, plan: &mut Plan, to_target: bool, frame: Vec<u8>) {
        let fate = plan(self.count, to_target);
        self.count += 1;
        for (passing, _) in &mut self.late {
            *passing = passing.saturating_sub(1);
        }
        match fate {
            Fate::Arrives => self.frames.push_back(frame),
            Fate::IsLost => {}
            Fate::ComesTwice => self.frames.extend([frame.clone(), frame]),
            Fate::ComesLate(behind) => self.late.push((behind, frame)),
        }
        let (due, later) = self.late.drain(..).partition(|(passing, _)| *passing == 0);
        self.late = later;
        let due: Vec<_> = due;
        self.frames.extend(due.into_iter().map(|(_, frame)| frame));
    }

    /// Nothing more leaves: what is late comes now.
    fn flush(&mut self) {
        let late = self.late.drain(..);
        self.frames.extend(late.map(|(_, frame)| frame));
    }
}

/// A write that the disk is about.
struct Writing {
    start: usize,
    len: usize,
    come: usize,
}

/// Both ends, the wire, and a disk with blocks of 512 bytes.
pub(crate) struct Pair {
    pub(crate) now: Now,
    pub(crate) initiator: FcpInitiator<HeapLease>,
    pub(crate) target: FcpTarget<HeapLease>,
    pub(crate) disk: Vec<u8>,
    /// So often did a command begin at the disk.
    pub(crate) executed: usize,
    pub(crate) told: Vec<initiator::FcpInitiatorEvent<HeapLease>>,
    /// Commands that the disk does not answer by itself.
    pub(crate) is_stopped: bool,
    /// Every frame that left, as `trace::line` words it.
    pub(crate) trace: Vec<String>,
    /// Commands that were stopped.
    pub(crate) stopped: Vec<Tag>,
    /// What the disk is to abort.
    is_aborting: Vec<Tag>,
    /// Task management that came to the disk.
    pub(crate) managed: Vec<Function>,
    /// Those that have not ended, by their names.
    functions: Vec<u32>,
    /// How they end.
    pub(crate) functions_end: FunctionResult,
    writing: HashMap<Tag, Writing>,
    to_target: Direction,
    to_initiator: Direction,
    plan: Plan,
}

/// Either end to the other.
pub(crate) const REMOTE: RemoteId = RemoteId(3);

pub(crate) const LUN: Lun = Lun([0; 8]);

/// What both ends agree upon when both are of our making.
pub(crate) fn all() -> Fcp {
    Fcp {
        retry: true,
        confirm: true,
        rec: true,
        retry_identifier: true,
    }
}

/// What is left where the other end knows nothing of recovery.
pub(crate) fn plain() -> Fcp {
    Fcp {
        rec: true,
        ..Fcp::default()
    }
}

pub(crate) fn peer(own: u32, other: u32, fcp: Fcp) -> FcpPeer {
    let address = |fc_id| PeerAddress {
        fc_id: FcId(fc_id),
        mac: Mac::of_port(Mac::VN2VN_FC_MAP, FcId(fc_id)),
    };
    FcpPeer {
        address: address(other),
        own: address(own),
        tag: None,
        wwpn: Wwn(0x2000_0000_0000_0000 | u64::from(other)),
        payload_max: 2112,
        fcp,
        e_d_tov: Duration::from_secs(2),
        r_a_tov: Duration::from_secs(10),
    }
}

impl Pair {
    /// A login that agreed upon `fcp`, and a wire that does as planned.
    pub(crate) fn new(fcp: Fcp, plan: impl FnMut(usize, bool) -> Fate + 'static) -> Self {
        let mut pair = Self {
            now: Duration::from_secs(1000),
            initiator: FcpInitiator::new(initiator::FcpInitiatorConfig::default()),
            target: FcpTarget::new(FcpLimits::default()),
            disk: (0..1 << 20)
                .map(|at: u32| ((at >> 9) ^ (at * 31)) as u8)
                .collect(),
            executed: 0,
            told: Vec::new(),
            is_stopped: false,
            trace: Vec::new(),
            stopped: Vec::new(),
            is_aborting: Vec::new(),
            functions_end: FunctionResult::Complete,
            managed: Vec::new(),
            functions: Vec::new(),
            writing: HashMap::new(),
            to_target: Direction::default(),
            to_initiator: Direction::default(),
            plan: Box::new(plan),
        };
        pair.initiator.peer_up(REMOTE, peer(1, 2, fcp));
        pair.target.peer_up(REMOTE, peer(2, 1, fcp));
        pair
    }

    pub(crate) fn read(&mut self, id: u64, block: u32, blocks: u16) {
        let into = HeapLease::from_bytes(vec![0xee; usize::from(blocks) * 512]);
        self.execute(id, 0x28, block, blocks, Data::In(into));
    }

    pub(crate) fn write(&mut self, id: u64, block: u32, data: Vec<u8>) {
        let blocks = (data.len() / 512) as u16;
        let from = HeapLease::from_bytes(data);
        self.execute(id, 0x2a, block, blocks, Data::Out(from));
    }

    pub(crate) fn execute(
        &mut self,
        id: u64,
        opcode: u8,
        block: u32,
        blocks: u16,
        data: Data<HeapLease>,
    ) {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        cdb[2..6].copy_from_slice(&block.to_be_bytes());
        cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
        let command = ClientCommand {
            id,
            lun: LUN,
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        let taken = self.initiator.execute(self.now, REMOTE, command);
        assert!(taken.is_ok());
    }

    /// A command without data.
    pub(crate) fn test(&mut self, id: u64) {
        self.execute(id, 0, 0, 0, Data::None);
    }

    /// Lets frames pass until none is left.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut out = HeapFrames::default();
            let mut any = self.initiator.transmit(&mut out);
            for frame in out.frames.drain(..) {
                self.trace.push(trace::line(true, &decode(&frame)));
                self.to_target.put(&mut self.plan, true, frame);
            }
            any |= self.target.transmit(&mut out);
            for frame in out.frames.drain(..) {
                self.trace.push(trace::line(false, &decode(&frame)));
                self.to_initiator.put(&mut self.plan, false, frame);
            }
            if !any {
                self.to_target.flush();
                self.to_initiator.flush();
            }
            while let Some(bytes) = self.to_target.frames.pop_front() {
                any = true;
                self.target.receive(self.now, REMOTE, &decode(&bytes));
                self.serve();
            }
            while let Some(bytes) = self.to_initiator.frames.pop_front() {
                any = true;
                self.initiator.receive(self.now, REMOTE, &decode(&bytes));
                self.told
                    .extend(std::iter::from_fn(|| self.initiator.poll()));
            }
            if !any {
                return;
            }
        }
    }

    /// Lets time pass to the next deadline of either end; whether there is one.
    pub(crate) fn wait(&mut self) -> bool {
        let deadlines = [self.initiator.next_deadline(), self.target.next_deadline()];
        let Some(next) = deadlines.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        self.initiator.expire(self.now);
        self.target.expire(self.now);
        self.told
            .extend(std::iter::from_fn(|| self.initiator.poll()));
        self.serve();
        true
    }

    /// Lets frames and time pass until so many things have been told.
    pub(crate) fn until_told(&mut self, count: usize) {
        self.settle();
        let mut waits = 0;
        while self.told.len() < count && self.wait() {
            self.settle();
            waits += 1;
            assert!(waits < 1000, "it never ends");
        }
        assert!(self.told.len() >= count, "nothing is left to wait for");
    }

    /// Lets time pass, as far as `until`, with all that becomes due on the way.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let deadlines = [self.initiator.next_deadline(), self.target.next_deadline()];
            match deadlines.into_iter().flatten().min() {
                Some(next) if next <= end => self.wait(),
                _ => break,
            };
            self.settle();
        }
        self.now = end;
    }

    /// The disk.
    pub(crate) fn serve(&mut self) {
        while let Some(event) = self.target.poll() {
            match event {
                target::FcpTargetEvent::Execute { command, .. } => self.begin(&command),
                target::FcpTargetEvent::DataOut {
                    tag, offset, data, ..
                } => self.store(tag, offset, &data),
                target::FcpTargetEvent::Manage { id, function, .. } => self.manage(id, function),
            }
        }
    }

    fn begin(&mut self, command: &scsi::task::Command) {
        self.executed += 1;
        let [opcode, _, a, b, c, d, _, e, f, ..] = command.cdb;
        let start = u32::from_be_bytes([a, b, c, d]) as usize * 512;
        let len = usize::from(u16::from_be_bytes([e, f])) * 512;
        if self.is_stopped {
            self.stopped.push(command.tag);
            return;
        }
        let is_beyond = start + len > self.disk.len();
        if is_beyond || opcode == 0x2a && len > command.expected_out as usize {
            return self.end(command.tag, Status::CheckCondition, 0, 0);
        }
        match opcode {
            0x28 => {
                for offset in (0..len).step_by(PIECE) {
                    let piece = start + offset..start + len.min(offset + PIECE);
                    let data = HeapLease::from_bytes(self.disk[piece].to_vec());
                    self.target
                        .send_data_in(REMOTE, command.tag, offset as u32, data);
                }
                self.end(command.tag, Status::Good, len, 0);
            }
            0x2a => {
                let writing = Writing {
                    start,
                    len,
                    come: 0,
                };
                self.writing.insert(command.tag, writing);
                for offset in (0..len).step_by(PIECE) {
                    let into = HeapLease::from_bytes(vec![0; PIECE.min(len - offset)]);
                    self.target
                        .receive_data_out(REMOTE, command.tag, offset as u32, into);
                }
            }
            _ => self.end(command.tag, Status::Good, 0, 0),
        }
    }

    fn store(&mut self, tag: Tag, offset: u32, data: &HeapLease) {
        let Some(writing) = self.writing.get_mut(&tag) else {
            return;
        };
        let at = writing.start + offset as usize;
        data.copy_out(0, &mut self.disk[at..at + data.len()]);
        writing.come += data.len();
        let len = writing.len;
        if writing.come == len {
            self.writing.remove(&tag);
            self.end(tag, Status::Good, 0, len);
        }
    }

    fn manage(&mut self, id: u32, function: Function) {
        if let Function::AbortTask(tag) = function {
            self.writing.remove(&tag);
            self.is_aborting.push(tag);
            if !self.is_stopped {
                self.finish_aborts();
            }
            return;
        }
        self.managed.push(function);
        self.functions.push(id);
        if !self.is_stopped {
            self.finish_functions();
        }
    }

    /// The disk has carried out what it was asked for.
    pub(crate) fn finish_functions(&mut self) {
        for id in self.functions.drain(..) {
            self.target.managed(REMOTE, id, self.functions_end);
        }
    }

    /// Whether the disk is to abort something.
    pub(crate) fn is_aborting(&self) -> bool {
        !self.is_aborting.is_empty()
    }

    /// The disk has ended what was to be aborted.
    pub(crate) fn finish_aborts(&mut self) {
        for tag in self.is_aborting.drain(..) {
            self.target.aborted(REMOTE, tag);
        }
    }

    /// A frame that the initiator did not send comes to the target all the same.
    pub(crate) fn reach_target(&mut self, header: FrameHeader, payload: &[u8]) {
        self.target
            .receive(self.now, REMOTE, &single(header, payload));
        self.serve();
    }

    /// A frame that the target did not send comes to the initiator all the same.
    pub(crate) fn reach_initiator(&mut self, header: FrameHeader, payload: &[u8]) {
        self.initiator
            .receive(self.now, REMOTE, &single(header, payload));
        self.told
            .extend(std::iter::from_fn(|| self.initiator.poll()));
    }

    /// What left since this was asked last.
    pub(crate) fn traced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    pub(crate) fn end(&mut self, tag: Tag, status: Status, read: usize, written: usize) {
        let completed = Completed {
            status,
            sense: SenseBytes::EMPTY,
            qualifier: 0,
            length_in: read as u64,
            length_out: written as u64,
        };
        self.target.complete(REMOTE, tag, &completed);
    }

    /// Frames that left for the target, and for the initiator.
    pub(crate) fn frames(&self) -> [usize; 2] {
        [self.to_target.count, self.to_initiator.count]
    }
}

/// What the disk moves at once.
const PIECE: usize = 8 << 10;

fn single(header: FrameHeader, payload: &[u8]) -> ReceivedFrame<'_> {
    let (sof, eof) = frames::SINGLE;
    ReceivedFrame {
        sof,
        eof,
        header,
        payload,
    }
}

pub(crate) fn decode(bytes: &[u8]) -> ReceivedFrame<'_> {
    let (_, payload) = ethernet::EthernetHeader::parse(bytes).unwrap();
    fcoe::decode(payload).unwrap()
}

/// The bytes of a lease.
pub(crate) fn bytes(lease: &HeapLease) -> Vec<u8> {
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}
