//! EXTENDED COPY(LID1): the copy manager reads from one unit and writes to another, as the nexus
//! itself could (SPC-4 §6.4). Whatever keeps the nexus from reading or writing there keeps the
//! copy from it, before it begins and while it runs.

mod list;
mod results;

use self::list::{CopyList, Segment};

pub(super) use self::results::CopyRecord;
use self::results::{CopyState, RECORDS};
use super::begin::WRITE_PROTECTED;
use super::tasks::{DeviceTask, TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceOutput, DeviceServer, OpId, TaskJob};
use crate::commands::{CommandRow, rows_of};
use crate::medium::{
    Extent, Lease, MediumError, MediumOp, MediumOutcome, ReadMemory, SEGMENT_BYTES,
};
use crate::nexus::NexusId;
use crate::reserve;
use crate::task::CommandFailure;
use crate::unit::UnitId;
use crate::wire::asc;
use crate::wire::cdb::{byte, opcode};
use crate::wire::sense::{Sense, SenseKey};

/// A copy on its way.
#[derive(Debug)]
pub(super) struct CopyJob {
    id: Option<u8>,
    segments: Vec<Segment>,
    /// Which segment.
    at: usize,
    /// Bytes of it that are done.
    done: u64,
    /// Bytes of all segments that are done.
    bytes: u64,
}

impl CopyJob {
    /// The piece that is being copied. Pieces go from the first block to the last, or the other way
    /// where what is to be read later would else be overwritten.
    fn piece(&self, size: impl Fn(UnitId) -> u64) -> Option<Segment> {
        let segment = self.segments.get(self.at)?;
        let backwards = segment.overlaps() && segment.from.1.lba < segment.to.1.lba;
        let cut = |(unit, extent): (UnitId, Extent)| {
            let done = self.done / size(unit);
            let blocks = (extent.blocks - done).min(SEGMENT_BYTES / size(unit));
            let first = if backwards {
                extent.blocks - done - blocks
            } else {
                done
            };
            (unit, Extent::new(extent.lba + first, blocks))
        };
        Some(Segment {
            from: cut(segment.from),
            to: cut(segment.to),
        })
    }

    /// Whether it reads from or writes to a unit.
    pub(super) fn concerns(&self, unit: UnitId) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.from.0 == unit || segment.to.0 == unit)
    }

    /// Whether the segment at hand has blocks of this extent.
    pub(super) fn touches(&self, unit: UnitId, extent: Extent) -> bool {
        self.segments.get(self.at).is_some_and(|segment| {
            let sides = [segment.from, segment.to];
            sides
                .iter()
                .any(|side| side.0 == unit && side.1.overlaps(extent))
        })
    }

    /// The units at hand: from which, and to which.
    pub(super) fn sides(&self) -> Option<(UnitId, UnitId)> {
        let segment = self.segments.get(self.at)?;
        Some((segment.from.0, segment.to.0))
    }

    fn record(&self, state: CopyState) -> Option<CopyRecord> {
        Some(CopyRecord {
            id: self.id?,
            state,
            segments: self.at as u16,
            bytes: self.bytes,
        })
    }
}

impl<L: Lease> DeviceServer<L> {
    /// EXTENDED COPY, its parameter list received.
    pub(super) fn extended_copy(&mut self, slot: TaskSlot, list: &[u8]) {
        if list.is_empty() {
            return self.finish(slot, TaskEnd::Good);
        }
        let task = &self.tasks[slot as usize];
        let Some(nexus) = self.nexus(task.nexus) else {
            return;
        };
        let parsed = CopyList::parse(list, &nexus.nexus, |unit| self.state(unit));
        let ending = match parsed {
            Err(sense) => TaskEnd::Failed(CommandFailure::Check(sense)),
            Ok(copy) if self.is_copying(task.nexus, copy.id) => {
                TaskEnd::Failed(CommandFailure::Check(Sense::new(
                    SenseKey::IllegalRequest,
                    asc::OPERATION_IN_PROGRESS,
                )))
            }
            Ok(copy) => {
                self.tasks[slot as usize].job = TaskJob::Copy(Box::new(CopyJob {
                    id: copy.id,
                    segments: copy.segments,
                    at: 0,
                    done: 0,
                    bytes: 0,
                }));
                return self.copy_on(slot);
            }
        };
        self.finish(slot, ending);
    }

    fn copying(&self, nexus: NexusId, id: u8) -> Option<&CopyJob> {
        self.tasks.iter().find_map(|(_, task)| match &task.job {
            TaskJob::Copy(copy) if task.nexus == nexus && copy.id == Some(id) => Some(&**copy),
            _ => None,
        })
    }

    fn is_copying(&self, nexus: NexusId, id: Option<u8>) -> bool {
        id.is_some_and(|id| self.copying(nexus, id).is_some())
    }

    /// Begins the next piece, if nothing is in the way.
    pub(super) fn copy_on(&mut self, slot: TaskSlot) {
        let size = |unit| u64::from(self.state(unit).traits.block_size);
        let TaskJob::Copy(copy) = &self.tasks[slot as usize].job else {
            return;
        };
        let Some(piece) = copy.piece(size) else {
            return self.finish(slot, TaskEnd::Good);
        };
        if piece.from.1.blocks == 0 {
            return self.next_segment(slot);
        }
        if let Err(failure) = self.check_copy(slot, &piece) {
            return self.fail(slot, failure);
        }
        for (unit, extent) in [piece.from, piece.to] {
            if self.is_locked(unit, extent) {
                return self.block(slot, unit);
            }
        }
        self.tasks[slot as usize].phase = TaskPhase::Running;
        let (unit, extent) = piece.from;
        // Memory of the volume itself would change while it is copied.
        let memory = if piece.overlaps() {
            ReadMemory::Private
        } else {
            ReadMemory::Lent
        };
        self.operate_on(slot, unit, MediumOp::Read { extent, memory });
    }

