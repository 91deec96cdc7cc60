//! The tasks of a session: SCSI commands from their header to the response that has left.

use std::collections::VecDeque;

use scsi::medium::Now;
use scsi::received::ReceivedBytes;
use scsi::residual::Residual;
use scsi::task::{Completed, Tag};
use scsi::wire::lun::Lun;

use super::sense::Condition;
use crate::datamover::{DataOutRange, TaskEnding, TaskSlot, WantedData};
use crate::wire::bhs::Itt;
use crate::wire::serial::CmdSn;

/// A SCSI command.
#[derive(Debug)]
pub(super) struct SessionTask<L> {
    pub(super) itt: Itt,
    pub(super) lun: Lun,
    pub(super) cmd_sn: CmdSn,
    pub(super) immediate: bool,
    /// Bytes the initiator wants to receive, and to send.
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    pub(super) stage: TaskStage,
    /// Set when the session ends the command, whatever the device server says.
    pub(super) condition: Option<Condition>,
    /// A task set function waits for the data that was asked for: no more is asked for.
    pub(super) frozen: bool,
    /// What it ended with, once it did.
    pub(super) ending: Option<TaskEnding>,
    pub(super) unsolicited: Unsolicited,
    /// What the device server gave to be filled, while unsolicited data goes there.
    pub(super) grants: VecDeque<WantedData<L>>,
    pub(super) held: HeldData,
}

/// How far a command has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskStage {
    /// Commands with lower CmdSN have to come first.
    Deferred,
    /// With the device server.
    Executing,
    /// Ended; the response waits for data that is still to come.
    Ended,
    /// The response is queued.
    Answered,
}

/// Unsolicited data: what comes with and after the command without being asked for.
#[derive(Debug, Default)]
pub(super) struct Unsolicited {
    /// More is to come: the F bit has not been seen.
    pub(super) open: bool,
    /// When the command came.
    pub(super) since: Now,
    /// The most that may come, immediate data included.
    pub(super) limit: u32,
    /// How much of it needs memory that the device server has not lent.
    pub(super) reserved: u32,
    pub(super) next_sn: u32,
    pub(super) received: ReceivedBytes,
}

impl Unsolicited {
    /// For another command, which sets the rest.
    fn begin(&mut self) {
        (self.open, self.reserved, self.next_sn) = (false, 0, 0);
        self.received.clear();
    }

    pub(super) fn range(&mut self) -> DataOutRange<'_> {
        DataOutRange {
            next_sn: &mut self.next_sn,
            start: 0,
            len: self.limit,
            received: &mut self.received,
        }
    }
}

/// Data that came before there was memory for it.
#[derive(Debug, Default)]
pub(super) struct HeldData {
    bytes: Vec<u8>,
    /// Where in the data of the command the bytes belong, one part after the other.
    parts: Vec<(u32, u32)>,
}

impl HeldData {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, offset: u32, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let len = bytes.len() as u32;
        match self.parts.last_mut() {
            Some(part) if part.0 + part.1 == offset => part.1 += len,
            _ => self.parts.push((offset, len)),
        }
    }

    /// Copies what belongs into `[offset, offset + into.len())`; returns how much that was.
    pub(super) fn copy<L: scsi::medium::Lease>(&self, offset: u32, into: &mut L) -> u32 {
        let end = offset + into.len() as u32;
        let (mut at, mut copied) = (0, 0);
        for &(start, len) in &self.parts {
            let (from, to) = (start.max(offset), (start + len).min(end));
            if from < to {
                let source = at + (from - start) as usize;
                let bytes = &self.bytes[source..source + (to - from) as usize];
                into.copy_in((from - offset) as usize, bytes);
                copied += to - from;
            }
            at += len as usize;
        }
        copied
    }

    /// Drops everything; returns how much that was.
    #[inline]
    pub(super) fn clear(&mut self) -> usize {
        let len = self.bytes.len();
        if len > 0 {
            // What was needed once is not kept, as every task of the session would keep it.
            *self = Self::default();
        }
        len
    }
}

