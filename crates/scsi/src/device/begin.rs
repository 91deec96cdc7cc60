//! A command begins: what is looked at in the state of its unit, when all it had to wait for in
//! its task set has ended. What was reserved meanwhile counts.

use super::block_scan::check_inside;
use super::tasks::{TaskPhase, TaskSlot};
use super::{DeviceServer, TaskJob};
use crate::commands::{CommandRow, Handler, Length, Medium, Ordering};
use crate::medium::{Extent, Lease};
use crate::reserve;
use crate::task::CommandFailure;
use crate::unit::{UnitId, UnitState};
use crate::wire::asc;
use crate::wire::sense::{Sense, SenseKey, Status};

impl<L: Lease> DeviceServer<L> {
    /// Carries a command out as far as it goes without waiting.
    pub(super) fn begin(&mut self, slot: TaskSlot) {
        if !self.may_take_data(slot) {
            return;
        }
        if let Err(failure) = self.check_state(slot) {
            return self.fail(slot, failure);
        }
        if self.is_held_back(slot) {
            return self.block(slot, self.tasks[slot as usize].unit);
        }
        match self.tasks[slot as usize].row.handler {
            Handler::Medium(medium) => self.begin_medium(slot, medium),
            Handler::Query(handler) => self.query(slot, handler, &[]),
            Handler::Parameters(length, _) => {
                let length = length(self.tasks[slot as usize].cdb());
                self.receive_parameters(slot, length);
            }
        }
    }

    fn check_state(&self, slot: TaskSlot) -> Result<(), CommandFailure> {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let nexus = self
            .nexus(task.nexus)
            .ok_or(CommandFailure::Status(Status::Busy))?;
        task.row.check_offered(state)?;
        reserve::check(state, &nexus.nexus.identity, task.row, task.cdb())?;
        let is_read_only = || nexus.units[task.at as usize].is_read_only;
        check_ready(state, task.row, is_read_only)
    }

    fn begin_medium(&mut self, slot: TaskSlot, medium: Medium) {
        match medium {
            Medium::Read => self.read(slot),
            Medium::Write => self.transfer(slot, true),
            Medium::WriteAtomic => self.write_atomic(slot),
            Medium::Verify => self.verify(slot),
            Medium::WriteAndVerify => self.write_and_verify(slot),
            Medium::OrWrite => self.or_write(slot),
            Medium::CompareAndWrite => self.compare_and_write(slot),
            Medium::WriteSame => self.write_same(slot),
            Medium::Prefetch => self.prefetch(slot),
            Medium::SynchronizeCache => self.synchronize_cache(slot),
            Medium::LbaStatus => self.lba_status(slot),
            Medium::ReceiveCopyResults => self.receive_copy_results(slot),
            Medium::FormatUnit => self.receive_parameters(slot, self.format_parameters(slot)),
            Medium::Unmap | Medium::Sanitize | Medium::ExtendedCopy => {
                let task = &self.tasks[slot as usize];
                let length = task.row.parameter_length(&task.cdb);
                self.receive_parameters(slot, length);
            }
        }
    }

    /// The parameter list of a medium command has come.
    pub(super) fn begin_with_parameters(&mut self, slot: TaskSlot, medium: Medium, list: &[u8]) {
        match medium {
            Medium::Unmap => self.unmap(slot, list),
            Medium::FormatUnit => self.format_unit(slot, list),
            Medium::Sanitize => self.sanitize(slot, list),
            Medium::ExtendedCopy => self.extended_copy(slot, list),
            _ => {}
        }
    }

    /// Goes on after a lock is gone. What was reserved meanwhile counts.
    pub(super) fn resume(&mut self, slot: TaskSlot) {
        match &self.tasks[slot as usize].job {
            TaskJob::Copy(_) => self.copy_on(slot),
            TaskJob::Stream(_) => self.read_on(slot),
            TaskJob::Sweep(_) => match self.check_state(slot) {
                Err(failure) => self.fail(slot, failure),
                Ok(()) => self.sweep_on(slot),
            },
            TaskJob::Pieces(_) => self.pieces_on(slot),
            _ => self.begin(slot),
        }
    }

    /// Takes the blocks that the CDB names, at most `limit`, for the task to be at. `None` where
    /// that cannot be now: the task has failed then, or is blocked by a lock and will go on later.
    pub(super) fn take_extent(&mut self, slot: TaskSlot, limit: u32) -> Option<Extent> {
        let extent = self.check_blocks(slot, limit)?;
        self.gate(slot, extent).then_some(extent)
    }

