//! A piece of a copy, step by step: what is read and written for it, and what becomes of zeros.

use std::ops::Range;

use scsi::medium::{
    Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning, ReadMemory,
};

use super::CopyMachine;
use super::flush::RangeContent;
use crate::pair::{PairOrder, PairSide};

/// A piece that is being worked on.
#[derive(Debug)]
pub(super) struct CopyPiece {
    /// What is left of it.
    pub(super) rest: Range<u64>,
    /// Where the part of it ends that is worked on now: it is the whole unless some of it could not
    /// be read.
    pub(super) part: u64,
    /// How much is read at once.
    pub(super) stride: u64,
    pub(super) doing: CopyStep,
    /// B has been told to unmap the piece up to here.
    pub(super) unmapped: u64,
    /// The part could not be read.
    pub(super) unreadable: bool,
    /// What is in flight at B may be lost.
    pub(super) doubtful: bool,
}

/// The operation in flight for a piece. All but the first two handle zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyStep {
    Reading,
    Writing,
    Looking,
    Unmapping,
    /// Up to this byte.
    Zeroing(u64),
}

/// Most bytes that one operation overwrites with zeros, so that no transport waits too long.
const ZEROED_AT_ONCE: u64 = 64 << 20;

impl<L: Lease> CopyMachine<L> {
    /// A piece was read, or written, or a step of its zeros is done.
    pub(super) fn step(&mut self, slot: usize, mut piece: CopyPiece, result: MediumResult<L>) {
        let start = piece.rest.start;
        match (piece.doing, result) {
            (_, Err(MediumError::Cancelled)) => self.give_up(start),
            (CopyStep::Reading, Ok(MediumOutcome::Lease(data))) => self.read(slot, piece, data),
            (CopyStep::Reading, Err(MediumError::Read)) if self.plan.skip_unreadable => {
                self.cannot_read(slot, piece);
            }
            (doing, Ok(_)) if piece.doubtful => {
                if doing == CopyStep::Writing {
                    self.progress.again += piece.part - start;
                }
                self.spans.again(piece.rest);
            }
            (CopyStep::Writing, Ok(_)) => {
                self.did(RangeContent::Data, start..piece.part);
                self.next_part(slot, piece);
            }
            (CopyStep::Looking, found) => self.looked(slot, piece, &found),
            (CopyStep::Unmapping, Ok(_)) => {
                let to = piece.part;
                self.zeros_until(&mut piece, to);
                self.look_again(slot, piece);
            }
            (CopyStep::Unmapping, Err(MediumError::Unsupported)) => {
                piece.unmapped = piece.part;
                self.look_again(slot, piece);
            }
            (CopyStep::Zeroing(to), Ok(_)) => {
                self.zeros_until(&mut piece, to);
                self.look_again(slot, piece);
            }
            (doing, result) => {
                let side = match doing {
                    CopyStep::Reading => PairSide::A,
                    _ => PairSide::B,
                };
                let error = result.err().unwrap_or(MediumError::Read);
                self.fail(side, Some(start), error);
                self.give_up(start);
            }
        }
    }

    pub(super) fn read_part(&mut self, slot: usize, mut piece: CopyPiece) {
        let Range { start, end } = piece.rest;
        piece.part = end.min(start + piece.stride);
        piece.doing = CopyStep::Reading;
        let extent = self.a.extent(&(start..piece.part));
        let memory = ReadMemory::Lent;
        self.pieces[slot] = Some(piece);
        let read = MediumOp::Read { extent, memory };
        let order = PairOrder::Submit(PairSide::A, slot as u64, read);
        self.orders.push_back(order);
    }

    /// Goes on behind the part that is done, if that was not all: a part that was read says that
    /// more can be.
    fn next_part(&mut self, slot: usize, mut piece: CopyPiece) {
        piece.rest.start = piece.part;
        if piece.rest.is_empty() {
            return;
        }
        if self.ends_before(piece.rest.start) {
            return self.give_up(piece.rest.start);
        }
        if !std::mem::take(&mut piece.unreadable) {
            piece.stride *= 2;
        }
        self.read_part(slot, piece);
    }

