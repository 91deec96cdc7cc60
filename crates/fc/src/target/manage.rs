//! Task management (FCP-4, task management flags).

use scsi::medium::Lease;
use scsi::task::{Function, FunctionResult};

use super::exchanges::{ExchangeEnding, ExchangeSlot, ExchangeStage};
use super::{FcpTarget, FcpTargetEvent};
use crate::wire::fcp::{ManagementFlags, response};

/// Names an [`FcpTargetEvent::Manage`] by which the target itself ends a command; the end is told
/// by the command.
pub(super) const OWN: u32 = u32::MAX;

impl<L: Lease> FcpTarget<L> {
    /// An FCP_CMND with task management flags.
    pub(super) fn function(&mut self, slot: ExchangeSlot, management: ManagementFlags) {
        let function = match management {
            ManagementFlags::ABORT_TASK_SET => Function::AbortTaskSet,
            ManagementFlags::CLEAR_TASK_SET => Function::ClearTaskSet,
            ManagementFlags::LOGICAL_UNIT_RESET => Function::LogicalUnitReset,
            ManagementFlags::TARGET_RESET => Function::TargetReset,
            ManagementFlags::CLEAR_ACA => Function::ClearAca,
            ManagementFlags::QUERY_TASK_SET => Function::QueryTaskSet,
            ManagementFlags::QUERY_ASYNCHRONOUS_EVENT => Function::QueryAsynchronousEvent,
            // Two at once.
            _ => return self.end(slot, ExchangeEnding::coded(response::FIELDS_INVALID)),
        };
        let task = &mut self.tasks[slot];
        task.stage = ExchangeStage::Managing;
        self.events.push_back(FcpTargetEvent::Manage {
            remote: task.remote,
            id: task.tag().0,
            lun: task.lun,
            function,
        });
    }

    /// The device server has carried a function out.
    pub(super) fn function_done(&mut self, slot: ExchangeSlot, result: FunctionResult) {
        let task = &self.tasks[slot];
        if task.stage != ExchangeStage::Managing {
            return;
        }
        if task.owes_answer {
            return self.abort_done(slot);
        }
        let code = match result {
            FunctionResult::Complete | FunctionResult::NoTask => response::COMPLETE,
            FunctionResult::Succeeded(information) => {
                let ending = ExchangeEnding {
                    information,
                    ..ExchangeEnding::coded(response::SUCCEEDED)
                };
                return self.end(slot, ending);
            }
            FunctionResult::Rejected => response::REJECTED,
            FunctionResult::IncorrectLun => response::INCORRECT_LUN,
        };
        self.end(slot, ExchangeEnding::coded(code));
    }
}
