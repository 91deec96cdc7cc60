//! The comparing machine.
//!
//! Pieces of A and B are read at the same time and compared. Where A has a hole B is asked whether
//! it has one too; then there is nothing to read.

use std::collections::VecDeque;
use std::ops::Range;

use scsi::medium::{
    Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Now, Provisioning, ReadMemory,
};

use super::ranges::Ranges;
use super::spans::{MappedSpan, RemainingSpans};
use super::{
    CHUNK, CopyProgress, PairFailure, PairMachine, PairOrder, PairSide, VolumeProblem, VolumeShape,
};

/// Compares A with the beginning of B.
#[derive(Debug)]
pub(super) struct VerifyMachine<L> {
    a: VolumeShape,
    b: VolumeShape,
    spans: RemainingSpans,
    pieces: Vec<Option<VerifyPiece<L>>>,
    orders: VecDeque<PairOrder<L>>,
    progress: CopyProgress,
    differences: Differences,
    stopping: bool,
    failure: Option<PairFailure>,
}

/// What is not the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// How many blocks of A differ.
    pub blocks: u64,
    /// The first byte that differs.
    pub first: Option<u64>,
    /// Where, in bytes, in whole blocks of A: the first 16 ranges.
    pub ranges: Ranges,
}

/// Ranges that are remembered.
pub(super) const LISTED: usize = 16;

/// A piece that is being worked on.
#[derive(Debug)]
struct VerifyPiece<L> {
    /// What is left of it.
    rest: Range<u64>,
    /// What is compared now.
    end: u64,
    /// What came of each.
    data: [Option<L>; 2],
    /// How many answers are to come.
    waiting: u8,
}

/// Numbers of operations that are no piece's begin here.
const QUESTION: u64 = 1 << 32;

/// What an operation of a piece is for: its number is that of the piece times three, and this.
const READ_A: u64 = 0;
const READ_B: u64 = 1;
const LOOK: u64 = 2;

impl<L: Lease> VerifyMachine<L> {
    /// Compares `depth` pieces at a time. A must not be longer than B, and its length a multiple of
    /// both block sizes.
    #[must_use]
    pub(super) fn new(a: VolumeShape, b: VolumeShape, depth: usize) -> Self {
        let unit = a.block_size.max(b.block_size);
        Self {
            a,
            b,
            spans: RemainingSpans::new(a, unit, 0..a.bytes),
            pieces: std::iter::repeat_with(|| None).take(depth).collect(),
            orders: VecDeque::new(),
            progress: CopyProgress {
                total: a.bytes,
                ..CopyProgress::default()
            },
            differences: Differences::default(),
            stopping: false,
            failure: None,
        }
    }

    /// What was found until now.
    #[must_use]
    pub(super) const fn differences(&self) -> &Differences {
        &self.differences
    }

    fn begin(&mut self) -> Option<PairOrder<L>> {
        if self.stopping {
            return None;
        }
        if let Some((number, question)) = self.spans.question() {
            return Some(PairOrder::Submit(PairSide::A, QUESTION + number, question));
        }
        let free = self.pieces.iter().position(Option::is_none)?;
        let MappedSpan { range, hole } = self.spans.next()?;
        let piece = VerifyPiece {
            end: range.end,
            rest: range,
            data: [None, None],
            waiting: 0,
        };
        if hole {
            self.look(free, piece);
        } else {
            self.read(free, piece);
        }
        self.orders.pop_front()
    }

    /// Asks whether B has a hole too.
    fn look(&mut self, slot: usize, mut piece: VerifyPiece<L>) {
        let extent = self.b.extent(&piece.rest);
        piece.waiting = 1;
        self.pieces[slot] = Some(piece);
        let op = MediumOp::Status { extent };
        self.submit(PairSide::B, slot, LOOK, op);
    }

    /// Reads both up to the end of what is compared now.
    fn read(&mut self, slot: usize, mut piece: VerifyPiece<L>) {
        let range = piece.rest.start..piece.end;
        piece.waiting = 2;
        self.pieces[slot] = Some(piece);
        for (side, shape, what) in [(PairSide::A, self.a, READ_A), (PairSide::B, self.b, READ_B)] {
            let extent = shape.extent(&range);
            let memory = ReadMemory::Lent;
            self.submit(side, slot, what, MediumOp::Read { extent, memory });
        }
    }

