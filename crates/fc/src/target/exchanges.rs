//! The exchanges of a target, from the command to well after its response.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Index, IndexMut};

use scsi::medium::{Lease, Now};
use scsi::received::ReceivedBytes;
use scsi::residual::Residual;
use scsi::task::{SenseBytes, Tag};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use crate::exchange::{Ids, MAX_PLACES};
use crate::remote::RemoteId;
use crate::wire::frame::{OxId, RxId};

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExchangeSlot(u16);

/// An exchange: a SCSI command or a task management function.
#[derive(Debug)]
pub(super) struct Exchange<L> {
    pub(super) remote: RemoteId,
    pub(super) ox_id: OxId,
    pub(super) rx_id: RxId,
    /// Tells the command from one before it with the same OX_ID; 0 if it has no such number.
    pub(super) retry_id: u32,
    pub(super) lun: Lun,
    /// Bytes that the initiator wants to receive, and to send.
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    pub(super) stage: ExchangeStage,
    /// When it last got on.
    pub(super) touched: Now,
    next_seq_id: u8,
    pub(super) ending: Option<ExchangeEnding>,
    /// Where its Data-In ends that has left, or been queued.
    pub(super) presented: u32,
    /// Sequences of Data-In that can be sent again, the newest of them.
    pub(super) kept: VecDeque<KeptDataIn<L>>,
    /// Until when FCP_CONF is awaited, if it stands in the line of those for which it is.
    pub(super) confirm_by: Option<Now>,
    /// What the device server gave to be filled, in the order of its data.
    pub(super) grants: VecDeque<ExchangeGrant<L>>,
    /// What is asked for by FCP_XFER_RDY and has not come whole.
    pub(super) burst: Option<Burst>,
    /// Bytes of it, once it was asked for.
    pub(super) asked: u32,
    /// When it was asked for the first time.
    pub(super) asked_since: Now,
    /// Of its Data-Out.
    pub(super) cover: ReceivedBytes,
    /// An abort by the initiator is to be answered.
    pub(super) owes_answer: bool,
    /// ABTS came: the initiator leaves its OX_ID alone for R_A_TOV too.
    pub(super) rests: bool,
}

/// How far an exchange has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeStage {
    /// A command, with the device server.
    Executing,
    /// A task management function, with the device server.
    Managing,
    /// The response is queued.
    Answered,
    /// The response has left, and FCP_CONF is awaited.
    Confirming,
    /// The response has left. It can be sent again, as long as the exchange is remembered.
    Ended,
    /// The device server is to abort it.
    Aborting,
    /// Aborted. If the initiator asked for that by ABTS, its OX_ID must not begin anything before
    /// R_A_TOV has passed.
    Aborted,
}

impl ExchangeStage {
    /// Whether the device server has it.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Executing | Self::Managing | Self::Aborting)
    }

    /// Whether nothing of it is in flight at this end.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Confirming | Self::Ended | Self::Aborted)
    }
}

/// How an exchange ended.
#[derive(Clone, Debug)]
pub(super) struct ExchangeEnding {
    pub(super) status: u8,
    pub(super) qualifier: u16,
    pub(super) residual: Residual,
    pub(super) sense: SenseBytes,
    /// RSP_CODE, of a task management function or of what is not a command.
    pub(super) code: Option<u8>,
    /// What a function found that succeeded.
    pub(super) information: [u8; 3],
}

impl ExchangeEnding {
    /// Of a command.
    pub(super) fn of(status: Status, residual: Residual) -> Self {
        Self {
            status: status as u8,
            qualifier: 0,
            residual,
            sense: SenseBytes::EMPTY,
            code: None,
            information: [0; 3],
        }
    }

    /// Of a function, or of what is not a command.
    pub(super) fn coded(code: u8) -> Self {
        Self {
            code: Some(code),
            ..Self::of(Status::Good, Residual::Exact)
        }
    }
}

/// Data-In that was sent, or is to be.
#[derive(Debug)]
pub(super) struct KeptDataIn<L> {
    pub(super) offset: u32,
    pub(super) data: L,
}

