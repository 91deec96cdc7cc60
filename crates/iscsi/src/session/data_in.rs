//! Data to the initiator, and the end of commands (RFC 7143 §11.4, §11.7).

use scsi::medium::Lease;
use scsi::task::Completed;
use scsi::wire::status::Status;

use super::Session;
use super::task::{SessionTaskSlot, TaskEnding, TaskStage};
use super::transmit::SessionPdu;

impl<L: Lease> Session<L> {
    /// *Send Data-In*: what the initiator does not expect is cut off.
    pub(super) fn queue_data_in(&mut self, slot: SessionTaskSlot, offset: u32, data: L) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.stage != TaskStage::Executing || task.condition.is_some() || !self.is_open {
            return;
        }
        let room = task.expected_in.saturating_sub(offset) as usize;
        if data.is_empty() || room == 0 {
            return;
        }
        let data = if data.len() > room {
            data.slice(0, room)
        } else {
            data
        };
        task.queued += 1;
        self.queue.push(SessionPdu::Data { slot, offset, data });
    }

    /// *Send Command Complete*.
    pub(super) fn device_ended(&mut self, slot: SessionTaskSlot, completed: &Completed) {
        self.told.ended(&completed.sense);
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.stage != TaskStage::Executing {
            return;
        }
        task.stage = TaskStage::Ended;
        task.stop_asking();
        task.drop_grants();
        if task.condition.is_none() {
            task.ending = Some(task.device_ending(completed));
        }
        self.answer_if_complete(slot);
    }

    /// Queues the response of a command that has ended, once no more of its data is to come: the
    /// initiator may not be told before (RFC 7143 §11.4.2).
    pub(super) fn answer_if_complete(&mut self, slot: SessionTaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.stage != TaskStage::Ended || task.awaits_data() {
            return;
        }
        if !self.is_open {
            self.remove_task(slot);
            return;
        }
        task.stage = TaskStage::Answered;
        if let Some(condition) = task.condition {
            task.ending = Some(task.condition_ending(condition));
        }
        let plain = |ending: &TaskEnding| {
            matches!(ending.status, Status::Good | Status::ConditionMet)
                && ending.sense.as_slice().is_empty()
                && ending.qualifier == 0
        };
        // Phase collapse (§11.7.3): the last Data-In that is still queued takes the status along.
        task.collapse =
            task.queued > 0 && task.expected_out == 0 && task.ending.as_ref().is_some_and(plain);
        if !task.collapse {
            self.queue.push(SessionPdu::Status(slot));
        }
    }

    /// The device server aborted a task: because the session ended it, or because it was told to.
    pub(super) fn device_aborted(&mut self, slot: SessionTaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.condition.is_none() {
            self.told_of_abort(slot);
            self.forget(slot);
            return;
        }
        task.stage = TaskStage::Ended;
        task.drop_grants();
        self.answer_if_complete(slot);
    }
}
