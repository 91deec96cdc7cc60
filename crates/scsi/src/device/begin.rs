//! A command begins: what is looked at in the state of its unit, when all it had to wait for in
//! its task set has ended. What was reserved meanwhile counts.

use super::DeviceServer;
use super::tasks::{Ending, Phase, Slot};
use crate::commands::{Handler, Length, Medium, Ordering, Row};
use crate::medium::{Extent, Lease};
use crate::reserve;
use crate::task::Failure;
use crate::unit::UnitState;
use crate::wire::asc;
use crate::wire::sense::{Key, Sense};
use crate::wire::status::Status;

impl<L: Lease> DeviceServer<L> {
    /// Carries a command out as far as it goes without waiting.
    pub(super) fn begin(&mut self, slot: Slot) {
        if let Err(failure) = self.check_state(slot) {
            return self.finish(slot, Ending::Failed(failure));
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

    fn check_state(&self, slot: Slot) -> Result<(), Failure> {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let nexus = self
            .nexus(task.nexus)
            .ok_or(Failure::Status(Status::Busy))?;
        task.row.check_offered(state).map_err(Failure::Check)?;
        reserve::check(state, &nexus.nexus.identity, task.row, task.cdb())?;
        check_ready(state, task.row)
    }

    fn begin_medium(&mut self, slot: Slot, medium: Medium) {
        match medium {
            Medium::Read => self.transfer(slot, false),
            Medium::Write => self.transfer(slot, true),
            _ => self.finish(slot, Ending::Failed(Failure::Check(UNSUPPORTED))),
        }
    }

    /// Takes the blocks that the CDB names for the task's own, at most `limit`. `None` where that
    /// cannot be now: the task has failed then, or is blocked by a lock and will begin again.
    pub(super) fn take_extent(&mut self, slot: Slot, limit: u32) -> Option<Extent> {
        let task = &self.tasks[slot as usize];
        let extent = task.row.extent(&task.cdb);
        let state = self.state(task.unit);
        if let Err(failure) = check_extent(state, task.row, extent, limit) {
            self.finish(slot, Ending::Failed(failure));
            return None;
        }
        let locked = state.locks.iter().any(|lock| lock.extent.overlaps(extent));
        let task = &mut self.tasks[slot as usize];
        task.extent = extent;
        if locked {
            self.block(slot);
            return None;
        }
        task.phase = Phase::Running;
        Some(extent)
    }

    fn block(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot as usize];
        task.phase = Phase::Blocked;
        if let Some(unit) = self.units.get_mut(task.unit.0 as usize) {
            unit.blocked += 1;
        }
    }
}

/// NOT READY and DATA PROTECT, where the command needs a medium that is ready and may be written.
fn check_ready(state: &UnitState, row: &Row) -> Result<(), Failure> {
    let Handler::Medium(medium) = row.handler else {
        return Ok(());
    };
    match medium {
        Medium::ReceiveCopyResults => return Ok(()),
        // They say themselves whether a long operation is in their way.
        Medium::Sanitize | Medium::FormatUnit => state.has_medium()?,
        _ => state.ready()?,
    }
    match row.ordering {
        // What a copy writes is the unit of its destination.
        _ if medium == Medium::ExtendedCopy => Ok(()),
        Ordering::Write | Ordering::Exclusive => state.writable(),
        Ordering::Free | Ordering::Read | Ordering::Flush => Ok(()),
    }
}

/// Whether the blocks are there, and not too many.
fn check_extent(state: &UnitState, row: &Row, extent: Extent, limit: u32) -> Result<(), Failure> {
    let capacity = state.traits.blocks;
    if extent.lba > capacity || extent.blocks > capacity - extent.lba {
        return Err(Failure::Check(Sense {
            information: Some(extent.lba.max(capacity)),
            ..Sense::new(Key::IllegalRequest, asc::LBA_OUT_OF_RANGE)
        }));
    }
    if extent.blocks > u64::from(limit) {
        return Err(Failure::Check(too_long(row)));
    }
    Ok(())
}

/// INVALID FIELD IN CDB, pointing at the length.
pub(super) fn too_long(row: &Row) -> Sense {
    match row.length {
        Length::Blocks(field) | Length::Parameters(field) | Length::Allocation(field) => {
            Sense::cdb_field(u16::from(field.at), None)
        }
        Length::None => Sense::new(Key::IllegalRequest, asc::INVALID_FIELD_IN_CDB),
    }
}

const UNSUPPORTED: Sense = Sense::new(Key::IllegalRequest, asc::INVALID_COMMAND_OPERATION_CODE);
