//! The copying machine.
//!
//! A piece of data is read from A and written to B. A hole, or a piece that turns out to be zeros,
//! is left alone where B has a hole as well; else B unmaps it, after which it reads as zeros
//! ([`MediumOp::Unmap`]). Only where B cannot unmap are zeros written: overwriting what was just
//! unmapped would allocate it again, and B may not be able to tell that it is a hole.
//!
//! Pieces end in any order. What lies before the first that has not ended is the part that is
//! copied; now and then B is flushed, and then that part is durable ([`PairOrder::Durable`]),
//! whatever else may have been written behind it. A later run that begins there does the rest
//! again.
//!
//! A flush that fails says that B has lost what it held in its cache, as a target does that was
//! restarted. All that was not stable then is copied again ([`PairOrder::Back`]).
//!
//! At an error the pieces before it are still copied, so that all of A up to it becomes durable.

mod flush;
mod piece;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use scsi::medium::{Extent, Lease, MediumError, MediumOp, MediumResult, Now};

use self::flush::{FlushTracker, RangeContent};
use self::piece::{CopyPiece, CopyStep};
use super::ranges::Ranges;
use super::spans::{MappedSpan, RemainingSpans};
use super::{
    CHUNK, CopyProgress, PairFailure, PairMachine, PairOrder, PairSide, VolumeProblem, VolumeShape,
};

/// What is to be copied, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyPlan {
    /// Bytes at the beginning that an earlier run copied.
    pub(super) from: u64,
    /// Pieces in flight at once.
    pub(super) depth: usize,
    /// It fails after so long without progress.
    pub(super) timeout: Duration,
    /// Writes zeros to B for blocks of A that cannot be read, instead of failing.
    pub(super) skip_unreadable: bool,
}

/// Copies A onto the beginning of B.
#[derive(Debug)]
pub(super) struct CopyMachine<L> {
    b: VolumeShape,
    a: VolumeShape,
    plan: CopyPlan,
    spans: RemainingSpans,
    /// Zeros to compare with, [`CHUNK`] of them.
    zeros: L,
    pieces: Vec<Option<CopyPiece>>,
    orders: VecDeque<PairOrder<L>>,
    progress: CopyProgress,
    unreadable: Ranges,
    flush: FlushTracker,
    /// Nothing is begun from this byte on.
    end_at: Option<u64>,
    /// Where the first piece was given up.
    given_up: Option<u64>,
    failure: Option<PairFailure>,
    /// A flush would only be waited for in vain.
    is_hopeless: bool,
    /// The last flush is done, or there will be none.
    over: bool,
    now: Now,
    stall: Stall,
}

/// How far it came, and since when it came no further.
#[derive(Debug, Default)]
struct Stall {
    done: u64,
    durable: u64,
    since: Option<Now>,
    /// It was too long, and what is in flight was cancelled.
    is_over: bool,
}

/// Numbers of operations that are no piece's; those of questions are this and what follows.
const QUESTION: u64 = 1 << 32;
const FLUSH: u64 = 1 << 33;

impl<L: Lease> CopyMachine<L> {
    /// Copies A to B. A must not be longer than B, and the plan's `from` and the length of A
    /// multiples of both block sizes.
    #[must_use]
    pub(super) fn new(a: VolumeShape, b: VolumeShape, plan: CopyPlan) -> Self {
        let unit = a.block_size.max(b.block_size);
        let CopyPlan { from, depth, .. } = plan;
        Self {
            a,
            b,
            plan,
            spans: RemainingSpans::new(a, unit, from..a.bytes),
            zeros: L::from_bytes(vec![0; CHUNK as usize]),
            pieces: std::iter::repeat_with(|| None).take(depth).collect(),
            orders: VecDeque::new(),
            progress: CopyProgress {
                total: a.bytes,
                before: from,
                ..CopyProgress::default()
            },
            unreadable: Ranges::default(),
            flush: FlushTracker::new(from),
            end_at: None,
            given_up: None,
            failure: None,
            is_hopeless: false,
            over: false,
            now: Now::ZERO,
            stall: Stall::default(),
        }
    }

