//! What leaves: messages, cut into segments of at most MULPDU (RFC 5041 §5.2).

use std::collections::VecDeque;

use scsi::medium::Lease;

use super::Stream;
use crate::iwarp::ddp::{
    Opcode, QueueNumber, ReadRequest, TAGGED_LEN, TaggedHeader, UNTAGGED_LEN, UntaggedHeader,
};
use crate::iwarp::sink::FpduSink;
use crate::verbs::{Completion, ReadId, SendHeader, Stag, Tag, Work};

/// What was posted and has not left.
#[derive(Debug)]
pub(super) struct Outbound<L> {
    queue: VecDeque<Work<L>>,
    /// Bytes of the oldest one that have left.
    sent: usize,
    /// Which message a segment has begun and not ended.
    current: Option<Source>,
    /// Where the message came from that has ended last.
    last: Source,
    /// Message sequence number of the next message, by queue.
    msn: [u32; QueueNumber::COUNT],
    /// An FPDU was put out.
    pub(super) has_begun: bool,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// What was posted.
    Posted,
    /// Reads of the peer.
    Response,
}

impl<L> Outbound<L> {
    pub(super) const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            sent: 0,
            current: None,
            last: Source::Response,
            msn: [1; QueueNumber::COUNT],
            has_begun: false,
        }
    }

    /// The same, without what was posted.
    pub(super) fn with_other_memory<M>(self) -> Outbound<M> {
        Outbound {
            queue: VecDeque::new(),
            sent: self.sent,
            current: self.current,
            last: self.last,
            msn: self.msn,
            has_begun: self.has_begun,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, work: Work<L>) {
        self.queue.push_back(work);
    }

    /// Takes a read out that was not asked for yet.
    pub(super) fn cancel(&mut self, read: ReadId) -> Option<L> {
        let is_it = |work: &Work<L>| matches!(work, Work::Read { id, .. } if *id == read);
        let at = self.queue.iter().position(is_it)?;
        match self.queue.remove(at)? {
            Work::Read { into, .. } => Some(into),
            Work::Send { .. } | Work::Write { .. } => None,
        }
    }

    /// A segment of a message was put out.
    fn put(&mut self, from: Source, last: bool) {
        self.has_begun = true;
        if last {
            self.current = None;
            self.last = from;
        } else {
            self.current = Some(from);
        }
    }

    /// The header of an untagged message that has one segment, or of its next segment.
    fn untagged(&self, opcode: Opcode, last: bool, offset: usize) -> UntaggedHeader {
        let queue = QueueNumber::of(opcode);
        UntaggedHeader {
            last,
            opcode,
            invalidate: Stag(0),
            queue,
            msn: self.msn[queue.0 as usize],
            offset: offset as u32,
        }
    }

    /// The oldest message of `queue` has left; it is the oldest of what was posted.
    fn message_left(&mut self, queue: QueueNumber) {
        let msn = &mut self.msn[queue.0 as usize];
        *msn = msn.wrapping_add(1);
    }

    /// The oldest of what was posted has left.
    fn pop(&mut self) {
        self.queue.pop_front();
        self.sent = 0;
    }
}

impl<L: Lease> Stream<L> {
    /// Puts what is to be sent into `out`, until that is full; returns whether there was anything.
    /// To be called when all that was put out before has left.
    pub fn transmit(&mut self, out: &mut impl FpduSink<L>) -> bool {
        let mut any = false;
        while !out.is_full() && self.transmit_fpdu(out) {
            any = true;
        }
        any
    }

    /// Puts one FPDU; `false` if there is none.
    fn transmit_fpdu(&mut self, out: &mut impl FpduSink<L>) -> bool {
        if let Some(terminate) = self.terminate.take() {
            let header = self.outbound.untagged(Opcode::TERMINATE, true, 0);
            let data = L::from_bytes(terminate.encode());
            self.writer.put(out, &header.encode(), &[], Some(data));
            return true;
        }
        match self.turn() {
            Some(Source::Posted) => self.send_posted(out),
            Some(Source::Response) => self.send_response(out),
            None => return false,
        }
        true
    }

    /// Whose segment is next. After the end there are none.
    fn turn(&self) -> Option<Source> {
        if !self.may_send() {
            return None;
        }
        if self.outbound.current.is_some() {
            return self.outbound.current;
        }
        let posted = self.can_begin().then_some(Source::Posted);
        let response = self.peer_reads.front().map(|_| Source::Response);
        match self.outbound.last {
            Source::Posted => response.or(posted),
            Source::Response => posted.or(response),
        }
    }

    /// Whether the oldest of what was posted may leave: reads wait for others of ours.
    fn can_begin(&self) -> bool {
        match self.outbound.queue.front() {
            Some(Work::Read { .. }) => self.own_reads.len() < usize::from(self.agreed.ord),
            Some(Work::Send { .. } | Work::Write { .. }) => true,
            None => false,
        }
    }

