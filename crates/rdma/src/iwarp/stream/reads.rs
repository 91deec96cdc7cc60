//! Reads that are outstanding: ours, whose responses come, and the peer's, which are answered in
//! order (RFC 5040 §5.2).

use std::collections::VecDeque;

use scsi::medium::Lease;

use crate::iwarp::ddp::{ReadRequest, TaggedHeader, UntaggedHeader};
use crate::iwarp::terminate::TerminateCode;
use crate::verbs::{Completion, ReadId, Stag, Tag};

/// Reads of ours that were asked for, oldest first.
#[derive(Debug)]
pub(super) struct OwnReads<L>(VecDeque<OwnRead<L>>);

#[derive(Debug)]
struct OwnRead<L> {
    id: ReadId,
    /// The STag that the response has to have. It is not among those that the peer may write to.
    sink: Stag,
    size: u32,
    /// Bytes that have come.
    got: u32,
    /// What is filled; nothing, of a read that was cancelled.
    into: Option<L>,
}

impl<L> OwnReads<L> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<L: Lease> OwnReads<L> {
    /// A read whose request leaves now.
    pub(super) fn begin(&mut self, id: ReadId, sink: Stag, into: L) {
        self.0.push_back(OwnRead {
            id,
            sink,
            size: into.len() as u32,
            got: 0,
            into: Some(into),
        });
    }

    /// Gives the memory back; what still comes for it is dropped.
    pub(super) fn cancel(&mut self, id: ReadId) -> Option<L> {
        let mut reads = self.0.iter_mut();
        let read = reads.find(|read| read.id == id && read.into.is_some());
        read.and_then(|read| read.into.take())
    }

    /// A segment of the response to the oldest read: nothing of it may be elsewhere, more, or less
    /// than was asked for.
    pub(super) fn respond(
        &mut self,
        header: &TaggedHeader,
        payload: &[u8],
    ) -> Result<Option<Completion<L>>, TerminateCode> {
        let read = self.0.front_mut().ok_or(TerminateCode::UNEXPECTED_OPCODE)?;
        let end = read.check(header, payload.len())?;
        if let Some(into) = &mut read.into {
            into.copy_in(read.got as usize, payload);
        }
        read.got = end;
        if !header.last {
            return Ok(None);
        }
        Ok(self.0.pop_front().map(OwnRead::completion))
    }
}

impl<L> OwnRead<L> {
    /// Where a segment ends within the read.
    fn check(&self, header: &TaggedHeader, len: usize) -> Result<u32, TerminateCode> {
        let end = u64::from(self.got) + len as u64;
        // STag and offset of a segment without payload count for nothing (RFC 5041 §5.2).
        if len > 0 && header.to.stag != self.sink {
            return Err(TerminateCode::INVALID_STAG);
        }
        let is_next = len == 0 || header.to.offset == u64::from(self.got);
        let is_short = header.last && end < u64::from(self.size);
        if !is_next || is_short || end > u64::from(self.size) {
            return Err(TerminateCode::BOUNDS);
        }
        Ok(end as u32)
    }

    fn completion(self) -> Completion<L> {
        match self.into {
            Some(into) => Completion::Got { id: self.id, into },
            None => Completion::Drained(self.id),
        }
    }
}

/// Reads of the peer that were not answered in full, oldest first.
#[derive(Debug)]
pub(super) struct PeerReads(VecDeque<PeerRead>);

/// A read of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerRead {
    /// The header that it came with, for a Terminate.
    pub(super) header: UntaggedHeader,
    /// What is left of it: both places go on, the size goes down.
    pub(super) rest: ReadRequest,
}

impl PeerReads {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, header: UntaggedHeader, rest: ReadRequest) {
        self.0.push_back(PeerRead { header, rest });
    }

    /// The one that is to be answered.
    pub(super) fn front(&self) -> Option<PeerRead> {
        self.0.front().copied()
    }

    /// `len` bytes were sent; returns whether the response is whole.
    pub(super) fn advance(&mut self, len: usize) -> bool {
        let Some(read) = self.0.front_mut() else {
            return true;
        };
        read.rest = read.after(len);
        let is_whole = read.rest.size == 0;
        if is_whole {
            self.0.pop_front();
        }
        is_whole
    }
}

impl PeerRead {
    /// What is left of it after `len` more bytes.
    fn after(&self, len: usize) -> ReadRequest {
        let on = |tag: Tag| tag.plus(len as u64);
        ReadRequest {
            sink: on(self.rest.sink),
            size: self.rest.size - len as u32,
            source: on(self.rest.source),
        }
    }

    /// The segment that the peer is told of when the read cannot be answered any more: the request
    /// with what is left of it (RFC 5040 §4.8).
    pub(super) fn segment(&self) -> Vec<u8> {
        [&self.header.encode()[..], &self.rest.encode()].concat()
    }
}
