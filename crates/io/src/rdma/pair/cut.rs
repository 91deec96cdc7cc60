//! How operations become requests of the device, one chain a turn.
//!
//! A message is one request. A write or read is as many as its memory makes necessary: one where
//! the device knows the memory; else one for each 16 pieces, or fewer if there are no more pieces
//! now. They are posted in order, so the operation is complete with its last.

use std::rc::Rc;

use super::PairInner;
use super::work::{PIECES_MAX, Part, PartKind, WaitingWork};
use crate::memory::Buffer;
use crate::rdma::memory::{DomainMemory, PIECE};
use crate::rdma::registration::OwnRegion;
use crate::rdma::requests::{RequestArrays, SendRequest};
use crate::rdma::sys::verbs::{
    IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_SEND_WITH_INV,
};
use crate::rdma::{RdmaEnd, RdmaHeader, RdmaWork, RemoteAddress};

/// The longest request, in bytes: devices take 1 GiB or more.
const REQUEST_MAX: usize = 1 << 30;

/// The longest read by memory of its own.
const OWN_SINK_MAX: usize = 256 << 10;

/// What came of the operation that is first.
enum Cut {
    /// A request of it is in the chain.
    Some,
    /// It has to wait for memory, or for room in the device's queue.
    Later,
    /// It cannot be done.
    Never(RdmaEnd),
}

/// A part of a write or read.
struct Range<'a> {
    buffer: &'a Buffer,
    offset: usize,
    remote: RemoteAddress,
}

impl PairInner {
    /// See [`super::RdmaPair::flush`].
    pub(super) fn flush(&mut self, memory: &DomainMemory) {
        memory.tell_copies();
        self.post_receives(memory);
        if self.waiting.is_empty() || self.has_ended {
            return;
        }
        let arrays = Rc::clone(&memory.arrays);
        let mut arrays = arrays.borrow_mut();
        let end = self.chain(&mut arrays, memory).or_else(|| {
            // SAFETY: memory of the requests is held by their parts until they complete, or the
            // queue pair is destroyed.
            let refused = arrays.has_sends() && unsafe { self.wire.post_sends(&mut arrays) } != 0;
            let problem = "the RDMA device takes no more work";
            refused.then(|| RdmaEnd::failed(problem, "ibv_post_send"))
        });
        arrays.clear();
        if let Some(end) = end {
            self.end(end, memory);
        }
    }

    /// Makes a chain of what waits; returns what makes that impossible.
    fn chain(&mut self, arrays: &mut RequestArrays, memory: &DomainMemory) -> Option<RdmaEnd> {
        while self.in_flight.len() < self.limits.room {
            let Some(mut first) = self.waiting.pop_front() else {
                break;
            };
            let cut = self.cut(&mut first, arrays, memory);
            let is_whole = self.in_flight.back().is_some_and(|part| part.is_last);
            if !matches!(cut, Cut::Some) || !is_whole {
                self.waiting.push_front(first);
            }
            match cut {
                Cut::Some => {}
                Cut::Later => break,
                Cut::Never(end) => return Some(end),
            }
        }
        None
    }

