//! The datamover over RDMA, at a target: iSER (RFC 7145).
//!
//! It has no I/O and owns no queue pair. Whoever joins the two makes these calls:
//!
//! | call | when |
//! |---|---|
//! | [`Session::receive`] | the queue pair has got something from its wire or its device |
//! | [`Session::poll`] | after each other call, until `None` |
//! | [`Session::settle`] | after each event and after each call for the device server, before the queue pair gets more: it gives up the reads of commands that were aborted, whose memory would be filled otherwise |
//! | [`Session::transmit`] | when there is room; it may be left out while a send is in flight, even if the queue pair still receives |
//! | [`Session::has_put_out`] | when what the queue pair put out has left, and it puts out more or nothing |
//!
//! `receive` and `transmit` settle by themselves, too. A connection that is to be closed after
//! [`Session::queued`] has come to 0 needs a limit for that, as a logout waits for reads.
//!
//! - **Data and responses leave in one order**, numbered when they are posted: an RDMA Write
//!   reaches memory before the Send behind it is told. A status never goes along with data (RFC
//!   7145 §7.3.2).
//! - **Reads have a queue of their own** and are posted only while fewer than ORD are outstanding,
//!   as a queue pair holds back everything behind a read that waits.
//! - **The response to a task management function, or to a logout, waits** until the reads of
//!   aborted tasks are over: the initiator may withdraw their memory when it has heard it (RFC 7145
//!   §7.3.3). Meanwhile messages are taken, as over iWARP the end of those reads comes behind them
//!   in one stream; above [`MAX_HELD_CONTROLS`] PDUs that wait the connection ends.
//! - **What the initiator does not expect** (pings, asynchronous messages, Rejects) steps aside
//!   while too much of that is unacknowledged (RFC 7145 §8.1.2); responses go on.
//!
//! | what | file |
//! |---|---|
//! | messages that come, and the rules for their headers | `receive.rs` |
//! | messages and data that leave | `transmit.rs` |
//! | a PDU as a message | `message.rs` |
//! | RDMA Reads | `reads.rs` |
//! | PDUs that are not expected | `unexpected.rs` |
//!
//! [`Session::poll`]: crate::session::Session::poll
//! [`Session::queued`]: crate::session::Session::queued
//! [`Session::settle`]: crate::session::Session::settle
//! [`Session::receive`]: crate::session::Session::receive
//! [`Session::transmit`]: crate::session::Session::transmit
//! [`Session::has_put_out`]: crate::session::Session::has_put_out

pub(crate) mod message;
mod reads;
mod receive;
mod transmit;
mod unexpected;

use std::collections::VecDeque;

use rdma::verbs;
use scsi::medium::{Lease, Now};
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

use self::reads::TaskReads;
use self::receive::{Announced, HelloState, InboundSegment, NO_WRITE_STAG};
use self::transmit::{IserOut, PostedOut};
use self::unexpected::UnexpectedPdus;
use super::{ControlPdu, Datamover, TaskEnding, TaskSlot, WantedData};
use crate::parameters::Operational;
use crate::target::TargetLimits;
use crate::wire::bhs::{Itt, Opcode};
use crate::wire::serial::StatSn;

/// A connection's datamover over RDMA.
#[derive(Debug)]
pub struct IserMover<L> {
    keys: IserMoverKeys,
    hello: HelloState,
    /// Messages that were not looked at.
    received: VecDeque<Vec<u8>>,
    /// The rest of the message whose header was told last.
    segment: Option<InboundSegment>,
    /// What goes with the header that is being told.
    announced: Announced,
    ahs: Vec<u8>,
    /// As the initiator told it last.
    exp_stat_sn: StatSn,
    /// By [`TaskSlot`].
    tasks: Vec<TaskBuffers>,
    reads: TaskReads<L>,
    /// A rule that the initiator broke, found where no notice can be given.
    broken: Option<Violation>,
    queue: VecDeque<IserOut<L>>,
    unexpected: UnexpectedPdus,
    /// What the queue pair has not told to have left, oldest first.
    posted: VecDeque<PostedOut>,
    /// Bytes of Data-In in `queue` and in `posted`.
    data: usize,
    /// Control PDUs in `queue` and in `posted`.
    controls: usize,
    /// Bytes of data that came or left, for [`Datamover::take_moved`].
    moved: u32,
}