    /// What of A could not be read, and is zeros at B.
    #[must_use]
    pub(super) const fn unreadable(&self) -> &Ranges {
        &self.unreadable
    }

    /// Everything before this byte is copied.
    fn frontier(&self) -> u64 {
        let begun = self.pieces.iter().flatten().map(|piece| piece.rest.start);
        let first = begun.chain(self.spans.start()).chain(self.given_up).min();
        first.unwrap_or(self.a.bytes)
    }

    fn is_idle(&self) -> bool {
        !self.spans.is_asking()
            && !self.flush.is_in_flight()
            && self.pieces.iter().all(Option::is_none)
    }

    /// Whether nothing is to be begun there any more.
    fn ends_before(&self, at: u64) -> bool {
        self.end_at.is_some_and(|end| at >= end)
    }

    /// Begins what there is room for.
    fn begin(&mut self) -> Option<PairOrder<L>> {
        if self.ends_before(self.spans.start()?) {
            return None;
        }
        if let Some((number, question)) = self.spans.question() {
            return Some(PairOrder::Submit(PairSide::A, QUESTION + number, question));
        }
        let free = self.pieces.iter().position(Option::is_none)?;
        let MappedSpan { range, hole } = self.spans.next()?;
        let piece = CopyPiece {
            part: range.end,
            stride: range.end - range.start,
            doing: CopyStep::Reading,
            unmapped: range.start,
            unreadable: false,
            doubtful: false,
            rest: range,
        };
        if hole {
            self.look(free, piece);
        } else {
            self.read_part(free, piece);
        }
        self.orders.pop_front()
    }

    /// Makes durable what is copied: now and then, and at the end.
    fn flush(&mut self) -> Option<PairOrder<L>> {
        if self.over || self.flush.is_in_flight() {
            return None;
        }
        let frontier = self.frontier();
        let complete = frontier == self.a.bytes;
        let ends = self.is_idle() && (complete || self.ends_before(frontier));
        if !(ends || self.flush.is_due(self.now, frontier)) {
            return None;
        }
        let more = frontier > self.flush.durable() || complete;
        if ends && (self.is_hopeless || !more) {
            self.over = true;
            return None;
        }
        self.over = ends;
        self.flush.begin(self.now, frontier);
        let extent = Extent::new(0, 0);
        Some(PairOrder::Submit(
            PairSide::B,
            FLUSH,
            MediumOp::Flush { extent },
        ))
    }

    fn flushed(&mut self, result: &MediumResult<L>) {
        match result {
            Ok(_) => {
                let durable = self.flush.succeed(self.now);
                self.orders.push_back(PairOrder::Durable(durable));
            }
            Err(MediumError::Cancelled) => {
                self.flush.give_up(self.now);
                self.over = false;
            }
            Err(MediumError::Write) if self.end_at.is_none() && self.go_back() => {}
            Err(error) => {
                self.flush.give_up(self.now);
                self.over = true;
                self.fail(PairSide::B, None, *error);
            }
        }
    }

    /// B may have lost what was not stable: that is copied again, and what is in flight there too.
    /// Returns whether that is worth trying.
    fn go_back(&mut self) -> bool {
        let Some(lost) = self.flush.fail(self.now) else {
            return false;
        };
        self.over = false;
        let data = lost.bytes(RangeContent::Data);
        self.progress.data -= data;
        self.progress.holes -= lost.bytes(RangeContent::Zeros);
        self.progress.unreadable -= lost.bytes(RangeContent::Unreadable);
        self.progress.again += data;
        for range in lost.all().iter() {
            self.unreadable.remove(range);
            self.spans.again(range.clone());
        }
        for piece in self.pieces.iter_mut().flatten() {
            piece.doubtful = piece.doing != CopyStep::Reading;
        }
        let at = self.flush.durable();
        self.orders.push_back(PairOrder::Back { at, bytes: data });
        true
    }

