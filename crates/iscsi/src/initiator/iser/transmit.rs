//! The way out: Sends, with the STag of a command's memory (RFC 7145 §7.3.1, §7.3.4).

use rdma::verbs::{Access, QueuePair, Tag};
use scsi::medium::Lease;

use super::InitiatorIserMover;
use crate::datamover::iser::message;
use crate::initiator::tasks::InitiatorTaskSlot;
use crate::initiator::transmit::ControlRequest;
use crate::initiator::{Data, Initiator};
use crate::parameters::Operational;
use crate::wire::iser::AdvertisedBuffers;

impl<L: Lease> Initiator<L, InitiatorIserMover> {
    /// Withdraws the STags of commands that have ended; returns whether there were any. To be
    /// called before the queue pair receives more: their memory would still be filled.
    pub fn settle(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let any = !self.mover.withdrawn.is_empty();
        for stag in self.mover.withdrawn.drain(..) {
            pair.withdraw(stag);
        }
        any
    }

    /// Posts what is to be sent, as far as there is room; returns whether it did anything. The data
    /// of a write leaves from where it lies, and may be on its way when its command ends, if the
    /// target ends it early: memory that is used for something else then would be sent in its
    /// place.
    pub fn transmit(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let mut any = self.settle(pair);
        let first = self.numbers.cmd_sn;
        let held = self.is_resetting();
        while pair.limits().room > 0 {
            if let Some(control) = self.controls.pop_front() {
                self.post_control(pair, control);
            } else if self.waits_for_memory(pair, held) {
                break;
            } else if let Some(slot) = self.pop_ready(held) {
                self.post_command(pair, slot);
            } else {
                break;
            }
            any = true;
        }
        if self.numbers.cmd_sn != first {
            self.watch_counting();
        }
        any
    }

    /// Whether the next command has to wait until others end, as their memory leaves no room for
    /// its own. Where none has any, to wait would be in vain: then the queue pair ends, and says
    /// why.
    fn waits_for_memory(&mut self, pair: &mut impl QueuePair<L>, held: bool) -> bool {
        let keys = self.keys;
        let next = self.next_ready(held).and_then(|slot| self.tasks.at(slot));
        let (bytes, may) = match next.map(|task| (&task.data, task.len)) {
            Some((Data::In(into), 1..)) => (into.len(), Access::Write),
            Some((Data::Out(from), len @ 1..)) if !goes_along(len, &keys) => {
                (from.len(), Access::Read)
            }
            _ => return false,
        };
        let mut tasks = self.tasks.iter();
        !pair.can_advertise(bytes, may) && tasks.any(|(_, task)| task.transfer.advertised.is_some())
    }

    fn post_control(&mut self, pair: &mut impl QueuePair<L>, control: ControlRequest) {
        let ControlRequest(mut bhs, data) = control;
        self.control_leaves(&mut bhs);
        if let Some(send) = message::send(AdvertisedBuffers::default(), (bhs, &data), None) {
            pair.post(send);
        }
    }

    /// Sends a command, with all data of a write or with the STag of its memory.
    fn post_command(&mut self, pair: &mut impl QueuePair<L>, slot: InitiatorTaskSlot) {
        let (exp_stat_sn, keys) = (self.numbers.exp_stat_sn(), self.keys);
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let bhs = task
            .command(self.numbers.take(), exp_stat_sn, true)
            .encode();
        let mut buffers = AdvertisedBuffers::default();
        let send = match &task.data {
            Data::Out(from) if goes_along(task.len, &keys) => {
                task.moved = task.len;
                message::send_lease(buffers, bhs, from.clone())
            }
            data => {
                buffers = advertise(pair, data);
                task.transfer.advertised = buffers.read.or(buffers.write).map(|tag| tag.stag);
                message::send(buffers, (bhs, &[]), None)
            }
        };
        if let Some(send) = send {
            pair.post(send);
        }
    }
}

/// Whether all data of a write may go with its command.
fn goes_along(len: u32, keys: &Operational) -> bool {
    let most = keys.first_burst.min(keys.peer_data_segment);
    keys.immediate_data && len > 0 && len <= most
}

/// Lets the target reach the memory of a command, if there is any.
fn advertise<L: Lease>(pair: &mut impl QueuePair<L>, data: &Data<L>) -> AdvertisedBuffers {
    let mut one =
        |lease: &L, may| -> Option<Tag> { (!lease.is_empty()).then(|| pair.advertise(lease, may)) };
    match data {
        Data::None => AdvertisedBuffers::default(),
        Data::In(into) => AdvertisedBuffers {
            read: one(into, Access::Write),
            write: None,
        },
        Data::Out(from) => AdvertisedBuffers {
            write: one(from, Access::Read),
            read: None,
        },
    }
}