    /// Tries less of it, until it is one block that cannot be read.
    fn cannot_read(&mut self, slot: usize, mut piece: CopyPiece) {
        let Range { start, .. } = piece.rest;
        if self.ends_before(start) {
            return self.give_up(start);
        }
        let unit = self.a.block_size.max(self.b.block_size);
        let len = piece.part - start;
        piece.stride = (len / 2 / unit * unit).max(unit);
        if len > unit {
            return self.read_part(slot, piece);
        }
        piece.unreadable = true;
        self.look_again(slot, piece);
    }

    /// Data has come: it goes on to B, unless it is nothing but zeros.
    fn read(&mut self, slot: usize, mut piece: CopyPiece, data: L) {
        let range = piece.rest.start..piece.part;
        if data.difference(&self.zeros.slice(0, data.len())).is_none() {
            return self.look_again(slot, piece);
        }
        if self.ends_before(range.start) {
            return self.give_up(range.start);
        }
        let write = MediumOp::Write {
            extent: self.b.extent(&range),
            data,
            fua: false,
            atomic: false,
        };
        piece.doing = CopyStep::Writing;
        self.submit(slot, piece, write);
    }

    /// B has said what it has from the beginning of the piece on. If it cannot tell, it has
    /// something.
    fn looked(&mut self, slot: usize, mut piece: CopyPiece, found: &MediumResult<L>) {
        let (start, end) = (piece.rest.start, piece.part);
        let (len, state) = match found {
            Ok(MediumOutcome::Provisioning { blocks, state }) => {
                (blocks.saturating_mul(self.b.block_size), *state)
            }
            _ => (end - start, Provisioning::Mapped),
        };
        let to = start.saturating_add(len).min(end);
        if state != Provisioning::Mapped {
            self.zeros_until(&mut piece, to);
            return self.look_again(slot, piece);
        }
        if self.b.unmaps && piece.unmapped <= start {
            piece.doing = CopyStep::Unmapping;
            let extent = self.b.extent(&(start..end));
            let anchor = false;
            return self.submit(slot, piece, MediumOp::Unmap { extent, anchor });
        }
        let to = to.min(start + ZEROED_AT_ONCE);
        piece.doing = CopyStep::Zeroing(to);
        let extent = self.b.extent(&(start..to));
        let pattern = None;
        self.submit(slot, piece, MediumOp::WriteSame { extent, pattern });
    }

    fn zeros_until(&mut self, piece: &mut CopyPiece, to: u64) {
        let kind = if piece.unreadable {
            RangeContent::Unreadable
        } else {
            RangeContent::Zeros
        };
        self.did(kind, piece.rest.start..to);
        piece.rest.start = to;
    }

    /// Goes on with what is left of a part of zeros, if anything is.
    fn look_again(&mut self, slot: usize, piece: CopyPiece) {
        if piece.rest.start == piece.part {
            return self.next_part(slot, piece);
        }
        if self.ends_before(piece.rest.start) {
            return self.give_up(piece.rest.start);
        }
        self.look(slot, piece);
    }

    pub(super) fn look(&mut self, slot: usize, mut piece: CopyPiece) {
        piece.doing = CopyStep::Looking;
        let extent = self.b.extent(&(piece.rest.start..piece.part));
        self.submit(slot, piece, MediumOp::Status { extent });
    }

    fn submit(&mut self, slot: usize, mut piece: CopyPiece, op: MediumOp<L>) {
        let side = PairSide::B;
        piece.doubtful = false;
        self.pieces[slot] = Some(piece);
        self.orders
            .push_back(PairOrder::Submit(side, slot as u64, op));
    }
}