/// Memory to be filled with a part of the data of a command.
#[derive(Debug)]
pub(super) struct ExchangeGrant<L> {
    pub(super) offset: u32,
    pub(super) into: L,
}

impl<L: Lease> ExchangeGrant<L> {
    pub(super) fn end(&self) -> u32 {
        self.offset + self.into.len() as u32
    }
}

/// A range of Data-Out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl<L: Lease> Exchange<L> {
    fn new() -> Self {
        Self {
            remote: RemoteId(0),
            ox_id: OxId::UNASSIGNED,
            rx_id: RxId::UNASSIGNED,
            retry_id: 0,
            lun: Lun([0; 8]),
            expected_in: 0,
            expected_out: 0,
            stage: ExchangeStage::Ended,
            touched: Now::ZERO,
            next_seq_id: 0,
            ending: None,
            presented: 0,
            kept: VecDeque::new(),
            confirm_by: None,
            grants: VecDeque::new(),
            burst: None,
            asked: 0,
            asked_since: Now::ZERO,
            cover: ReceivedBytes::default(),
            owes_answer: false,
            rests: false,
        }
    }

    /// Its name, as the device server knows it.
    pub(super) fn tag(&self) -> Tag {
        Tag(u32::from(self.rx_id.0))
    }

    /// The SEQ_ID of the next sequence. The initiator's own count on their own.
    pub(super) const fn next_seq_id(&mut self) -> u8 {
        self.next_seq_id = self.next_seq_id.wrapping_add(1);
        self.next_seq_id
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.data.len()).sum()
    }

    /// Lets go of all memory that it was lent; what it has kept is counted, and goes before.
    pub(super) fn let_go(&mut self) {
        debug_assert!(self.kept.is_empty());
        self.grants.clear();
        self.burst = None;
    }
}

/// All exchanges of a target: those in flight, and as many that are over as it remembers.
#[derive(Debug)]
pub(super) struct Exchanges<L> {
    ids: Ids,
    by_ox_id: HashMap<u64, ExchangeSlot, BuildHasherDefault<Mixer>>,
    slots: Vec<Exchange<L>>,
    free: Vec<ExchangeSlot>,
    /// Those that have ended, the oldest first; some of them are forgotten already.
    ended: VecDeque<RxId>,
    limit: usize,
}

/// Exchanges that have ended and are remembered, so that a lost response can be sent again and a
/// command that comes twice is not carried out twice. At 10,000 a second that is 0.1 s; what is
/// asked for after that is done again by its initiator. Four times as many would not fit into the
/// caches of a core, and each command takes the place of the oldest.
const REMEMBERED: usize = 1024;

/// Exchanges that are aborted or confirming; bounded elsewhere, by their number or their bytes.
const MOST_HELD_BACK: usize = 4096;

impl<L: Lease> Exchanges<L> {
    /// Room for this many that have not ended.
    pub(super) fn new(limit: u16) -> Self {
        let limit = usize::from(limit) + REMEMBERED + MOST_HELD_BACK;
        Self {
            ids: Ids::new(RxId::UNASSIGNED.0),
            by_ox_id: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ended: VecDeque::new(),
            limit: limit.min(usize::from(MAX_PLACES)),
        }
    }

    /// The exchange with this RX_ID, if the other names fit it too.
    pub(super) fn by_rx_id(
        &self,
        remote: RemoteId,
        ox_id: OxId,
        rx_id: RxId,
    ) -> Option<ExchangeSlot> {
        let slot = ExchangeSlot(self.ids.find(rx_id.0)?);
        let task = &self[slot];
        (task.remote == remote && task.ox_id == ox_id).then_some(slot)
    }

    /// The exchange that an initiator calls so, of which it may not have learned the RX_ID.
    pub(super) fn find(&self, remote: RemoteId, ox_id: OxId, rx_id: RxId) -> Option<ExchangeSlot> {
        if rx_id != RxId::UNASSIGNED {
            return self.by_rx_id(remote, ox_id, rx_id);
        }
        self.by_ox_id(remote, ox_id)
    }

