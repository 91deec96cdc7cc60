//! READ and WRITE (SBC-4 §5.12 ff., §5.40 ff.): data goes between initiator and medium in
//! segments, a few at a time. One segment needs no state but the task itself.

use super::pieces::WRONG_DATA_LENGTH;
use super::tasks::{TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceOutput, DeviceServer, OpId, TaskJob};
use crate::limits;
use crate::medium::{Extent, Lease, MediumOp, MediumOutcome, ReadMemory, SEGMENT_BYTES};
use crate::wire::cdb::byte;

/// Segments of one command in flight at once: enough to keep a medium busy while data travels,
/// and 1 MiB of memory at most.
pub(super) const WINDOW: u32 = 4;

/// Marks the `Write` of a segment, as opposed to its `PrepareWrite`.
const STORE: u32 = 1 << 31;

/// A transfer of several segments.
#[derive(Debug)]
pub(super) struct Stream<L> {
    write: bool,
    /// Blocks in a segment; the last may have fewer.
    stride: u64,
    /// What is moved, which is less than the CDB names where the initiator expects less.
    extent: Extent,
    segments: u32,
    /// Segments that the medium was asked for.
    issued: u32,
    /// Segments given to the transport, which happens in order.
    handed: u32,
    /// Segments that are done with.
    done: u32,
    /// What the medium handed out, waiting for its turn.
    ring: [Option<L>; WINDOW as usize],
}

impl<L: Lease> DeviceServer<L> {
    pub(super) fn read(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        if forces_unit_access(&task.cdb) {
            let limit = limits::transfer(&self.state(task.unit).traits);
            if !self.is_settled(slot, limit) {
                return;
            }
        }
        self.transfer(slot, false);
    }

    /// Whether the medium has all that was written to the blocks that the CDB names. If not, what
    /// a volatile cache has is made stable first, and the command begins anew after that: what a
    /// READ with FUA or a VERIFY finds must be what a power cut would leave (SBC-4 §4.15).
    pub(super) fn is_settled(&mut self, slot: TaskSlot, limit: u32) -> bool {
        let task = &self.tasks[slot as usize];
        if !self.state(task.unit).traits.write_cache || matches!(task.job, TaskJob::Settled) {
            return true;
        }
        let Some(extent) = self.check_blocks(slot, limit) else {
            return false;
        };
        if extent.blocks == 0 {
            return true;
        }
        self.tasks[slot as usize].job = TaskJob::Settled;
        self.operate(slot, 0, MediumOp::Flush { extent });
        false
    }

    pub(super) fn transfer(&mut self, slot: TaskSlot, write: bool) {
        let traits = &self.state(self.tasks[slot as usize].unit).traits;
        let block_size = u64::from(traits.block_size);
        let limit = limits::transfer(traits);
        let Some(extent) = self.take_extent(slot, limit) else {
            return;
        };
        let task = &mut self.tasks[slot as usize];
        let length = extent.blocks * block_size;
        let blocks = if write {
            task.length_out = length;
            let expected = u64::from(task.expected_out);
            if expected < length && !expected.is_multiple_of(block_size) {
                return self.fail(slot, WRONG_DATA_LENGTH);
            }
            expected / block_size
        } else {
            task.length_in = length;
            u64::from(task.expected_in).div_ceil(block_size)
        };
        let extent = Extent::new(extent.lba, extent.blocks.min(blocks));
        let bytes = extent.blocks * block_size;
        if !write && bytes > 0 && !self.may_read(slot, bytes.min(SEGMENT_BYTES) as usize) {
            // It is at no block yet: no lock has to wait for what this initiator reads.
            self.tasks[slot as usize].phase = TaskPhase::Preparing;
            return;
        }
        match bytes {
            0 => self.finish(slot, TaskEnd::Good),
            1..=SEGMENT_BYTES if write => {
                self.tasks[slot as usize].job = TaskJob::Write;
                self.operate(slot, 0, MediumOp::PrepareWrite { extent });
            }
            1..=SEGMENT_BYTES => {
                self.tasks[slot as usize].job = TaskJob::Read;
                self.operate(slot, 0, self.read_of(slot, extent));
            }
            _ => self.stream(slot, write, extent, SEGMENT_BYTES / block_size),
        }
    }

