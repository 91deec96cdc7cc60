//! Flow control: an initiator that does not take what it is sent stops its own reads, and one that
//! does not send what it owes its own writes.
//!
//! What a nexus has asked the medium for and what waits to be sent to it is in memory that others
//! need too. While that is [`DATA_IN_LIMIT`] or more, no read is started for the nexus: reads, and
//! the next segments of long ones, wait in line. They take turns by the segment, so that a short
//! read does not wait for all of the long ones that came before it.
//!
//! The transport tells how many bytes it holds, not how many have left: a number that is replaced
//! each time cannot drift when data of commands that were aborted is dropped.
//!
//! A command with Data-Out has memory set aside for as long as it lasts, and waits in another line
//! when its nexus has too much of that. The two do not wait for each other: a host that owes data
//! gets on whatever it reads.
//!
//! No other nexus waits for such an initiator. A read that has not begun is at no block. A long one
//! that rests between segments holds up only locks of blocks on both sides of where it stands: who
//! changes those together must not be seen half by it.

use std::collections::VecDeque;

use super::tasks::{DeviceTask, TaskPhase, TaskSlot};
use super::transfer::WINDOW;
use super::{DeviceServer, TaskJob};
use crate::commands::Handler;
use crate::medium::{Lease, SEGMENT_BYTES};
use crate::nexus::NexusId;

/// Bytes of Data-In of one nexus that may be on their way before its reads wait; one more segment
/// may come on top. Twice what a transport sends by one operation (1 MiB), so that the next is
/// ready when that has left; and 32 commands of 64 KiB, which is deep enough for a fast medium.
pub(super) const DATA_IN_LIMIT: usize = 2 << 20;

/// Bytes of memory for Data-Out of one nexus before more of its writes wait: an eighth of the
/// buffers that a core has for files and devices, so that it takes many initiators that send
/// nothing to leave the others without; and 32 writes as long as one gets memory for.
pub(super) const DATA_OUT_LIMIT: usize = 32 << 20;

/// What one command gets memory for at once, whatever its length: a window of segments.
const MOST_OF_ONE: usize = WINDOW as usize * SEGMENT_BYTES as usize;

/// The data of a nexus that is on its way.
#[derive(Debug, Default)]
pub(super) struct DataFlow {
    /// Bytes that the medium was asked for and that were not given to the transport.
    reading: usize,
    /// Bytes that the transport holds.
    queued: usize,
    /// Tasks that wait for their turn to read.
    waiting: VecDeque<TaskSlot>,
    /// Bytes of memory that are set aside for Data-Out.
    writing: usize,
    /// Tasks that wait for some.
    writers: VecDeque<TaskSlot>,
}

/// How a task stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadTurn {
    /// It does not.
    None,
    /// It waits for its turn to read.
    Waiting,
    /// Its turn has come.
    Come,
}

impl DataFlow {
    const fn is_full(&self) -> bool {
        self.reading + self.queued >= DATA_IN_LIMIT
    }

    fn can_go_on(&self) -> bool {
        !self.waiting.is_empty() && !self.is_full()
    }

    /// Whether there is memory for this many bytes of Data-Out.
    const fn has_room(&self, bytes: usize) -> bool {
        self.writing + bytes <= DATA_OUT_LIMIT
    }

    /// This many bytes are given to the transport, of which this many had been read for it.
    pub(super) fn sent(&mut self, bytes: usize, read: usize) {
        self.reading -= read;
        self.queued += bytes;
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let reads = self.reading == 0 && self.waiting.is_empty();
        reads && self.writing == 0 && self.writers.is_empty()
    }
}

impl<L: Lease> DeviceServer<L> {
    /// Takes note of what the transport holds; returns whether reads can go on by that.
    pub(super) fn set_queued(&mut self, id: NexusId, bytes: usize) -> bool {
        let Some(nexus) = self.nexus_mut(id) else {
            return false;
        };
        nexus.flow.queued = bytes;
        let can_go_on = nexus.flow.can_go_on();
        if can_go_on {
            self.drained_nexuses.push(id);
        }
        can_go_on
    }

    /// Lets a task read this many bytes for the initiator, or has it wait for its turn.
    pub(super) fn may_read(&mut self, slot: TaskSlot, bytes: usize) -> bool {
        let task = &mut self.tasks[slot as usize];
        let nexus = self.nexuses.get_mut(task.nexus.0 as usize);
        let Some(nexus) = nexus.and_then(Option::as_mut) else {
            return true;
        };
        let flow = &mut nexus.flow;
        let waits = match task.turn {
            ReadTurn::Waiting => return false,
            ReadTurn::Come => flow.is_full(),
            ReadTurn::None => flow.is_full() || !flow.waiting.is_empty(),
        };
        if waits {
            task.turn = ReadTurn::Waiting;
            flow.waiting.push_back(slot);
            return false;
        }
        task.turn = ReadTurn::None;
        task.reading += bytes;
        flow.reading += bytes;
        true
    }

