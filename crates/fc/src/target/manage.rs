//! Task management (FCP-4, task management flags).

use scsi::medium::Lease;
use scsi::task::{Function, FunctionResult};

use super::tasks::{Ending, Slot, Stage};
use super::{Event, Target};
use crate::wire::fcp::{Management, response};

/// Names an [`Event::Manage`] by which the target itself ends a command; the end is told by the
/// command.
pub(super) const OWN: u32 = u32::MAX;

impl<L: Lease> Target<L> {
    /// An FCP_CMND with task management flags.
    pub(super) fn function(&mut self, slot: Slot, management: Management) {
        let function = match management {
            Management::ABORT_TASK_SET => Function::AbortTaskSet,
            Management::CLEAR_TASK_SET => Function::ClearTaskSet,
            Management::LOGICAL_UNIT_RESET => Function::LogicalUnitReset,
            Management::TARGET_RESET => Function::TargetReset,
            Management::CLEAR_ACA => Function::ClearAca,
            Management::QUERY_TASK_SET => Function::QueryTaskSet,
            Management::QUERY_ASYNCHRONOUS_EVENT => Function::QueryAsynchronousEvent,
            // Two at once.
            _ => return self.end(slot, Ending::coded(response::FIELDS_INVALID)),
        };
        let task = &mut self.tasks[slot];
        task.stage = Stage::Managing;
        self.events.push_back(Event::Manage {
            remote: task.remote,
            id: task.tag().0,
            lun: task.lun,
            function,
        });
    }

    /// The device server has carried a function out.
    pub(super) fn function_done(&mut self, slot: Slot, result: FunctionResult) {
        let task = &self.tasks[slot];
        if task.stage != Stage::Managing {
            return;
        }
        if task.owes_answer {
            return self.abort_done(slot);
        }
        let code = match result {
            FunctionResult::Complete | FunctionResult::NoTask => response::COMPLETE,
            FunctionResult::Succeeded(information) => {
                return self.end(slot, Ending::informed(response::SUCCEEDED, information));
            }
            FunctionResult::Rejected => response::REJECTED,
            FunctionResult::IncorrectLun => response::INCORRECT_LUN,
        };
        self.end(slot, Ending::coded(code));
    }
}