impl<L> SessionTask<L> {
    /// A place for tasks.
    fn new() -> Self {
        Self {
            itt: Itt::NONE,
            lun: Lun([0; 8]),
            cmd_sn: CmdSn(0),
            immediate: false,
            expected_in: 0,
            expected_out: 0,
            stage: TaskStage::Deferred,
            condition: None,
            frozen: false,
            ending: None,
            unsolicited: Unsolicited::default(),
            grants: VecDeque::new(),
            held: HeldData::default(),
        }
    }

    /// Becomes another task. What was cleared when the last one was forgotten is not touched: its
    /// queues keep their memory, and to move and drop whole tasks would cost more than all else
    /// that is done for a new one.
    fn begin(&mut self, itt: Itt, lun: Lun, cmd_sn: CmdSn, immediate: bool) {
        (self.itt, self.lun, self.cmd_sn, self.immediate) = (itt, lun, cmd_sn, immediate);
        (self.expected_in, self.expected_out) = (0, 0);
        (self.stage, self.condition, self.frozen) = (TaskStage::Deferred, None, false);
        self.unsolicited.begin();
    }

    /// Whether data that comes is of any use.
    pub(super) fn wants_data(&self) -> bool {
        self.condition.is_none() && matches!(self.stage, TaskStage::Deferred | TaskStage::Executing)
    }

    /// Lets memory go that was lent to receive into. Most tasks have none left, and to clear what
    /// is empty costs as much as a PDU's header.
    pub(super) fn drop_grants(&mut self) {
        if !self.grants.is_empty() {
            self.grants.clear();
        }
    }

    /// What is told when the session itself ends the command.
    pub(super) fn condition_ending(&self, condition: Condition) -> TaskEnding {
        TaskEnding {
            status: condition.status(),
            qualifier: 0,
            residual: Residual::of(self.expected_out.max(self.lone_read()), 0),
            read_residual: self.read_residual(0),
            sense: condition.sense(),
        }
    }

    /// What is told when the device server ended the command.
    #[inline]
    pub(super) fn device_ending(&self, completed: &Completed) -> TaskEnding {
        let residual = match (self.expected_in, self.expected_out) {
            (0, 0) => Residual::of(0, completed.length_in.saturating_add(completed.length_out)),
            (read, 0) => Residual::of(read, completed.length_in),
            (_, write) => Residual::of(write, completed.length_out),
        };
        TaskEnding {
            status: completed.status,
            qualifier: completed.qualifier,
            residual,
            read_residual: self.read_residual(completed.length_in),
            sense: completed.sense.clone(),
        }
    }

    fn is_bidirectional(&self) -> bool {
        self.expected_in > 0 && self.expected_out > 0
    }

    /// The data expected of a command that only reads.
    fn lone_read(&self) -> u32 {
        if self.expected_out > 0 {
            0
        } else {
            self.expected_in
        }
    }

    fn read_residual(&self, presented: u64) -> Residual {
        if self.is_bidirectional() {
            Residual::of(self.expected_in, presented)
        } else {
            Residual::Exact
        }
    }
}

/// All tasks of a session. A task is found by its slot, which is an index, or by its Initiator Task
/// Tag, which is looked for in an array of nothing but tags: for the few hundred that a window
/// admits that is cheaper than hashing. That a new tag is not there, as every command asks, is
/// mostly seen from how many are alike.
#[derive(Debug)]
pub(super) struct SessionTasks<L> {
    itts: Vec<Itt>,
    /// How many tags have the same [`kind`].
    alike: Vec<u16>,
    slots: Vec<SessionTask<L>>,
    free: Vec<TaskSlot>,
    immediate: usize,
}

/// Commands for immediate delivery that may be in flight, beside the window.
const MAX_IMMEDIATE: usize = 16;

impl<L> SessionTasks<L> {
    pub(super) const fn new() -> Self {
        Self {
            itts: Vec::new(),
            alike: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            immediate: 0,
        }
    }