/// What was agreed upon, as far as a datamover goes by it. Lengths are in bytes.
#[derive(Clone, Copy, Debug)]
struct IserMoverKeys {
    own_data_segment: u32,
    max_burst: u32,
    first_burst: u32,
    offset_skips_unsolicited: bool,
}

impl From<&Operational> for IserMoverKeys {
    fn from(keys: &Operational) -> Self {
        Self {
            own_data_segment: keys.own_data_segment,
            max_burst: keys.max_burst,
            first_burst: keys.first_burst,
            offset_skips_unsolicited: keys.iser.offset_skips_unsolicited(),
        }
    }
}

/// Memory of the initiator for one command: the Remote Mapping (RFC 7145 §7.3.1).
#[derive(Debug)]
struct TaskBuffers {
    itt: Itt,
    /// Where the first byte of all write data would be, sent with the command or not.
    write: Option<verbs::Tag>,
    read: Option<verbs::Tag>,
    /// No more is asked for.
    is_frozen: bool,
    /// What the command ended with, while its response waits to be posted.
    ending: Option<TaskEnding>,
}

impl TaskBuffers {
    const fn new() -> Self {
        Self {
            itt: Itt::NONE,
            write: None,
            read: None,
            is_frozen: false,
            ending: None,
        }
    }
}

/// Control PDUs that may wait before the session takes nothing more.
const MAX_CONTROLS: usize = 32;

/// Control PDUs that may wait behind one that is held back: a function for each of the largest
/// window, or as many pings. Reads that were given up are over within a round trip or two.
const MAX_HELD_CONTROLS: usize = 256;

impl<L> IserMover<L> {
    fn task(&mut self, task: TaskSlot) -> Option<&mut TaskBuffers> {
        self.tasks.get_mut(task.index())
    }
}

impl<L: Lease> Datamover<L> for IserMover<L> {
    fn new(keys: &Operational, _: &TargetLimits) -> Self {
        Self {
            keys: keys.into(),
            hello: HelloState::new(keys.iser.hello_required),
            received: VecDeque::new(),
            segment: None,
            announced: Announced::default(),
            ahs: Vec::new(),
            exp_stat_sn: StatSn(0),
            tasks: Vec::new(),
            reads: TaskReads::new(),
            broken: None,
            queue: VecDeque::new(),
            unexpected: UnexpectedPdus::new(keys.iser.unexpected_pdus),
            posted: VecDeque::new(),
            data: 0,
            controls: 0,
            moved: 0,
        }
    }

    fn notice_keys(&mut self, keys: &Operational) {
        self.keys = keys.into();
    }

    fn allocate(&mut self, task: TaskSlot, itt: Itt, _: Lun) {
        if self.tasks.len() <= task.index() {
            self.tasks.resize_with(task.index() + 1, TaskBuffers::new);
        }
        self.tasks[task.index()] = TaskBuffers {
            itt,
            write: self.announced.write,
            read: self.announced.read,
            is_frozen: false,
            ending: None,
        };
    }

    /// What was posted of the task leaves still, before the next message.
    fn deallocate(&mut self, task: TaskSlot) {
        self.retain_queued(|other| other != task);
        self.reads.forget(task);
    }

    /// While something is held back, what is not expected steps aside at once: events of units
    /// must not count against the initiator.
    fn send_control(&mut self, pdu: ControlPdu) {
        let pdu = Box::new(pdu);
        if self.is_held_back() && unexpected::is_unexpected(&pdu) {
            return self.unexpected.push(pdu);
        }
        self.controls += 1;
        self.queue.push_back(IserOut::Control(pdu));
    }