    fn send_posted(&mut self, out: &mut impl FpduSink<L>) {
        match self.outbound.queue.front() {
            Some(Work::Send {
                header,
                data,
                invalidate,
            }) => {
                let message = Message {
                    header: *header,
                    data: data.clone(),
                };
                let invalidate = *invalidate;
                self.send_message(out, &message, invalidate);
            }
            Some(Work::Write { to, from }) => {
                let (to, from) = (*to, from.clone());
                self.send_write(out, to, &from);
            }
            Some(Work::Read { id, from, into }) => {
                let (id, from, into) = (*id, *from, into.clone());
                self.send_read(out, id, from, into);
            }
            None => {}
        }
    }

    fn send_message(
        &mut self,
        out: &mut impl FpduSink<L>,
        message: &Message<L>,
        invalidate: Option<Stag>,
    ) {
        let at = self.outbound.sent;
        let len = (message.len() - at).min(self.mulpdu - UNTAGGED_LEN);
        let last = at + len == message.len();
        let opcode = match invalidate {
            Some(_) => Opcode::SEND_INVALIDATE,
            None => Opcode::SEND,
        };
        let header = UntaggedHeader {
            invalidate: invalidate.unwrap_or(Stag(0)),
            ..self.outbound.untagged(opcode, last, at)
        };
        let (inline, data) = message.part(at, len);
        self.writer.put(out, &header.encode(), inline, data);
        self.outbound.sent += len;
        self.outbound.put(Source::Posted, last);
        if last {
            self.outbound.message_left(QueueNumber::SEND);
            self.outbound.pop();
            self.completions.push_back(Completion::Sent);
        }
    }

    fn send_write(&mut self, out: &mut impl FpduSink<L>, to: Tag, from: &L) {
        let at = self.outbound.sent;
        let len = (from.len() - at).min(self.mulpdu - TAGGED_LEN);
        let last = at + len == from.len();
        let header = TaggedHeader {
            last,
            opcode: Opcode::WRITE,
            to: to.plus(at as u64),
        };
        let data = from.slice(at, len);
        self.writer.put(out, &header.encode(), &[], Some(data));
        self.outbound.sent += len;
        self.outbound.put(Source::Posted, last);
        if last {
            self.outbound.pop();
            self.completions.push_back(Completion::Written);
        }
    }

    fn send_read(&mut self, out: &mut impl FpduSink<L>, id: ReadId, from: Tag, into: L) {
        let sink = self.tags.draw();
        let request = ReadRequest {
            sink: Tag {
                stag: sink,
                offset: 0,
            },
            size: into.len() as u32,
            source: from,
        };
        let header = self.outbound.untagged(Opcode::READ_REQUEST, true, 0);
        self.writer
            .put::<L>(out, &header.encode(), &request.encode(), None);
        self.own_reads.begin(id, sink, into);
        self.outbound.put(Source::Posted, true);
        self.outbound.message_left(QueueNumber::READ_REQUEST);
        self.outbound.pop();
    }

    /// A segment of the response to the oldest read of the peer. Memory that was withdrawn since it
    /// was asked for is not sent: the stream ends.
    fn send_response(&mut self, out: &mut impl FpduSink<L>) {
        let Some(read) = self.peer_reads.front() else {
            return;
        };
        let len = (read.rest.size as usize).min(self.mulpdu - TAGGED_LEN);
        let data = if len > 0 {
            match self.tags.part(read.rest.source, len) {
                Ok(data) => Some(data),
                Err(error) => return self.fail(error.of_request(), &read.segment()),
            }
        } else {
            None
        };
        let last = len == read.rest.size as usize;
        let header = TaggedHeader {
            last,
            opcode: Opcode::READ_RESPONSE,
            to: read.rest.sink,
        };
        self.writer.put(out, &header.encode(), &[], data);
        self.peer_reads.advance(len);
        self.outbound.put(Source::Response, last);
    }
}

/// A message that is sent: a header, then data.
struct Message<L> {
    header: SendHeader,
    data: Option<L>,
}

impl<L: Lease> Message<L> {
    fn len(&self) -> usize {
        self.header.as_slice().len() + self.data.as_ref().map_or(0, Lease::len)
    }

    /// The part of `len` bytes from `at`, which is inside.
    fn part(&self, at: usize, len: usize) -> (&[u8], Option<L>) {
        let header = self.header.as_slice();
        let begin = at.min(header.len());
        let end = (at + len).min(header.len());
        let len = len - (end - begin);
        let data = self.data.as_ref().filter(|_| len > 0);
        let from = at.max(header.len()) - header.len();
        (&header[begin..end], data.map(|data| data.slice(from, len)))
    }
}