    pub(super) fn by_ox_id(&self, remote: RemoteId, ox_id: OxId) -> Option<ExchangeSlot> {
        self.by_ox_id.get(&key(remote, ox_id)).copied()
    }

    /// The exchange with this RX_ID, of any initiator.
    pub(super) fn by_name(&self, rx_id: RxId) -> Option<ExchangeSlot> {
        self.ids.find(rx_id.0).map(ExchangeSlot)
    }

    /// The exchange that the device server calls so.
    pub(super) fn by_tag(&self, remote: RemoteId, tag: Tag) -> Option<ExchangeSlot> {
        let slot = ExchangeSlot(self.ids.find(u16::try_from(tag.0).ok()?)?);
        (self[slot].remote == remote).then_some(slot)
    }

    /// A new exchange, whose OX_ID names no other; `None` when there are as many as may be.
    pub(super) fn insert(&mut self, remote: RemoteId, ox_id: OxId) -> Option<ExchangeSlot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow()?,
        };
        let Some(rx_id) = self.ids.assign(slot.0) else {
            self.free.push(slot);
            return None;
        };
        self.by_ox_id.insert(key(remote, ox_id), slot);
        let task = &mut self[slot];
        (task.remote, task.ox_id, task.rx_id) = (remote, ox_id, RxId(rx_id));
        (task.retry_id, task.next_seq_id) = (0, 0);
        (task.expected_in, task.expected_out, task.presented) = (0, 0, 0);
        (task.stage, task.ending) = (ExchangeStage::Executing, None);
        (task.owes_answer, task.rests) = (false, false);
        task.confirm_by = None;
        task.cover.clear();
        Some(slot)
    }

    fn grow(&mut self) -> Option<ExchangeSlot> {
        if self.slots.len() == self.limit {
            return None;
        }
        self.slots.push(Exchange::new());
        Some(ExchangeSlot((self.slots.len() - 1) as u16))
    }

    /// The exchange has ended: it is remembered until there are too many.
    pub(super) fn ended(&mut self, slot: ExchangeSlot) {
        self.ended.push_back(self[slot].rx_id);
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
            && let Some(place) = self.ids.find(oldest.0)
            && self[ExchangeSlot(place)].stage == ExchangeStage::Ended
        {
            self.forget(ExchangeSlot(place));
        }
    }

    /// Forgets an exchange.
    pub(super) fn forget(&mut self, slot: ExchangeSlot) {
        let task = &mut self[slot];
        task.let_go();
        task.ending = None;
        let (rx_id, key) = (task.rx_id, key(task.remote, task.ox_id));
        task.rx_id = RxId::UNASSIGNED;
        self.ids.release(rx_id.0);
        self.by_ox_id.remove(&key);
        self.free.push(slot);
    }

    /// All that are not forgotten.
    pub(super) fn slots(&self) -> Vec<ExchangeSlot> {
        let all = self.slots.iter().enumerate();
        all.filter(|(_, task)| task.rx_id != RxId::UNASSIGNED)
            .map(|(at, _)| ExchangeSlot(at as u16))
            .collect()
    }
}

impl<L> Index<ExchangeSlot> for Exchanges<L> {
    type Output = Exchange<L>;

    fn index(&self, slot: ExchangeSlot) -> &Exchange<L> {
        &self.slots[usize::from(slot.0)]
    }
}

impl<L> IndexMut<ExchangeSlot> for Exchanges<L> {
    fn index_mut(&mut self, slot: ExchangeSlot) -> &mut Exchange<L> {
        &mut self.slots[usize::from(slot.0)]
    }
}

fn key(remote: RemoteId, ox_id: OxId) -> u64 {
    u64::from(remote.0) << 16 | u64::from(ox_id.0)
}

/// Hashes one number. That a peer can choose numbers that meet costs it no more than its own
/// exchanges: there are 65,536 of them for each port.
#[derive(Clone, Copy, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