    fn send_response(&mut self, task: TaskSlot, ending: TaskEnding, _: bool) {
        if let Some(buffers) = self.task(task) {
            buffers.ending = Some(ending);
            self.queue.push_back(IserOut::Status(task));
        }
    }

    fn put_data(&mut self, task: TaskSlot, offset: u32, data: L) {
        let to = self.task(task).and_then(|buffers| buffers.read);
        if let Some(to) = to {
            self.data += data.len();
            self.queue.push_back(IserOut::Data {
                slot: task,
                to: to.plus(offset.into()),
                data,
            });
        }
    }

    fn get_data(&mut self, now: Now, task: TaskSlot, wanted: WantedData<L>) {
        let Some(buffers) = self.tasks.get(task.index()) else {
            return;
        };
        match buffers.write {
            _ if buffers.is_frozen => {}
            Some(from) => self.reads.want((now, task), from, wanted),
            None => self.broken = Some(NO_WRITE_STAG),
        }
    }

    fn stop_asking(&mut self, task: TaskSlot) {
        if let Some(buffers) = self.task(task) {
            buffers.is_frozen = true;
        }
        self.reads.stop_asking(task);
    }

    fn drop_data(&mut self, task: TaskSlot) {
        self.stop_asking(task);
        self.reads.cancel(task);
    }

    fn is_getting(&self, task: TaskSlot) -> bool {
        self.reads.is_getting(task)
    }

    fn oldest_get(&self) -> Option<Now> {
        self.reads.oldest()
    }

    fn take_moved(&mut self) -> u32 {
        std::mem::take(&mut self.moved)
    }

    fn ahs(&self) -> &[u8] {
        &self.ahs
    }

    /// A segment is told when there is memory for it, so none is kept here.
    fn take_collected(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn recycle(&mut self, _: Vec<u8>) {}

    fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        self.reads.retain(&keep);
        self.retain_queued(keep);
    }

    /// What an initiator has to acknowledge something for does not count: it may never leave.
    fn queued(&self) -> usize {
        let single = [
            self.hello.has_reply(),
            self.broken.is_some(),
            self.unexpected.has_next(),
        ];
        let single = single.into_iter().filter(|is_due| *is_due).count();
        self.queue.len() + self.reads.to_do() + single
    }

    /// RDMA Writes tell nothing of it.
    fn tells_window(&self) -> bool {
        let is_message = |out: &IserOut<L>| !matches!(out, IserOut::Data { .. });
        self.queue.iter().any(is_message) || self.unexpected.has_next()
    }

    fn data_in_queued(&self) -> usize {
        self.data
    }

    fn is_crowded(&self) -> bool {
        self.controls >= MAX_CONTROLS && !self.is_held_back()
    }

    fn trim(&mut self, has_tasks: bool) {
        self.queue.shrink_to_fit();
        self.posted.shrink_to_fit();
        self.received.shrink_to_fit();
        self.ahs = Vec::new();
        self.reads.trim();
        if !has_tasks {
            self.tasks = Vec::new();
        }
    }
}

impl<L: Lease> IserMover<L> {
    fn retain_queued(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        let left = &mut self.data;
        self.queue.retain(|out| match out {
            IserOut::Control(_) => true,
            IserOut::Status(slot) => keep(*slot),
            IserOut::Data { slot, data, .. } => {
                let kept = keep(*slot);
                if !kept {
                    *left -= data.len();
                }
                kept
            }
        });
    }

    /// Whether the oldest of what is queued has to wait for reads that were given up.
    fn is_held_back(&self) -> bool {
        let lets_withdraw = |out: &IserOut<L>| match out {
            IserOut::Control(pdu) => matches!(
                pdu.bhs.opcode(),
                Opcode::TaskResponse | Opcode::LogoutResponse
            ),
            IserOut::Status(_) | IserOut::Data { .. } => false,
        };
        self.queue.front().is_some_and(lets_withdraw) && self.reads.are_draining()
    }

    /// Whether more waits behind what is held back than any initiator needs.
    fn is_flooded(&self) -> bool {
        self.controls >= MAX_HELD_CONTROLS
    }
}
