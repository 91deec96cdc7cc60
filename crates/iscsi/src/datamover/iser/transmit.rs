//! The way out: RDMA Writes and Sends, numbered when they are posted (RFC 7145 §7.3.2, §7.3.5).

use rdma::verbs::{self, QueuePair, SendHeader, Stag, Work};
use scsi::medium::Lease;
use scsi::task::SenseBytes;

use super::receive::NO_READS;
use super::{IserMover, message};
use crate::datamover::{ControlPdu, Notice, TaskEnding, TaskSlot};
use crate::session::Session;
use crate::wire::bhs::{Bhs, Stamps};
use crate::wire::iser::{AdvertisedBuffers, IserHeader};
use crate::wire::scsi_command::{COMPLETED, ScsiResponse};
use crate::wire::serial::DataSn;

/// What waits to be posted.
#[derive(Debug)]
pub(super) enum IserOut<L> {
    /// A PDU that is no SCSI Response.
    Control(Box<ControlPdu>),
    /// The response of a command.
    Status(TaskSlot),
    /// Data-In of a command.
    Data {
        /// Of which command.
        slot: TaskSlot,
        /// Where it goes.
        to: verbs::Tag,
        /// The data.
        data: L,
    },
}

/// What was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostedOut {
    /// A Send of a control PDU that is no SCSI Response.
    Control,
    /// Another Send.
    Message,
    /// An RDMA Write of so many bytes.
    Write(usize),
}

impl<L: Lease> Session<L, IserMover<L>> {
    /// Gives up the reads of commands that were aborted, and ends the session where data is wanted
    /// that cannot be read. Returns whether there was anything: `poll` may have something to say
    /// then. To be called after each event and each call for the device server, before the queue
    /// pair receives more: a read that is not given up still fills its memory.
    #[inline]
    pub fn settle(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let mover = &self.connection.mover;
        let any = mover.broken.is_some() || mover.reads.has_cancelled();
        if any {
            self.settle_now(pair);
        }
        any
    }

    #[cold]
    fn settle_now(&mut self, pair: &mut impl QueuePair<L>) {
        let mover = &mut self.connection.mover;
        while let Some(read) = mover.reads.pop_cancelled() {
            pair.cancel(read);
        }
        if let Some(violation) = mover.broken.take() {
            self.notice(Notice::Broken(None, violation));
        }
    }

    /// Posts what is to be sent and asked for, as far as there is room; returns whether it did
    /// anything. `poll` may have something to say after it, where data is wanted and the queue pair
    /// allows no reads.
    pub fn transmit(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let mut any = self.settle(pair);
        let mover = &mut self.connection.mover;
        any |= mover.answer_hello(pair);
        any |= mover.read(pair);
        if mover.cannot_read(pair.limits().ord) {
            any = true;
            self.notice(Notice::Broken(None, NO_READS));
        }
        while pair.limits().room > 0
            && let Some(next) = self.connection.mover.pop()
        {
            any = true;
            match next {
                IserOut::Data { to, data, .. } => self.connection.mover.write(pair, to, data),
                IserOut::Status(slot) => self.post_status(pair, slot),
                IserOut::Control(control) => self.post_control(pair, &control),
            }
        }
        if !self.connection.mover.posted.is_empty() {
            self.on_its_way();
        }
        any
    }

    fn post_status(&mut self, pair: &mut impl QueuePair<L>, slot: TaskSlot) {
        let Some((ending, mut pdu, invalidate)) = self.connection.mover.response(slot) else {
            return;
        };
        pdu.stamps = self.response_leaves(slot);
        let invalidate = invalidate.filter(|_| pair.limits().can_invalidate);
        let sense = ending.sense.as_slice();
        if sense.is_empty() {
            self.connection
                .mover
                .send(pair, (pdu.encode(), &[]), invalidate);
        } else {
            self.sense_leaves(&ending.sense, pdu.stamps.stat_sn);
            let mut segment = [0; 2 + SenseBytes::MAX];
            let len = 2 + sense.len();
            segment[..2].copy_from_slice(&(sense.len() as u16).to_be_bytes());
            segment[2..len].copy_from_slice(sense);
            let pdu = (pdu.encode(), &segment[..len]);
            self.connection.mover.send(pair, pdu, invalidate);
        }
        self.connection.mover.posted.push_back(PostedOut::Message);
    }