    /// The blocks that the CDB names, at most `limit`; `None` if the task has failed.
    pub(super) fn check_blocks(&mut self, slot: TaskSlot, limit: u32) -> Option<Extent> {
        let task = &self.tasks[slot as usize];
        self.check(slot, task.row.extent(&task.cdb), limit)
    }

    /// The same with other blocks than the CDB names.
    pub(super) fn check(&mut self, slot: TaskSlot, extent: Extent, limit: u32) -> Option<Extent> {
        let task = &self.tasks[slot as usize];
        let checked = check_inside(self.state(task.unit), extent);
        let checked = match checked {
            Ok(()) if extent.blocks > u64::from(limit) => Err(too_long(task.row)),
            checked => checked,
        };
        match checked {
            Ok(()) => {
                self.tasks[slot as usize].extent = extent;
                Some(extent)
            }
            Err(sense) => {
                self.fail(slot, sense);
                None
            }
        }
    }

    /// Lets a task access these blocks, or blocks it while another task has locked them.
    pub(super) fn gate(&mut self, slot: TaskSlot, extent: Extent) -> bool {
        let unit = self.tasks[slot as usize].unit;
        if self.is_locked(unit, extent) {
            self.block(slot, unit);
            return false;
        }
        self.tasks[slot as usize].phase = TaskPhase::Running;
        true
    }

    pub(super) fn is_locked(&self, unit: UnitId, extent: Extent) -> bool {
        self.units[unit.index()].has_locked(|lock| lock.overlaps(extent))
    }

    /// Whether all that goes to the unit's medium waits: for another volume, or until the core
    /// knows what is locked.
    fn is_held_back(&self, slot: TaskSlot) -> bool {
        let task = &self.tasks[slot as usize];
        let unit = &self.units[task.unit.index()];
        !matches!(task.row.handler, Handler::Query(_))
            && unit.has_locked(|lock| lock == Extent::ALL)
    }

    /// Has a task wait until locks of a unit go.
    #[cold]
    pub(super) fn block(&mut self, slot: TaskSlot, unit: UnitId) {
        let task = &mut self.tasks[slot as usize];
        task.phase = TaskPhase::Blocked(unit.slot);
        // The holder of the lock may write: what was made stable before is not what will be read.
        if matches!(task.job, TaskJob::Settled) {
            task.job = TaskJob::Idle;
        }
        if let Some(unit) = self.units.get_mut(unit.index()) {
            unit.blocked += 1;
        }
        self.subscribe(slot, unit);
    }
}

/// NOT READY and DATA PROTECT, where the command needs a medium that is ready and may be written.
/// Only a command that writes asks whether its LUN is there for reading alone.
fn check_ready(
    state: &UnitState,
    row: &CommandRow,
    is_read_only: impl Fn() -> bool,
) -> Result<(), CommandFailure> {
    let Handler::Medium(medium) = row.handler else {
        return Ok(());
    };
    match medium {
        Medium::ReceiveCopyResults => return Ok(()),
        // They say themselves whether a long operation is in their way.
        Medium::FormatUnit | Medium::Sanitize => state.has_medium()?,
        _ => state.ready()?,
    }
    match row.ordering {
        // It may write to another unit, and is checked for itself.
        _ if medium == Medium::ExtendedCopy => Ok(()),
        Ordering::Write | Ordering::Exclusive if is_read_only() => Err(WRITE_PROTECTED),
        Ordering::Write | Ordering::Exclusive => state.writable(),
        Ordering::Free | Ordering::Read | Ordering::Flush => Ok(()),
    }
}

/// What a LUN that can only be read answers to writes, as a read-only medium does.
pub(super) const WRITE_PROTECTED: CommandFailure =
    CommandFailure::Check(Sense::new(SenseKey::DataProtect, asc::WRITE_PROTECTED));

/// INVALID FIELD IN CDB, pointing at the length.
pub(super) fn too_long(row: &CommandRow) -> Sense {
    match row.length {
        Length::Blocks(field) | Length::Parameters(field) | Length::Allocation(field) => {
            Sense::cdb_field(u16::from(field.at), None)
        }
        Length::None => Sense::new(SenseKey::IllegalRequest, asc::INVALID_FIELD_IN_CDB),
    }
}
