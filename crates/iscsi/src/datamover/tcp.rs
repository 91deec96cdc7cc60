//! The datamover over TCP: control PDUs as they are, Data-In cut to size, R2Ts for data that is
//! wanted (RFC 7143 §11.7, §11.8).
//!
//! Everything leaves in one order, numbered when it leaves. The price: a status waits behind the
//! data of other commands. That order is what makes task management simple, as a response to it
//! cannot overtake those of the tasks that it covers (RFC 7143 §4.2.2.3).
//!
//! Nothing is kept for ExpStatSN to acknowledge: at ErrorRecoveryLevel 0 nothing is sent twice.

mod data_out;
mod queue;
mod receive;
mod transmit;

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

pub(crate) use self::data_out::RetiredTags;
use self::data_out::TaskTransfer;
use self::queue::{SendQueue, TcpPdu};
use self::receive::TcpInbound;
use super::{ControlPdu, Datamover, TaskEnding, TaskSlot, WantedData};
use crate::parameters::Operational;
use crate::pdu_sink::Digests;
use crate::target::TargetLimits;
use crate::wire::bhs::Itt;
use crate::wire::framer::Framer;

/// A connection's datamover over TCP.
#[derive(Debug)]
pub struct TcpMover<L> {
    keys: TcpKeys,
    framer: Framer,
    inbound: TcpInbound,
    /// A data segment whose digest is looked at when all of it is there.
    collected: Vec<u8>,
    /// By [`TaskSlot`].
    transfers: Vec<TaskTransfer<L>>,
    retired: RetiredTags,
    next_ttt: u16,
    /// Bytes of data that came or left, for [`Datamover::take_moved`].
    moved: u32,
    queue: SendQueue<L>,
}

/// What was agreed upon for PDUs over TCP.
#[derive(Clone, Copy, Debug)]
struct TcpKeys {
    digests: Digests,
    peer_data_segment: u32,
    max_burst: u32,
    outstanding_r2t: u16,
    pdu_in_order: bool,
}

impl From<&Operational> for TcpKeys {
    fn from(keys: &Operational) -> Self {
        Self {
            digests: Digests {
                header: keys.header_digest,
                data: keys.data_digest,
            },
            peer_data_segment: keys.peer_data_segment,
            max_burst: keys.max_burst,
            outstanding_r2t: keys.outstanding_r2t,
            pdu_in_order: keys.pdu_in_order,
        }
    }
}

impl<L: Lease> Datamover<L> for TcpMover<L> {
    fn new(keys: &Operational, limits: &TargetLimits) -> Self {
        let mut framer = Framer::new(keys.own_data_segment);
        framer.set_digests(keys.header_digest, keys.data_digest);
        let r2ts = limits.window as usize * usize::from(keys.outstanding_r2t);
        Self {
            keys: keys.into(),
            framer,
            inbound: TcpInbound::Drop,
            collected: Vec::new(),
            transfers: Vec::new(),
            retired: RetiredTags::new(r2ts),
            next_ttt: 0,
            moved: 0,
            queue: SendQueue::new(),
        }
    }

    fn notice_keys(&mut self, keys: &Operational) {
        self.keys = keys.into();
    }

    fn allocate(&mut self, task: TaskSlot, itt: Itt, lun: Lun) {
        if self.transfers.len() <= task.index() {
            self.transfers
                .resize_with(task.index() + 1, TaskTransfer::new);
        }
        self.transfers[task.index()].begin(itt, lun);
    }

    fn deallocate(&mut self, task: TaskSlot) {
        self.queue.retain(|other| other != task);
        self.retire(task);
    }

    fn send_control(&mut self, pdu: ControlPdu) {
        self.queue.push(TcpPdu::Control(Box::new(pdu)));
    }

    fn send_response(&mut self, task: TaskSlot, ending: TaskEnding, may_collapse: bool) {
        let Some(transfer) = self.transfers.get_mut(task.index()) else {
            return;
        };
        // Phase collapse (RFC 7143 §11.7.3): the last Data-In that waits takes the status along.
        transfer.collapse = may_collapse && transfer.queued > 0 && ending.is_plain();
        transfer.ending = Some(ending);
        if !transfer.collapse {
            self.queue.push(TcpPdu::Status(task));
        }
    }

    fn put_data(&mut self, task: TaskSlot, offset: u32, data: L) {
        if let Some(transfer) = self.transfers.get_mut(task.index()) {
            transfer.queued += 1;
            self.queue.push(TcpPdu::Data {
                slot: task,
                offset,
                data,
            });
        }
    }

    fn get_data(&mut self, now: Now, task: TaskSlot, wanted: WantedData<L>) {
        if let Some(transfer) = self.transfers.get_mut(task.index()) {
            transfer.want(wanted);
            self.ask_for_data(now, task);
        }
    }

    fn stop_asking(&mut self, task: TaskSlot) {
        if let Some(transfer) = self.transfers.get_mut(task.index()) {
            transfer.stop_asking();
        }
    }

    fn drop_data(&mut self, task: TaskSlot) {
        if let Some(transfer) = self.transfers.get_mut(task.index()) {
            transfer.stop_asking();
            transfer.drop_data();
        }
    }

    fn is_getting(&self, task: TaskSlot) -> bool {
        let transfer = self.transfers.get(task.index());
        transfer.is_some_and(TaskTransfer::is_getting)
    }

    fn oldest_get(&self) -> Option<Now> {
        self.transfers.iter().filter_map(TaskTransfer::oldest).min()
    }

    fn take_moved(&mut self) -> u32 {
        std::mem::take(&mut self.moved)
    }

    fn ahs(&self) -> &[u8] {
        self.framer.ahs()
    }

    fn take_collected(&mut self) -> Option<Vec<u8>> {
        matches!(self.inbound, TcpInbound::Collected).then(|| {
            self.inbound = TcpInbound::Drop;
            std::mem::take(&mut self.collected)
        })
    }

    fn recycle(&mut self, mut collected: Vec<u8>) {
        collected.clear();
        self.collected = collected;
    }

    fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        self.queue.retain(keep);
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    fn data_in_queued(&self) -> usize {
        self.queue.data()
    }

    fn is_crowded(&self) -> bool {
        self.queue.is_crowded()
    }

    fn trim(&mut self, has_tasks: bool) {
        self.queue.trim();
        if !has_tasks {
            self.transfers = Vec::new();
        }
        if self.framer.is_between() && !matches!(self.inbound, TcpInbound::Collected) {
            self.collected = Vec::new();
        }
    }
}