    fn post_control(&mut self, pair: &mut impl QueuePair<L>, control: &ControlPdu) {
        let mut bhs = control.bhs;
        let stamps = self.control_leaves(control);
        bhs.stamp(stamps);
        let mover = &mut self.connection.mover;
        mover.unexpected.sent(control, stamps.stat_sn);
        mover.posted.push_back(PostedOut::Control);
        mover.send(pair, (bhs, &control.data), None);
    }
}

// Queue pairs of devices are the second kind that these are used with: without it they are calls,
// which take 170 instructions of a READ over software iWARP.
impl<L: Lease> IserMover<L> {
    /// What is posted next.
    #[inline(always)]
    fn pop(&mut self) -> Option<IserOut<L>> {
        if !self.hello.is_over() {
            return None;
        }
        if let Some(pdu) = self.unexpected.pop() {
            self.controls += 1;
            return Some(IserOut::Control(pdu));
        }
        while !self.is_held_back() {
            match self.queue.pop_front()? {
                IserOut::Control(pdu) if !self.unexpected.may_leave(&pdu) => {
                    self.controls -= 1;
                    self.unexpected.push(pdu);
                }
                out => return Some(out),
            }
        }
        None
    }

    /// Answers a Hello, before all else that leaves (RFC 7145 §5.1.3).
    fn answer_hello(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let Some(reply) = self.hello.take_reply() else {
            return false;
        };
        let header = IserHeader::HelloReply(reply).encode();
        if let Some(header) = SendHeader::new(&[&header]) {
            pair.post(Work::Send {
                header,
                data: None,
                invalidate: None,
            });
            self.posted.push_back(PostedOut::Message);
        }
        true
    }

    /// Asks for data that is wanted.
    fn read(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let mut any = false;
        let ord = self.hello.ord(pair.limits().ord);
        while pair.limits().room > 0
            && let Some(read) = self.reads.pop(ord, self.keys.max_burst)
        {
            any = true;
            pair.post(read);
        }
        any
    }

    /// Whether data is wanted that cannot be asked for: then the connection ends (RFC 7145 §7.3.6).
    fn cannot_read(&self, ord: u16) -> bool {
        self.hello.is_over() && self.hello.ord(ord) == 0 && self.reads.are_waiting()
    }

    #[inline(always)]
    fn write(&mut self, pair: &mut impl QueuePair<L>, to: verbs::Tag, data: L) {
        self.posted.push_back(PostedOut::Write(data.len()));
        pair.post(Work::Write { to, from: data });
    }

    /// Posts a PDU.
    #[inline(always)]
    fn send(&self, pair: &mut impl QueuePair<L>, pdu: (Bhs, &[u8]), invalidate: Option<Stag>) {
        if let Some(send) = message::send(AdvertisedBuffers::default(), pdu, invalidate) {
            pair.post(send);
        }
    }

    /// The response of a command, but for its numbers, and the STag that the initiator does not
    /// want used any more. As no Data-In PDU and no R2T reaches it, none is counted.
    #[inline(always)]
    fn response(&mut self, slot: TaskSlot) -> Option<(TaskEnding, ScsiResponse, Option<Stag>)> {
        let buffers = self.task(slot)?;
        let ending = buffers.ending.take()?;
        let advertised = buffers.read.or(buffers.write);
        let pdu = ScsiResponse {
            residual: ending.residual,
            read_residual: ending.read_residual,
            response: COMPLETED,
            status: ending.status as u8,
            qualifier: ending.qualifier,
            itt: buffers.itt,
            snack_tag: 0,
            stamps: Stamps::default(),
            exp_data_sn: DataSn(0),
        };
        Some((ending, pdu, advertised.map(|tag| tag.stag)))
    }

    /// A Send has left.
    #[inline(always)]
    pub(super) fn sent(&mut self) {
        let is_send = |out: &PostedOut| !matches!(out, PostedOut::Write(_));
        if let Some(PostedOut::Control) = self.left(is_send) {
            self.controls -= 1;
        }
    }

    /// An RDMA Write has left.
    #[inline(always)]
    pub(super) fn written(&mut self) {
        let is_write = |out: &PostedOut| matches!(out, PostedOut::Write(_));
        if let Some(PostedOut::Write(len)) = self.left(is_write) {
            self.data -= len;
            self.moved = self.moved.saturating_add(len as u32);
        }
    }

    /// Takes the oldest of what was posted that is of a kind. Most often, and over iWARP always,
    /// that is the oldest of all.
    fn left(&mut self, is_it: impl Fn(&PostedOut) -> bool) -> Option<PostedOut> {
        if self.posted.front().is_some_and(&is_it) {
            return self.posted.pop_front();
        }
        let at = self.posted.iter().position(is_it)?;
        self.posted.remove(at)
    }
}