    fn cut(
        &mut self,
        first: &mut WaitingWork,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> Cut {
        let (work, done) = (&first.work, first.done);
        let (buffer, remote) = match work {
            RdmaWork::Send {
                header,
                data,
                invalidate,
            } => return self.cut_send(header, data.as_ref(), *invalidate, arrays, memory),
            RdmaWork::Write { to, from } => (from, *to),
            RdmaWork::Read { from, into, .. } => (into, *from),
        };
        let range = Range {
            buffer,
            offset: done,
            remote,
        };
        match self.cut_transfer(work, &range, arrays, memory) {
            Ok(taken) => first.done += taken,
            Err(cut) => return cut,
        }
        Cut::Some
    }

    fn cut_send(
        &mut self,
        header: &RdmaHeader,
        data: Option<&Buffer>,
        invalidate: Option<u32>,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> Cut {
        let data = data.filter(|data| !data.is_empty());
        let len = data.map_or(0, Buffer::len);
        let wanted = len.div_ceil(PIECE);
        if header.as_slice().len() + len > self.max_send || wanted >= self.send_pieces {
            let problem = "a message is longer than what was agreed";
            return Cut::Never(RdmaEnd::failed(problem, "max_send"));
        }
        let mut part = Part::new(PartKind::Send);
        let key = data.and_then(|data| memory.key_of(data));
        if key.is_none() && !self.take_pieces(&mut part, (wanted, wanted), memory) {
            return Cut::Later;
        }
        let Some((number, place)) = self.own.put_header(header) else {
            self.free_memory_of(&part, memory);
            return Cut::Later;
        };
        part.header = Some(number);
        let mut pieces = 1;
        arrays.piece(
            place.address.addr().get(),
            header.as_slice().len(),
            place.lkey,
        );
        if let Some(data) = data {
            pieces += self.add_data(&mut part, (data, 0, len), key, arrays, memory);
        }
        let request = SendRequest {
            id: self.next_id(),
            opcode: invalidate.map_or(IBV_WR_SEND, |_| IBV_WR_SEND_WITH_INV),
            invalidate: invalidate.unwrap_or(0),
            remote: (0, 0),
        };
        arrays.send(&request, pieces);
        self.in_flight.push_back(part);
        Cut::Some
    }

    /// Adds a request for as much of a write or read as can be had at once; returns its bytes.
    fn cut_transfer(
        &mut self,
        work: &RdmaWork,
        range: &Range<'_>,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> Result<usize, Cut> {
        let (buffer, offset) = (range.buffer, range.offset);
        let left = buffer.len() - offset;
        let (kind, most, opcode) = match work {
            RdmaWork::Read { id, .. } => (
                PartKind::Read {
                    id: *id,
                    into: None,
                },
                self.read_pieces,
                IBV_WR_RDMA_READ,
            ),
            _ => (PartKind::Write, self.send_pieces, IBV_WR_RDMA_WRITE),
        };
        let is_read = opcode == IBV_WR_RDMA_READ;
        let mut part = Part::new(kind);
        let needs_sink = is_read && self.wire.domain().is_iwarp() && left > 0;
        let key = if needs_sink {
            None
        } else if is_read {
            memory.key_to_fill(buffer)
        } else {
            memory.key_of(buffer)
        };
        let len = if needs_sink {
            self.take_sink(&mut part, left)?
        } else if key.is_some() || left == 0 {
            left.min(REQUEST_MAX)
        } else {
            let wanted = left.div_ceil(PIECE).min(most).min(PIECES_MAX);
            if !self.take_pieces(&mut part, (wanted, 1), memory) {
                return Err(Cut::Later);
            }
            left.min(part.pieces().len() * PIECE)
        };
        let data = (buffer, offset, len);
        let pieces = if is_read {
            self.add_sink(&mut part, data, key, arrays, memory)
        } else {
            self.add_data(&mut part, data, key, arrays, memory)
        };
        part.is_last = len == left;
        if let (true, PartKind::Read { into, .. }) = (part.is_last, &mut part.kind) {
            *into = Some(buffer.clone());
        }
        let address = range.remote.address.wrapping_add(offset as u64);
        let request = SendRequest {
            id: self.next_id(),
            opcode,
            invalidate: 0,
            remote: (range.remote.key, address),
        };
        arrays.send(&request, pieces);
        self.in_flight.push_back(part);
        Ok(len)
    }

    /// The number of the request that is added next.
    fn next_id(&self) -> u64 {
        self.first + self.in_flight.len() as u64
    }

    /// Adds data that leaves: its own memory if there is a key to it, else a copy in the pieces
    /// that the part has. Returns how many pieces the request has more.
    fn add_data(
        &self,
        part: &mut Part,
        (data, offset, len): (&Buffer, usize, usize),
        key: Option<u32>,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> usize {
        if let Some(lkey) = key.filter(|_| len > 0) {
            arrays.piece(data.address().addr().get() + offset, len, lkey);
            part.data = Some(data.slice(offset, len));
            return 1;
        }
        self.copy_out(part, (data, offset), memory);
        self.add_pieces(part, len, arrays, memory)
    }

    /// Adds memory for data that comes: its own, or what the part has, from where it is copied when
    /// it is there. Returns as above.
    fn add_sink(
        &self,
        part: &mut Part,
        (data, offset, len): (&Buffer, usize, usize),
        key: Option<u32>,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> usize {
        part.data = Some(data.slice(offset, len));
        if len == 0 {
            return 0;
        }
        let direct = key.map(|lkey| (data.writable_address().addr().get() + offset, lkey));
        let own = part.sink.as_ref();
        let own = own.map(|sink| (sink.at(0).addr().get(), sink.lkey()));
        if let Some((address, lkey)) = direct.or(own) {
            arrays.piece(address, len, lkey);
            return 1;
        }
        self.add_pieces(part, len, arrays, memory)
    }

    fn add_pieces(
        &self,
        part: &Part,
        len: usize,
        arrays: &mut RequestArrays,
        memory: &DomainMemory,
    ) -> usize {
        for (number, piece) in part.pieces().iter().enumerate() {
            let (place, left) = (self.piece(*piece, memory), len - number * PIECE);
            arrays.piece(place.address.addr().get(), left.min(PIECE), place.lkey);
        }
        part.pieces().len()
    }

    /// Memory for one read over iWARP, where the peer gets a key to write it; of as many of these
    /// at once as reads.
    fn take_sink(&mut self, part: &mut Part, left: usize) -> Result<usize, Cut> {
        let sinks = self.in_flight.iter().filter(|part| part.sink.is_some());
        if sinks.count() >= usize::from(self.limits.ord.max(1)) {
            return Err(Cut::Later);
        }
        let len = left.min(OWN_SINK_MAX);
        let region = OwnRegion::new(self.wire.domain(), len, IBV_ACCESS_REMOTE_WRITE);
        let failed = RdmaEnd::failed("no memory can be pinned for a read", "ibv_reg_mr");
        let region = region.map_err(|_| Cut::Never(failed))?;
        part.sink = Some(Box::new(region));
        Ok(len)
    }
}