    /// Sets memory aside for the Data-Out of a task that begins, or has it wait for its turn.
    pub(super) fn may_take_data(&mut self, slot: TaskSlot) -> bool {
        let task = &mut self.tasks[slot as usize];
        let bytes = task.most_data_out();
        if bytes == 0 || task.writing > 0 {
            return true;
        }
        let nexus = self.nexuses.get_mut(task.nexus.0 as usize);
        let Some(nexus) = nexus.and_then(Option::as_mut) else {
            return true;
        };
        let flow = &mut nexus.flow;
        let waits = match task.turn {
            ReadTurn::Waiting => return false,
            ReadTurn::Come => !flow.has_room(bytes),
            ReadTurn::None => !flow.has_room(bytes) || !flow.writers.is_empty(),
        };
        if waits {
            task.turn = ReadTurn::Waiting;
            flow.writers.push_back(slot);
            return false;
        }
        task.turn = ReadTurn::None;
        task.writing = bytes;
        flow.writing += bytes;
        true
    }

    /// Lets reads and writes of a nexus go on, as far as there is room.
    pub(super) fn give_turns(&mut self, nexus: NexusId) {
        while let Some(slot) = self.next_turn(nexus) {
            self.read_on(slot);
        }
        while let Some(slot) = self.next_writer(nexus) {
            self.begin(slot);
        }
    }

    /// Begins a read whose turn has come, or reads on in a long one, unless others have locked what
    /// it has not read.
    pub(super) fn read_on(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let unit = task.unit;
        let TaskJob::Stream(stream) = &task.job else {
            return self.begin(slot);
        };
        let known = &self.units[unit.index()];
        if task.operations == 0 && known.has_locked(|lock| stream.has_before_it(lock)) {
            return self.block(slot, unit);
        }
        self.tasks[slot as usize].phase = TaskPhase::Running;
        self.fill_window(slot);
    }

    /// A long read may have come to rest: locks need not wait for it any more.
    pub(super) fn look_at_rest(&mut self, slot: TaskSlot) {
        if self.tasks[slot as usize].is_at_rest() {
            self.look_at_pending(slot);
        }
    }

    /// A task has left some blocks: locks of those need not wait for it any more.
    pub(super) fn look_at_pending(&mut self, slot: TaskSlot) {
        let unit = self.unit(self.tasks[slot as usize].unit);
        self.progressed |= unit.is_some_and(|unit| !unit.pending.is_empty());
    }

    fn next_turn(&mut self, nexus: NexusId) -> Option<TaskSlot> {
        loop {
            let flow = &mut self.nexus_mut(nexus)?.flow;
            if flow.is_full() {
                return None;
            }
            let slot = flow.waiting.pop_front()?;
            let task = &mut self.tasks[slot as usize];
            if task.ending.is_none() {
                task.turn = ReadTurn::Come;
                return Some(slot);
            }
            task.turn = ReadTurn::None;
        }
    }

    fn next_writer(&mut self, nexus: NexusId) -> Option<TaskSlot> {
        let slot = *self.nexus(nexus)?.flow.writers.front()?;
        let bytes = self.tasks[slot as usize].most_data_out();
        let flow = &mut self.nexus_mut(nexus)?.flow;
        if !flow.has_room(bytes) {
            return None;
        }
        flow.writers.pop_front();
        self.tasks[slot as usize].turn = ReadTurn::Come;
        Some(slot)
    }

    /// A task that goes on in the background has its Data-Out. When it ends, its nexus may be lost,
    /// and another one in its place.
    pub(super) fn give_memory_back(&mut self, slot: TaskSlot) {
        let task = &mut self.tasks[slot as usize];
        let (nexus, bytes) = (task.nexus, std::mem::take(&mut task.writing));
        if let Some(state) = self.nexus_mut(nexus) {
            state.flow.writing -= bytes;
            self.drained_nexuses.push(nexus);
        }
    }

    /// A task that ends gives back what it had not read, its memory, and its place in line.
    pub(super) fn leave_flow(&mut self, slot: TaskSlot, task: &DeviceTask<L>) {
        let waits = task.turn == ReadTurn::Waiting;
        if task.reading == 0 && task.writing == 0 && !waits {
            return;
        }
        let Some(nexus) = self.nexus_mut(task.nexus) else {
            return;
        };
        let flow = &mut nexus.flow;
        flow.reading -= task.reading;
        flow.writing -= task.writing;
        for line in [&mut flow.waiting, &mut flow.writers] {
            // Those that are aborted together go from the front, where removing is cheap.
            if waits && let Some(at) = line.iter().position(|waiting| *waiting == slot) {
                line.remove(at);
            }
        }
        if flow.can_go_on() || !flow.writers.is_empty() {
            self.drained_nexuses.push(task.nexus);
        }
    }
}

impl<L> DeviceTask<L> {
    /// The most memory that it needs at once for Data-Out that goes to a medium. Parameter lists
    /// are short, and not held up.
    fn most_data_out(&self) -> usize {
        match self.row.handler {
            Handler::Medium(_) => MOST_OF_ONE.min(self.expected_out as usize),
            _ => 0,
        }
    }
}
