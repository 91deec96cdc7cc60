//! A command comes in: what is looked at before it enters its task set (SAM-5 §5.3.3, §5.14).

use super::finish::completed;
use super::nexus::{NexusLoss, NexusTask};
use super::tasks::{DeviceTask, TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceOutput, DeviceServer};
use crate::commands::{self, CommandRow, ExemptCommand};
use crate::medium::Lease;
use crate::task::{Attribute, Command, CommandFailure};
use crate::wire::asc;
use crate::wire::cdb::{byte, opcode};
use crate::wire::lun::WELL_KNOWN_REPORT_LUNS;
use crate::wire::sense::{Format, Sense, SenseKey, Status};

/// The most commands in a task set: four times the deepest default queue of an initiator (not
/// measured).
pub(super) const TASK_SET_LIMIT: u32 = 1024;

const INVALID_MESSAGE: Sense = Sense::new(SenseKey::IllegalRequest, asc::INVALID_MESSAGE_ERROR);
const NO_SUCH_COMMAND: Sense = Sense::new(
    SenseKey::IllegalRequest,
    asc::INVALID_COMMAND_OPERATION_CODE,
);
const NO_SUCH_UNIT: Sense = Sense::new(SenseKey::IllegalRequest, asc::LOGICAL_UNIT_NOT_SUPPORTED);

/// Whether it is for the REPORT LUNS well known unit, and one of the commands that this has.
fn is_of_report_luns(command: &Command) -> bool {
    let rows = commands::rows_of(byte(&command.cdb, 0));
    let has = |row: &CommandRow| {
        row.always == ExemptCommand::Answered || row.opcode == opcode::TEST_UNIT_READY
    };
    command.lun == WELL_KNOWN_REPORT_LUNS && rows.iter().any(has)
}

impl<L: Lease> DeviceServer<L> {
    pub(super) fn admit(&mut self, command: &Command) {
        let Some(nexus) = self.nexus(command.nexus) else {
            // A transport that names a nexus which is not there is not answered.
            return;
        };
        if nexus.leaving != NexusLoss::No {
            let (nexus, tag) = (command.nexus, command.tag);
            return self.outputs.push_back(DeviceOutput::Aborted { nexus, tag });
        }
        let Some(at) = nexus.position(command.lun) else {
            return self.execute_without_unit(command);
        };
        match self.check_arrival(command, at) {
            Ok(row) => self.enter(command, at, row),
            Err(failure) => self.refuse(command, at, failure),
        }
    }

    fn check_arrival(
        &mut self,
        command: &Command,
        at: usize,
    ) -> Result<&'static CommandRow, CommandFailure> {
        let unavailable = CommandFailure::Status(Status::Busy);
        let nexus = self.nexus_mut(command.nexus).ok_or(unavailable)?;
        let view = nexus.units.get_mut(at).ok_or(unavailable)?;
        if view.set.tasks >= TASK_SET_LIMIT {
            return Err(CommandFailure::Status(Status::TaskSetFull));
        }
        let row = commands::find(&command.cdb);
        if !view.attentions.is_empty()
            && !row.is_ok_and(|row| row.always == ExemptCommand::Answered)
            && let Some(code) = view.attentions.take()
        {
            return Err(CommandFailure::Check(Sense::attention(code)));
        }
        if command.attribute == Attribute::Aca {
            return Err(CommandFailure::Check(INVALID_MESSAGE));
        }
        let row = row?;
        if usize::from(command.cdb_len) < row.usage.len() {
            Err(CommandFailure::Check(Sense::cdb_field(
                u16::from(command.cdb_len),
                None,
            )))
        } else {
            Ok(row)
        }
    }

    /// A command to a LUN that names no unit (SPC-5 §6.6.1, §6.33, §6.39).
    fn execute_without_unit(&mut self, command: &Command) {
        let failure = match commands::find(&command.cdb) {
            Ok(row) if row.always == ExemptCommand::Answered => {
                return self.query_without_unit(command, row);
            }
            Ok(row)
                if command.lun == WELL_KNOWN_REPORT_LUNS
                    && row.opcode == opcode::TEST_UNIT_READY =>
            {
                let ending = TaskEnd::Good;
                return self.complete_at_once(command, completed(ending, Format::Fixed, (0, 0)));
            }
            // It has these four commands, and knows no other.
            Err(failure) if is_of_report_luns(command) => failure,
            _ if command.lun == WELL_KNOWN_REPORT_LUNS => NO_SUCH_COMMAND,
            _ => NO_SUCH_UNIT,
        };
        let ending = TaskEnd::Failed(CommandFailure::Check(failure));
        self.complete_at_once(command, completed(ending, Format::Fixed, (0, 0)));
    }

    fn refuse(&mut self, command: &Command, at: usize, failure: CommandFailure) {
        let unit = self.nexus(command.nexus).map(|nexus| nexus.units[at].unit);
        let format = unit.map_or(Format::Fixed, |unit| self.sense_format(unit));
        let done = completed(TaskEnd::Failed(failure), format, (0, 0));
        self.complete_at_once(command, done);
    }

    /// Answers a command that entered no task set.
    pub(super) fn complete_at_once(
        &mut self,
        command: &Command,
        completed: crate::task::Completed,
    ) {
        self.outputs.push_back(DeviceOutput::Complete {
            nexus: command.nexus,
            tag: command.tag,
            completed,
        });
    }

    fn enter(&mut self, command: &Command, at: usize, row: &'static CommandRow) {
        let place = self.tasks.vacant_key() as TaskSlot;
        let Some(nexus) = self
            .nexuses
            .get_mut(command.nexus.0 as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let unit = nexus.units[at].unit;
        let mut task = DeviceTask::new(command, at, unit, row, self.clock);
        self.arrivals += 1;
        task.arrival = self.arrivals;
        let rank = task.rank();
        let set = &mut nexus.units[at].set;
        let waits = (set.barriers > 0 || rank.looks_back()) && {
            let older = nexus
                .tasks
                .iter()
                .filter_map(|entry| self.tasks.get(entry.slot as usize));
            let mut older = older.filter(|task| task.at as usize == at);
            older.any(|older| rank.waits_for(older.rank()))
        };
        set.tasks += 1;
        set.barriers += u32::from(rank.is_barrier());
        set.dormant += u32::from(waits);
        if waits {
            task.phase = TaskPhase::Dormant;
        }
        nexus.tasks.push_back(NexusTask {
            tag: command.tag,
            slot: place,
        });
        self.tasks.insert(task);
        if !waits {
            self.begin(place);
        }
    }
}