    /// Starts a medium operation for a task.
    pub(super) fn operate(&mut self, slot: TaskSlot, piece: u32, op: MediumOp<L>) {
        let task = &mut self.tasks[slot as usize];
        task.enter_medium(self.clock);
        self.outputs.push_back(DeviceOutput::Medium {
            id: OpId::new(slot, piece),
            unit: task.unit,
            op,
        });
    }

    /// Sends the part of a lease that the initiator expects.
    pub(super) fn send(&mut self, slot: TaskSlot, offset: u32, data: L) {
        let task = &mut self.tasks[slot as usize];
        let room = task.expected_in.saturating_sub(offset) as usize;
        let data = match data.len() {
            len if len.min(room) == 0 => return,
            len if len <= room => data,
            _ => data.slice(0, room),
        };
        let read = task.reading.min(data.len());
        task.reading -= read;
        if let Some(Some(nexus)) = self.nexuses.get_mut(task.nexus.0 as usize) {
            nexus.flow.sent(data.len(), read);
        }
        self.outputs.push_back(DeviceOutput::SendDataIn {
            nexus: task.nexus,
            tag: task.tag,
            offset,
            data,
        });
    }

    /// Lets the transport fill a lease.
    pub(super) fn receive(&mut self, slot: TaskSlot, offset: u32, into: L) {
        let task = &mut self.tasks[slot as usize];
        task.lent += 1;
        self.outputs.push_back(DeviceOutput::ReceiveDataOut {
            nexus: task.nexus,
            tag: task.tag,
            offset,
            into,
        });
    }

    pub(super) fn read_done(&mut self, slot: TaskSlot, outcome: MediumOutcome<L>) {
        if let MediumOutcome::Lease(data) = outcome {
            self.send(slot, 0, data);
        }
        self.finish(slot, TaskEnd::Good);
    }

    pub(super) fn write_progressed(&mut self, slot: TaskSlot, outcome: MediumOutcome<L>) {
        match outcome {
            MediumOutcome::Lease(into) => self.receive(slot, 0, into),
            MediumOutcome::Done | MediumOutcome::Provisioning { .. } => {
                self.finish(slot, TaskEnd::Good);
            }
        }
    }