    fn next_segment(&mut self, slot: TaskSlot) {
        if let TaskJob::Copy(copy) = &mut self.tasks[slot as usize].job {
            copy.at += 1;
            copy.done = 0;
        }
        self.copy_on(slot);
    }

    fn operate_on(&mut self, slot: TaskSlot, unit: UnitId, op: MediumOp<L>) {
        self.tasks[slot as usize].enter_medium(self.clock);
        let id = OpId::new(slot, 0);
        self.outputs
            .push_back(DeviceOutput::Medium { id, unit, op });
    }

    /// What would be told to the nexus if it read and wrote itself.
    fn check_copy(&self, slot: TaskSlot, piece: &Segment) -> Result<(), CommandFailure> {
        let nexus = self.tasks[slot as usize].nexus;
        let sides = [
            (piece.from.0, opcode::READ_16),
            (piece.to.0, opcode::WRITE_16),
        ];
        for (unit, opcode) in sides {
            let state = self.state(unit);
            state.ready().map_err(|_| NOT_REACHABLE)?;
            if let (Some(row), Some(nexus)) = (row(opcode), self.nexus(nexus)) {
                reserve::check(state, &nexus.nexus.identity, row, &[opcode])?;
            }
        }
        if self
            .nexus(nexus)
            .is_some_and(|nexus| nexus.only_reads(piece.to.0))
        {
            return Err(WRITE_PROTECTED);
        }
        self.state(piece.to.0).writable()
    }

    pub(super) fn copy_progressed(&mut self, slot: TaskSlot, outcome: MediumOutcome<L>) {
        let size = |unit| u64::from(self.state(unit).traits.block_size);
        let TaskJob::Copy(copy) = &self.tasks[slot as usize].job else {
            return;
        };
        let Some(piece) = copy.piece(size) else {
            return;
        };
        let bytes = piece.from.1.blocks * size(piece.from.0);
        if let MediumOutcome::Lease(data) = outcome {
            let (unit, extent) = piece.to;
            let fua = self.state(unit).writes_through();
            let op = MediumOp::Write {
                extent,
                data,
                fua,
                atomic: false,
            };
            return self.operate_on(slot, unit, op);
        }
        if let TaskJob::Copy(copy) = &mut self.tasks[slot as usize].job {
            copy.done += bytes;
            copy.bytes += bytes;
        }
        if self.segment_is_done(slot) {
            self.next_segment(slot);
        } else {
            self.copy_on(slot);
        }
    }

    fn segment_is_done(&self, slot: TaskSlot) -> bool {
        let size = |unit| u64::from(self.state(unit).traits.block_size);
        match &self.tasks[slot as usize].job {
            TaskJob::Copy(copy) => copy
                .segments
                .get(copy.at)
                .is_some_and(|segment| copy.done >= segment.from.1.blocks * size(segment.from.0)),
            _ => false,
        }
    }

    /// Remembers how a copy ended, for RECEIVE COPY RESULTS.
    pub(super) fn remember_copy(&mut self, task: &DeviceTask<L>, ending: TaskEnd) {
        let TaskJob::Copy(copy) = &task.job else {
            return;
        };
        let state = match ending {
            TaskEnd::Good => CopyState::Done,
            _ => CopyState::Failed,
        };
        let Some(record) = copy.record(state) else {
            return;
        };
        if let Some(nexus) = self.nexus_mut(task.nexus) {
            nexus.copies.retain(|other| other.id != record.id);
            if nexus.copies.len() >= RECORDS {
                nexus.copies.remove(0);
            }
            nexus.copies.push(record);
        }
    }

    /// RECEIVE COPY RESULTS.
    pub(super) fn receive_copy_results(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let record = |id| {
            let running = self.copying(task.nexus, id);
            let running = running.and_then(|copy| copy.record(CopyState::InProgress));
            running.or_else(|| self.nexus(task.nexus)?.record(id))
        };
        let (action, id) = (byte(&task.cdb, 1) & 0x1f, byte(&task.cdb, 2));
        match results::answer(action, id, record) {
            Ok(data) => self.answer_data(slot, data),
            Err(sense) => self.fail(slot, sense),
        }
    }
}

impl super::nexus::NexusSlot {
    fn record(&self, id: u8) -> Option<CopyRecord> {
        self.copies.iter().find(|record| record.id == id).copied()
    }
}

/// What an error of a medium is to the initiator of a copy (SPC-4 §6.4.3).
pub(super) const fn copy_failure(error: MediumError) -> CommandFailure {
    match super::finish::failure(error) {
        CommandFailure::Check(_) => CommandFailure::Check(Sense::new(
            SenseKey::CopyAborted,
            asc::THIRD_PARTY_DEVICE_FAILURE,
        )),
        status @ CommandFailure::Status(_) => status,
    }
}

const NOT_REACHABLE: CommandFailure = CommandFailure::Check(Sense::new(
    SenseKey::CopyAborted,
    asc::COPY_TARGET_NOT_REACHABLE,
));

fn row(opcode: u8) -> Option<&'static CommandRow> {
    rows_of(opcode).first()
}