    fn submit(&mut self, side: PairSide, slot: usize, what: u64, op: MediumOp<L>) {
        let id = slot as u64 * 3 + what;
        self.orders.push_back(PairOrder::Submit(side, id, op));
    }

    fn step(&mut self, slot: usize, what: u64, mut piece: VerifyPiece<L>, result: MediumResult<L>) {
        piece.waiting -= 1;
        match (what, result) {
            (_, Err(MediumError::Cancelled)) => {}
            (LOOK, found) => return self.looked(slot, piece, &found),
            (_, Ok(MediumOutcome::Lease(data))) => piece.data[what as usize] = Some(data),
            (_, result) => {
                let side = if what == READ_A {
                    PairSide::A
                } else {
                    PairSide::B
                };
                let error = VolumeProblem::Medium(result.err().unwrap_or(MediumError::Read));
                let at = Some(piece.rest.start);
                self.stopping = true;
                self.failure.get_or_insert(PairFailure { side, at, error });
            }
        }
        if piece.waiting > 0 {
            self.pieces[slot] = Some(piece);
        } else if let [Some(a), Some(b)] = std::mem::take(&mut piece.data) {
            self.compare(piece.rest.start, &a, &b);
            self.progress.data += piece.end - piece.rest.start;
            self.continue_piece(slot, piece);
        }
    }

    /// A has a hole here, and B said what it has.
    fn looked(&mut self, slot: usize, mut piece: VerifyPiece<L>, found: &MediumResult<L>) {
        let Range { start, end } = piece.rest;
        match found {
            Ok(MediumOutcome::Provisioning { blocks, state }) if *state != Provisioning::Mapped => {
                let len = blocks.saturating_mul(self.b.block_size);
                piece.end = start.saturating_add(len).min(end);
                self.progress.holes += piece.end - start;
                self.continue_piece(slot, piece);
            }
            _ if self.stopping => {}
            _ => {
                piece.end = end.min((start / CHUNK + 1) * CHUNK);
                self.read(slot, piece);
            }
        }
    }

    fn continue_piece(&mut self, slot: usize, mut piece: VerifyPiece<L>) {
        piece.rest.start = piece.end;
        if !piece.rest.is_empty() && !self.stopping {
            self.look(slot, piece);
        }
    }

    fn compare(&mut self, start: u64, a: &L, b: &L) {
        let Some(at) = a.difference(b) else { return };
        let found = &mut self.differences;
        let first = start + at as u64;
        found.first = Some(found.first.map_or(first, |before| before.min(first)));
        let block = self.a.block_size as usize;
        // No block before this one differs.
        for at in (at / block * block..a.len()).step_by(block) {
            if a.slice(at, block).difference(&b.slice(at, block)).is_some() {
                found.blocks += 1;
                let at = start + at as u64;
                found.ranges.add(at..at + block as u64);
                found.ranges.truncate(LISTED);
            }
        }
    }
}

impl<L: Lease> PairMachine<L> for VerifyMachine<L> {
    fn poll(&mut self, _now: Now) -> Option<PairOrder<L>> {
        let order = self.orders.pop_front().or_else(|| self.begin());
        let idle = !self.spans.is_asking() && self.pieces.iter().all(Option::is_none);
        if order.is_some() || !idle {
            return order;
        }
        Some(PairOrder::End(self.failure.map_or(Ok(()), Err)))
    }

    fn done(&mut self, id: u64, result: MediumResult<L>) {
        if let Some(number) = id.checked_sub(QUESTION) {
            return self.spans.answered(number, &result);
        }
        let (slot, what) = ((id / 3) as usize, id % 3);
        if let Some(piece) = self.pieces.get_mut(slot).and_then(Option::take) {
            self.step(slot, what, piece, result);
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn progress(&self) -> CopyProgress {
        self.progress
    }
}