    pub(super) fn write_received(&mut self, slot: TaskSlot, data: L) {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let blocks = data.len() as u64 / u64::from(state.traits.block_size);
        let extent = Extent::new(task.extent.lba, blocks);
        let fua = forces_unit_access(&task.cdb) || state.writes_through();
        self.operate(
            slot,
            STORE,
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic: false,
            },
        );
    }

    fn stream(&mut self, slot: TaskSlot, write: bool, extent: Extent, stride: u64) {
        let stream = Stream {
            write,
            stride,
            extent,
            segments: extent.blocks.div_ceil(stride) as u32,
            issued: 0,
            handed: 0,
            done: 0,
            ring: [const { None }; WINDOW as usize],
        };
        self.tasks[slot as usize].job = TaskJob::Stream(Box::new(stream));
        self.ask_segment(slot);
        self.fill_window(slot);
    }

    /// Asks the medium for as many segments as may be in flight.
    pub(super) fn fill_window(&mut self, slot: TaskSlot) {
        let block_size = self.block_size(slot);
        while let TaskJob::Stream(stream) = &self.tasks[slot as usize].job
            && stream.issued < stream.segments.min(stream.done + WINDOW)
        {
            let bytes = stream.segment(stream.issued).blocks * block_size;
            if !stream.write && !self.may_read(slot, bytes as usize) {
                return;
            }
            self.ask_segment(slot);
        }
    }

    /// Asks the medium for the next segment.
    fn ask_segment(&mut self, slot: TaskSlot) {
        let TaskJob::Stream(stream) = &mut self.tasks[slot as usize].job else {
            return;
        };
        let segment = stream.issued;
        stream.issued += 1;
        let extent = stream.segment(segment);
        let op = if stream.write {
            MediumOp::PrepareWrite { extent }
        } else {
            self.read_of(slot, extent)
        };
        self.operate(slot, segment, op);
    }

    /// A read for an initiator: by copying where others change blocks as a whole, else from memory
    /// as its transport can take it.
    fn read_of(&self, slot: TaskSlot, extent: Extent) -> MediumOp<L> {
        let task = &self.tasks[slot as usize];
        let memory = if self.state(task.unit).shared.overlaps(extent) {
            ReadMemory::Private
        } else {
            let nexus = self.nexus(task.nexus);
            nexus.map_or(ReadMemory::Lent, |nexus| nexus.read_memory)
        };
        MediumOp::Read { extent, memory }
    }

    pub(super) fn stream_progressed(
        &mut self,
        slot: TaskSlot,
        piece: u32,
        outcome: MediumOutcome<L>,
    ) {
        let TaskJob::Stream(stream) = &mut self.tasks[slot as usize].job else {
            return;
        };
        if piece & STORE != 0 {
            stream.done += 1;
        } else if let MediumOutcome::Lease(lease) = outcome {
            stream.ring[(piece % WINDOW) as usize] = Some(lease);
        }
        self.hand_over(slot);
        self.stream_on(slot);
    }

    /// Gives the transport the segments whose turn it is: initiators may have been promised
    /// data in order.
    fn hand_over(&mut self, slot: TaskSlot) {
        let block_size = self.block_size(slot);
        while let TaskJob::Stream(stream) = &mut self.tasks[slot as usize].job
            && let Some(lease) = stream.ring[(stream.handed % WINDOW) as usize].take()
        {
            let offset = (u64::from(stream.handed) * stream.stride * block_size) as u32;
            stream.handed += 1;
            if stream.write {
                self.receive(slot, offset, lease);
            } else {
                stream.done += 1;
                self.send(slot, offset, lease);
            }
        }
    }

    fn stream_on(&mut self, slot: TaskSlot) {
        match &self.tasks[slot as usize].job {
            TaskJob::Stream(stream) if stream.done == stream.segments => {
                self.finish(slot, TaskEnd::Good);
            }
            _ => {
                self.fill_window(slot);
                self.look_at_rest(slot);
            }
        }
    }

    pub(super) fn stream_received(&mut self, slot: TaskSlot, offset: u32, data: L) {
        let block_size = self.block_size(slot);
        let task = &self.tasks[slot as usize];
        let TaskJob::Stream(stream) = &task.job else {
            return;
        };
        let segment = (u64::from(offset) / (stream.stride * block_size)) as u32;
        let extent = stream.segment(segment);
        let fua = forces_unit_access(&task.cdb) || self.state(task.unit).writes_through();
        let op = MediumOp::Write {
            extent,
            data,
            fua,
            atomic: false,
        };
        self.operate(slot, STORE | segment, op);
    }

    pub(super) fn block_size(&self, slot: TaskSlot) -> u64 {
        let unit = self.tasks[slot as usize].unit;
        u64::from(self.state(unit).traits.block_size)
    }
}

impl<L> Stream<L> {
    /// Whether an extent lies in what the medium was not asked for yet.
    pub(super) const fn has_before_it(&self, extent: Extent) -> bool {
        extent.overlaps(self.extent) && extent.lba >= self.segment(self.issued).lba
    }

    /// Whether an extent lies on both sides of where the next segment begins.
    pub(super) const fn is_cut_by(&self, extent: Extent) -> bool {
        let next = self.segment(self.issued).lba;
        extent.lba < next && next < extent.end()
    }

    /// The blocks of a segment.
    const fn segment(&self, segment: u32) -> Extent {
        let first = segment as u64 * self.stride;
        let rest = self.extent.blocks.saturating_sub(first);
        let blocks = if rest < self.stride {
            rest
        } else {
            self.stride
        };
        Extent::new(self.extent.lba + first, blocks)
    }
}

/// FUA. The six-byte commands have none: the bit belongs to their LBA.
pub(super) fn forces_unit_access(cdb: &[u8]) -> bool {
    byte(cdb, 0) >= 0x20 && byte(cdb, 1) & 0x08 != 0
}
