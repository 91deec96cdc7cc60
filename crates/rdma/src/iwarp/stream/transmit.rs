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
    queue: VecDeque<PostedWork<L>>,
    /// How the messages in `queue` begin, oldest first.
    beginnings: VecDeque<SendHeader>,
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

/// An operation that was posted. How a message begins stands apart: of all that is in the queue
/// it is by far the longest, and most of that is not moved this way.
#[derive(Debug)]
enum PostedWork<L> {
    Send {
        data: Option<L>,
        invalidate: Option<Stag>,
    },
    Write {
        to: Tag,
        from: L,
    },
    Read {
        id: ReadId,
        from: Tag,
        into: L,
    },
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
            beginnings: VecDeque::new(),
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
            beginnings: VecDeque::new(),
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

    #[inline]
    pub(super) fn push(&mut self, work: Work<L>) {
        self.queue.push_back(match work {
            Work::Send {
                header,
                data,
                invalidate,
            } => {
                self.beginnings.push_back(header);
                PostedWork::Send { data, invalidate }
            }
            Work::Write { to, from } => PostedWork::Write { to, from },
            Work::Read { id, from, into } => PostedWork::Read { id, from, into },
        });
    }

    /// Takes a read out that was not asked for yet.
    pub(super) fn cancel(&mut self, read: ReadId) -> Option<L> {
        let is_it =
            |work: &PostedWork<L>| matches!(work, PostedWork::Read { id, .. } if *id == read);
        let at = self.queue.iter().position(is_it)?;
        match self.queue.remove(at)? {
            PostedWork::Read { into, .. } => Some(into),
            PostedWork::Send { .. } | PostedWork::Write { .. } => None,
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
            Some(PostedWork::Read { .. }) => self.own_reads.len() < usize::from(self.agreed.ord),
            Some(PostedWork::Send { .. } | PostedWork::Write { .. }) => true,
            None => false,
        }
    }

    fn send_posted(&mut self, out: &mut impl FpduSink<L>) {
        match self.outbound.queue.front() {
            Some(PostedWork::Send { .. }) => self.send_message(out),
            Some(PostedWork::Write { .. }) => self.send_write(out),
            Some(PostedWork::Read { .. }) => self.send_read(out),
            None => {}
        }
    }

    fn send_message(&mut self, out: &mut impl FpduSink<L>) {
        let outbound = &self.outbound;
        let (Some(PostedWork::Send { data, invalidate }), Some(beginning)) =
            (outbound.queue.front(), outbound.beginnings.front())
        else {
            return;
        };
        let (beginning, at) = (beginning.as_slice(), outbound.sent);
        let left = beginning.len() + data.as_ref().map_or(0, Lease::len) - at;
        let len = left.min(self.mulpdu - UNTAGGED_LEN);
        let last = len == left;
        let opcode = match invalidate {
            Some(_) => Opcode::SEND_INVALIDATE,
            None => Opcode::SEND,
        };
        let header = UntaggedHeader {
            invalidate: invalidate.unwrap_or(Stag(0)),
            ..outbound.untagged(opcode, last, at)
        };
        let (inline, data) = part((beginning, data.as_ref()), at, len);
        self.writer.put(out, &header.encode(), inline, data);
        self.outbound.put(Source::Posted, last);
        if last {
            self.outbound.message_left(QueueNumber::SEND);
            self.outbound.beginnings.pop_front();
            self.outbound.pop();
            self.completions.push_back(Completion::Sent);
        } else {
            self.outbound.sent += len;
        }
    }

    fn send_write(&mut self, out: &mut impl FpduSink<L>) {
        let Some(PostedWork::Write { to, from }) = self.outbound.queue.front() else {
            return;
        };
        let at = self.outbound.sent;
        let left = from.len() - at;
        let len = left.min(self.mulpdu - TAGGED_LEN);
        let last = len == left;
        let header = TaggedHeader {
            last,
            opcode: Opcode::WRITE,
            to: to.plus(at as u64),
        };
        let data = from.slice(at, len);
        self.writer.put(out, &header.encode(), &[], Some(data));
        self.outbound.put(Source::Posted, last);
        if last {
            self.outbound.pop();
            self.completions.push_back(Completion::Written);
        } else {
            self.outbound.sent += len;
        }
    }

    fn send_read(&mut self, out: &mut impl FpduSink<L>) {
        let Some(PostedWork::Read { id, from, into }) = self.outbound.queue.front() else {
            return;
        };
        let (id, from, into) = (*id, *from, into.clone());
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
        let (header, request) = (header.encode(), request.encode());
        self.writer.put::<L, _>(out, &header, &request, None);
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

/// The part of `len` bytes from `at` of a message: of its beginning, and of the data behind that.
fn part<'a, L: Lease>(
    (beginning, data): (&'a [u8], Option<&L>),
    at: usize,
    len: usize,
) -> (&'a [u8], Option<L>) {
    let inline = &beginning[at.min(beginning.len())..beginning.len().min(at + len)];
    let from = at.saturating_sub(beginning.len());
    let data = data.filter(|_| len > inline.len());
    (
        inline,
        data.map(|data| data.slice(from, len - inline.len())),
    )
}
