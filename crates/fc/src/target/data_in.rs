//! Data to initiators. What initiators may ask for again is kept until they confirm it.

use scsi::medium::Lease;

use super::FcpTarget;
use super::exchanges::{Exchange, ExchangeSlot, ExchangeStage, KeptDataIn};
use super::transmit::ExchangeOutput;
use crate::exchange::data::DataSequence;

impl<L: Lease> FcpTarget<L> {
    /// *Send Data-In*: what the initiator does not expect is cut off.
    pub(super) fn queue_data_in(&mut self, slot: ExchangeSlot, offset: u32, data: L) {
        let task = &mut self.tasks[slot];
        let room = task.expected_in.saturating_sub(offset) as usize;
        if task.stage != ExchangeStage::Executing || data.is_empty() || room == 0 {
            return;
        }
        let data = if data.len() > room {
            data.slice(0, room)
        } else {
            data
        };
        let remote = task.remote;
        let Some(nexus) = self.nexuses.get_mut(remote.index()) else {
            return;
        };
        let Some(nexus) = nexus else { return };
        task.presented = offset + data.len() as u32;
        if nexus.peer.fcp.retry {
            let data = data.clone();
            self.confirming.bytes += data.len();
            task.kept.push_back(KeptDataIn { offset, data });
        }
        nexus.queued += data.len();
        let sequence = DataSequence::new(data, offset, task.next_seq_id());
        self.queue.push(ExchangeOutput::Data { slot, sequence });
        self.bound_kept(slot);
    }

    /// Lets go of kept data until it is no more than may be: of what waits for FCP_CONF the oldest,
    /// then what this command sent first. What of it is asked for again cannot be sent; the
    /// initiator reads it by a new command.
    fn bound_kept(&mut self, slot: ExchangeSlot) {
        while self.confirming.bytes > self.limits.unconfirmed() {
            if self.settle_oldest() {
                continue;
            }
            let Some(first) = self.tasks[slot].kept.pop_front() else {
                return;
            };
            self.confirming.bytes -= first.data.len();
        }
    }

    /// Lets go of all data of an exchange that could be sent again.
    pub(super) fn drop_kept(&mut self, slot: ExchangeSlot) {
        let task = &mut self.tasks[slot];
        self.confirming.bytes -= task.kept_bytes();
        task.kept.clear();
    }

    /// Queues again what was sent from `offset` on, in place of what of the exchange waits.
    pub(super) fn send_again(&mut self, slot: ExchangeSlot, offset: u32) {
        let dropped = self.queue.remove(slot);
        let mut again = 0;
        let task = &mut self.tasks[slot];
        for at in 0..task.kept.len() {
            let seq_id = task.next_seq_id();
            let kept = &task.kept[at];
            let mut sequence = DataSequence::new(kept.data.clone(), kept.offset, seq_id);
            sequence.at = offset.saturating_sub(kept.offset).min(sequence.end);
            if sequence.left() > 0 {
                again += sequence.left() as usize;
                self.queue.push(ExchangeOutput::Data { slot, sequence });
            }
        }
        let remote = task.remote;
        self.count_queued(remote, dropped, again);
    }
}

impl<L: Lease> Exchange<L> {
    /// Whether all that has left or was queued from `offset` on is still there.
    pub(super) fn has_kept(&self, offset: u32) -> bool {
        let first = self.kept.front().map_or(u32::MAX, |kept| kept.offset);
        offset >= self.presented || first <= offset
    }
}
