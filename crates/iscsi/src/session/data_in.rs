//! Data to the initiator, and the end of commands (RFC 7143 §11.4, §11.7).

use scsi::medium::Lease;
use scsi::task::{Completed, Tag};

use super::Session;
use super::task::TaskStage;
use crate::datamover::{Datamover, TaskSlot};

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// *Send Data-In*: what the initiator does not expect is cut off.
    pub fn send_data_in(&mut self, tag: Tag, offset: u32, data: L) {
        let Some((slot, task)) = self.tasks.tagged(tag) else {
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
        self.connection.mover.put_data(slot, offset, data);
    }

    /// *Send Command Complete*.
    pub fn complete(&mut self, tag: Tag, completed: &Completed) {
        self.connection.attentions.ended(&completed.sense);
        let Some((slot, task)) = self.tasks.tagged(tag) else {
            return;
        };
        if task.stage != TaskStage::Executing {
            return;
        }
        task.stage = TaskStage::Ended;
        task.drop_grants();
        if task.condition.is_none() {
            task.ending = Some(task.device_ending(completed));
        }
        if task.expected_out > 0 {
            self.connection.mover.drop_data(slot);
        }
        self.answer_if_complete(slot);
    }

    /// Queues the response of a command that has ended, once no more of its data is to come: the
    /// initiator may not be told before (RFC 7143 §11.4.2).
    pub(super) fn answer_if_complete(&mut self, slot: TaskSlot) {
        let with_qualifier = self.keys().protocol_level >= 2;
        let mover = &mut self.connection.mover;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let (waits, reads_only) = (task.unsolicited.open, task.expected_out == 0);
        if task.stage != TaskStage::Ended || waits || !reads_only && mover.is_getting(slot) {
            return;
        }
        if !self.is_open {
            self.remove_task(slot);
            return;
        }
        task.stage = TaskStage::Answered;
        let ending = match task.condition {
            Some(condition) => Some(task.condition_ending(condition)),
            None => task.ending.take(),
        };
        if let Some(mut ending) = ending {
            if !with_qualifier {
                ending.qualifier = 0;
            }
            mover.send_response(slot, ending, reads_only);
        }
    }

    /// The device server aborted a task: because the session ended it, or because it was told to.
    pub fn aborted(&mut self, tag: Tag) {
        let Some((slot, task)) = self.tasks.tagged(tag) else {
            return;
        };
        if task.condition.is_none() {
            self.told_of_abort(slot);
            self.forget(slot);
            return;
        }
        task.stage = TaskStage::Ended;
        task.drop_grants();
        self.connection.mover.drop_data(slot);
        self.answer_if_complete(slot);
    }
}
