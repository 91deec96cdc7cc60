//! Operations that wait for the device, and what it has of them.

use super::PairInner;
use crate::memory::Buffer;
use crate::rdma::locked::RdmaCopies;
use crate::rdma::memory::{DomainMemory, PIECE, Piece};
use crate::rdma::registration::OwnRegion;
use crate::rdma::{RdmaCompletion, RdmaEnd, RdmaWork};

/// An operation of which the device has the first `done` bytes.
pub(super) struct WaitingWork {
    pub(super) work: RdmaWork,
    pub(super) done: usize,
}

impl WaitingWork {
    pub(super) fn new(work: RdmaWork) -> Self {
        Self { work, done: 0 }
    }

    fn is_read(&self, name: u32) -> bool {
        matches!(self.work, RdmaWork::Read { id, .. } if id == name)
    }
}

/// One request that the device has: an operation, or a part of one.
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// Where its header lies.
    pub(super) header: Option<u16>,
    /// Through which its data is copied.
    pub(super) pieces: [u16; PIECES_MAX],
    pub(super) count: u8,
    /// The memory of the data: held, or where a read is to be copied to.
    pub(super) data: Option<Buffer>,
    /// Memory of this read alone, which the peer may write.
    pub(super) sink: Option<Box<OwnRegion>>,
    /// With this part the operation is complete.
    pub(super) is_last: bool,
}

/// Which operation a request is part of.
pub(super) enum PartKind {
    Send,
    Write,
    /// With all of its memory, in its last part.
    Read {
        id: u32,
        into: Option<Buffer>,
    },
}

/// Pieces of a request to copy through, at the most.
pub(super) const PIECES_MAX: usize = 16;

/// Marks a piece as one of the pair's own.
pub(super) const OWN_PIECE: u16 = 1 << 15;

impl Part {
    pub(super) fn new(kind: PartKind) -> Self {
        Self {
            kind,
            header: None,
            pieces: [0; PIECES_MAX],
            count: 0,
            data: None,
            sink: None,
            is_last: true,
        }
    }

    pub(super) fn pieces(&self) -> &[u16] {
        &self.pieces[..usize::from(self.count)]
    }

    /// Whether it goes straight into the memory of a medium.
    fn fills_medium(&self) -> bool {
        let is_direct = self.count == 0 && self.sink.is_none();
        let is_read = matches!(self.kind, PartKind::Read { .. });
        is_read && is_direct && self.data.as_ref().is_some_and(Buffer::is_of_medium)
    }

    fn is_read(&self, name: u32) -> bool {
        matches!(self.kind, PartKind::Read { id, .. } if id == name)
    }
}

impl PairInner {
    /// Takes pieces for a part: `wanted`, or as many as there are, but no fewer than `least`.
    pub(super) fn take_pieces(
        &mut self,
        part: &mut Part,
        (wanted, least): (usize, usize),
        memory: &DomainMemory,
    ) -> bool {
        let mut count = memory.take_pieces(wanted, &mut part.pieces);
        let missing = least.saturating_sub(count);
        if missing <= self.own.free_pieces() {
            let places = part.pieces.iter_mut().skip(count).take(missing);
            for place in places {
                *place = self.own.take_piece().unwrap_or_default();
            }
            count += missing;
        }
        part.count = count as u8;
        if count < least {
            self.free_memory_of(part, memory);
            part.count = 0;
        }
        count >= least
    }

    /// Where a piece lies.
    pub(super) fn piece(&self, piece: u16, memory: &DomainMemory) -> Piece {
        match piece & OWN_PIECE {
            0 => memory.piece(piece),
            _ => self.own.piece(piece),
        }
    }

    /// Copies `len` bytes of a buffer into the pieces of a part.
    pub(super) fn copy_out(&self, part: &Part, from: (&Buffer, usize), memory: &DomainMemory) {
        let (buffer, offset) = from;
        let mut copied = RdmaCopies::default();
        for (number, piece) in part.pieces().iter().enumerate() {
            let at = offset + number * PIECE;
            let len = buffer.len().saturating_sub(at).min(PIECE);
            let to = self.piece(*piece, memory).address;
            // SAFETY: a piece that was taken, of which the device does not know yet.
            unsafe { buffer.copy_to_address(at, to, len) };
            copied.sent += len as u64;
        }
        memory.have_copied(copied);
    }

    /// Copies what came by a read to where it belongs.
    pub(super) fn copy_in(&self, part: &Part, memory: &DomainMemory) {
        let Some(data) = &part.data else { return };
        memory.have_copied(RdmaCopies {
            received: data.len() as u64,
            ..RdmaCopies::default()
        });
        if let Some(sink) = &part.sink {
            // SAFETY: as long. The peer may write there still, against the rules: no reference to
            // these bytes exists.
            unsafe { data.copy_from_address(0, sink.at(0), data.len()) };
        }
        for (number, piece) in part.pieces().iter().enumerate() {
            let at = number * PIECE;
            let len = data.len().saturating_sub(at).min(PIECE);
            let from = self.piece(*piece, memory).address;
            // SAFETY: a piece that was taken, and that the device has filled.
            unsafe { data.copy_from_address(at, from, len) };
        }
    }

    /// Gives back what a part has taken for itself.
    pub(super) fn free_memory_of(&mut self, part: &Part, memory: &DomainMemory) {
        if let Some(header) = part.header {
            self.own.free_header(header);
        }
        for piece in part.pieces() {
            match piece & OWN_PIECE {
                0 => memory.free_piece(*piece),
                _ => self.own.free_piece(*piece),
            }
        }
    }

    /// See [`super::RdmaPair::cancel`].
    pub(super) fn cancel(&mut self, read: u32, memory: &DomainMemory) -> Option<Buffer> {
        let mut parts = self.in_flight.iter();
        if parts.any(|part| part.is_read(read) && part.fills_medium()) {
            // A device cannot be told to give up a read, and whoever has aborted the command is
            // told that it is over: nothing of it may be stored then.
            let problem = "a command was aborted whose data the RDMA device was storing by itself";
            self.end(RdmaEnd::failed(problem, "ibv_destroy_qp"), memory);
        }
        let unsent = self.waiting.iter().position(|work| work.is_read(read));
        let unsent = unsent.and_then(|at| self.waiting.remove(at));
        // What comes is not wanted: nothing is copied. What goes without a copy is held still.
        let mut last = None;
        for part in self.in_flight.iter_mut().filter(|part| part.is_read(read)) {
            if part.count > 0 || part.sink.is_some() {
                part.data = None;
            }
            last = Some(part);
        }
        let RdmaWork::Read { into, .. } = unsent?.work else {
            return None;
        };
        if let Some(Part { kind, is_last, .. }) = last {
            // Some of it is under way: that is its end now.
            let into = Some(into);
            *kind = PartKind::Read { id: read, into };
            *is_last = true;
            return None;
        }
        self.told.push_back(RdmaCompletion::Drained(read));
        Some(into)
    }
}
