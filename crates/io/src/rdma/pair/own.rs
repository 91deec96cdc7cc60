//! Memory that belongs to a pair: headers of messages, and pieces to copy through that no other
//! pair can take. So each pair goes on, if slowly, when the memory of its core is used up.

use std::sync::Arc;

use super::work::OWN_PIECE;
use crate::rdma::domain::RdmaDomain;
use crate::rdma::memory::{PIECE, Piece};
use crate::rdma::registration::OwnRegion;
use crate::rdma::{RdmaError, RdmaHeader};

/// The memory of a pair, one region.
pub(super) struct OwnMemory {
    region: OwnRegion,
    /// Where the pieces begin.
    pieces_at: usize,
    headers: Vec<u16>,
    pieces: Vec<u16>,
}

impl OwnMemory {
    /// For so many messages at once, of so many bytes.
    pub(super) fn new(
        domain: &Arc<RdmaDomain>,
        messages: usize,
        max_send: usize,
    ) -> Result<Self, RdmaError> {
        let pieces = max_send.div_ceil(PIECE).max(1);
        let pieces_at = (messages * RdmaHeader::MAX).next_multiple_of(PIECE);
        let numbers = |count: usize| (0..count as u16).rev().collect::<Vec<_>>();
        Ok(Self {
            region: OwnRegion::new(domain, pieces_at + pieces * PIECE, 0)?,
            pieces_at,
            headers: numbers(messages),
            pieces: numbers(pieces),
        })
    }

    /// Puts a header where the device finds it; its number, and where that is.
    pub(super) fn put_header(&mut self, header: &RdmaHeader) -> Option<(u16, Piece)> {
        let number = self.headers.pop()?;
        let (bytes, piece) = (header.as_slice(), self.header(number));
        // SAFETY: within the region, and the device does not know of it: it was free.
        unsafe {
            let to = piece.address.as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Some((number, piece))
    }

    fn header(&self, number: u16) -> Piece {
        Piece {
            address: self.region.at(usize::from(number) * RdmaHeader::MAX),
            lkey: self.region.lkey(),
        }
    }

    pub(super) fn free_header(&mut self, number: u16) {
        self.headers.push(number);
    }

    /// How many pieces there are to be taken.
    pub(super) fn free_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Takes a piece, marked as one of the pair's.
    pub(super) fn take_piece(&mut self) -> Option<u16> {
        Some(self.pieces.pop()? | OWN_PIECE)
    }

    pub(super) fn free_piece(&mut self, piece: u16) {
        self.pieces.push(piece & !OWN_PIECE);
    }

    pub(super) fn piece(&self, piece: u16) -> Piece {
        let at = self.pieces_at + usize::from(piece & !OWN_PIECE) * PIECE;
        Piece {
            address: self.region.at(at),
            lkey: self.region.lkey(),
        }
    }
}