    /// Of several failures the first in A tells how far the copy is good.
    pub(super) fn fail(&mut self, side: PairSide, at: Option<u64>, error: MediumError) {
        let end = at.unwrap_or(0);
        self.is_hopeless |= side == PairSide::B && error == MediumError::Gone;
        let error = VolumeProblem::Medium(error);
        let is_first = |before: PairFailure| at.is_some() && before.at > at;
        if self.failure.is_none_or(is_first) {
            self.failure = Some(PairFailure { side, at, error });
        }
        self.end_at = Some(self.end_at.map_or(end, |before| before.min(end)));
    }

    /// B holds this range as it shall be.
    fn did(&mut self, kind: RangeContent, range: Range<u64>) {
        let bytes = range.end - range.start;
        if kind == RangeContent::Unreadable {
            self.unreadable.add(range.clone());
        }
        *match kind {
            RangeContent::Data => &mut self.progress.data,
            RangeContent::Zeros => &mut self.progress.holes,
            RangeContent::Unreadable => &mut self.progress.unreadable,
        } += bytes;
        self.flush.did(kind, range);
    }

    /// Nothing from here on may be taken for copied.
    fn give_up(&mut self, at: u64) {
        self.given_up = Some(self.given_up.map_or(at, |before| before.min(at)));
        self.end_at = Some(self.end_at.map_or(at, |before| before.min(at)));
    }

    /// Fails if nothing has moved for too long. It is not flushed then: the volume that everything
    /// waits for would be waited for again.
    fn watch(&mut self, now: Now) {
        self.now = now;
        let (done, durable) = (self.progress.done(), self.flush.durable());
        let stall = &mut self.stall;
        let since = *stall.since.get_or_insert(now);
        if done > stall.done || durable > stall.durable {
            stall.done = stall.done.max(done);
            stall.durable = durable;
            stall.since = Some(now);
        } else if now.saturating_sub(since) >= self.plan.timeout && !stall.is_over {
            stall.is_over = true;
            self.is_hopeless = true;
            let stalled = PairFailure {
                side: self.waits_for(),
                at: Some(self.frontier()),
                error: VolumeProblem::Stalled(self.plan.timeout),
            };
            // What ended the copy before is the cause, even if the rest of it hangs.
            self.failure.get_or_insert(stalled);
            self.end_at = Some(0);
            self.orders.push_back(PairOrder::Cancel);
        }
    }

    /// What the first piece waits for.
    fn waits_for(&self) -> PairSide {
        let pieces = self.pieces.iter().flatten();
        let first = pieces.min_by_key(|piece| piece.rest.start);
        match first.map(|piece| piece.doing) {
            Some(CopyStep::Reading) => PairSide::A,
            None if !self.flush.is_in_flight() => PairSide::A,
            _ => PairSide::B,
        }
    }
}

impl<L: Lease> PairMachine<L> for CopyMachine<L> {
    fn poll(&mut self, now: Now) -> Option<PairOrder<L>> {
        self.watch(now);
        let order = self.orders.pop_front();
        let order = order.or_else(|| self.begin()).or_else(|| self.flush());
        if order.is_some() || !(self.over && self.is_idle()) {
            return order;
        }
        Some(PairOrder::End(self.failure.map_or(Ok(()), Err)))
    }

    fn done(&mut self, id: u64, result: MediumResult<L>) {
        match id {
            FLUSH => self.flushed(&result),
            QUESTION.. => self.spans.answered(id - QUESTION, &result),
            slot => {
                let slot = slot as usize;
                if let Some(piece) = self.pieces.get_mut(slot).and_then(Option::take) {
                    self.step(slot, piece, result);
                }
            }
        }
    }

    fn stop(&mut self) {
        self.end_at = Some(0);
    }

    fn progress(&self) -> CopyProgress {
        self.progress
    }
}