    pub(super) fn find(&self, itt: Itt) -> Option<TaskSlot> {
        if itt == Itt::NONE || *self.alike.get(kind(itt))? == 0 {
            return None;
        }
        let at = self.itts.iter().position(|known| *known == itt)?;
        Some(TaskSlot(at as u16))
    }

    pub(super) fn has_immediate_room(&self) -> bool {
        self.immediate < MAX_IMMEDIATE
    }

    /// The task in `slot`, if there is one.
    pub(super) fn entry(&mut self, slot: TaskSlot) -> Option<&mut SessionTask<L>> {
        let used = *self.itts.get(slot.index())? != Itt::NONE;
        self.slots.get_mut(slot.index()).filter(|_| used)
    }

    /// The task that the device server knows by this tag.
    #[inline]
    pub(super) fn tagged(&mut self, tag: Tag) -> Option<(TaskSlot, &mut SessionTask<L>)> {
        let slot = TaskSlot::of(tag)?;
        Some((slot, self.entry(slot)?))
    }

    /// Whether the response of the task in `slot` is queued.
    pub(super) fn is_answered(&self, slot: TaskSlot) -> bool {
        let task = self.slots.get(slot.index());
        task.is_some_and(|task| task.stage == TaskStage::Answered)
    }

    /// The slots of all tasks.
    pub(super) fn slots(&self) -> impl Iterator<Item = TaskSlot> + use<L> {
        let used: Vec<TaskSlot> = (0..self.itts.len())
            .filter(|at| self.itts[*at] != Itt::NONE)
            .map(|at| TaskSlot(at as u16))
            .collect();
        used.into_iter()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskSlot, &SessionTask<L>)> {
        let all = self.itts.iter().zip(&self.slots).enumerate();
        all.filter(|(_, (itt, _))| **itt != Itt::NONE)
            .map(|(at, (_, task))| (TaskSlot(at as u16), task))
    }

    /// A new task; `None` when there are as many as can be numbered.
    // Two kinds of sessions call it, and a call costs as much as it does.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        itt: Itt,
        lun: Lun,
        cmd_sn: CmdSn,
        immediate: bool,
    ) -> Option<TaskSlot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow()?,
        };
        self.slots[slot.index()].begin(itt, lun, cmd_sn, immediate);
        self.itts[slot.index()] = itt;
        self.alike[kind(itt)] += 1;
        self.immediate += usize::from(immediate);
        Some(slot)
    }

    fn grow(&mut self) -> Option<TaskSlot> {
        // The highest number stays unused, so that no Target Transfer Tag is the reserved one.
        let at = u16::try_from(self.itts.len()).ok()?;
        (at < u16::MAX).then(|| self.itts.push(Itt::NONE))?;
        self.slots.push(SessionTask::new());
        self.alike.resize(KINDS, 0);
        Some(TaskSlot(at))
    }

    /// Forgets a task.
    // Two kinds of sessions call it, and a call costs as much as it does.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: TaskSlot) {
        let Some(task) = self.entry(slot) else { return };
        let immediate = task.immediate;
        task.drop_grants();
        task.held.clear();
        task.ending = None;
        self.immediate -= usize::from(immediate);
        let itt = std::mem::replace(&mut self.itts[slot.index()], Itt::NONE);
        self.alike[kind(itt)] -= 1;
        self.free.push(slot);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.itts.len()
    }

    /// Gives memory back, when there are no tasks.
    pub(super) fn trim(&mut self) {
        if self.is_empty() {
            *self = Self::new();
        }
    }
}

/// Twice as many kinds as the widest window admits by default, so that most are unused.
const KINDS: usize = 512;

/// What kind of tag it is: a hash of all its bytes, as initiators count in any of them.
const fn kind(itt: Itt) -> usize {
    (itt.0.wrapping_mul(0x9e37_79b1) >> (u32::BITS - KINDS.ilog2())) as usize
}
