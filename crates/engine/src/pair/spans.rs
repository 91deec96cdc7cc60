//! Where a volume has data and where it has holes, asked some way ahead of the work.

use std::collections::VecDeque;
use std::ops::Range;

use scsi::medium::{MediumOp, MediumResult, Outcome, Provisioning};

use super::{CHUNK, Shape};

/// The part of a volume that is still to be worked on.
#[derive(Debug)]
pub(super) struct Spans {
    shape: Shape,
    /// What every boundary is a multiple of; `end` too.
    unit: u64,
    /// What nobody has asked about.
    unknown: Range<u64>,
    asking: bool,
    known: VecDeque<Span>,
}

/// A part that is all data or all hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<u64>,
    pub(super) hole: bool,
}

/// Spans known ahead. One question is under way at a time, as where the next one begins is known
/// from the answer; so many keep the work busy meanwhile.
const AHEAD: usize = 64;

/// The longest hole that is worked on as one, in octets: often enough to see progress.
const HOLE: u64 = 1 << 30;

impl Spans {
    pub(super) fn new(shape: Shape, unit: u64, range: Range<u64>) -> Self {
        Self {
            shape,
            unit,
            unknown: range,
            asking: false,
            known: VecDeque::new(),
        }
    }

    /// What is to be asked now.
    pub(super) fn question<L>(&mut self) -> Option<MediumOp<L>> {
        if self.asking || self.unknown.is_empty() || self.known.len() >= AHEAD {
            return None;
        }
        self.asking = true;
        let extent = self.shape.extent(&self.unknown);
        Some(MediumOp::Status { extent })
    }

    /// The answer. Who cannot tell has data everywhere.
    pub(super) fn answered<L>(&mut self, result: &MediumResult<L>) {
        self.asking = false;
        let Range { start, end } = self.unknown;
        let (len, mut hole) = match result {
            Ok(Outcome::Provisioning { blocks, state }) => (
                blocks.saturating_mul(self.shape.block_size),
                *state != Provisioning::Mapped,
            ),
            _ => (end - start, false),
        };
        let told = start.saturating_add(len).min(end);
        // What of a unit is no hole makes it data.
        let whole = told / self.unit * self.unit;
        let stop = match hole {
            true if whole > start => whole,
            _ => {
                hole = false;
                told.next_multiple_of(self.unit).min(end)
            }
        };
        self.unknown.start = stop;
        match self.known.back_mut() {
            Some(last) if last.hole == hole => last.range.end = stop,
            _ => self.known.push_back(Span {
                range: start..stop,
                hole,
            }),
        }
    }

    /// The next piece to work on.
    pub(super) fn next(&mut self) -> Option<Span> {
        let span = self.known.front_mut()?;
        let Range { start, end } = span.range;
        let stop = match span.hole {
            true => end.min(start + HOLE),
            // Pieces end where those of other runs do, and where granules are likely to.
            false => end.min((start / CHUNK + 1) * CHUNK),
        };
        let hole = span.hole;
        span.range.start = stop;
        if stop == end {
            self.known.pop_front();
        }
        Some(Span {
            range: start..stop,
            hole,
        })
    }

    /// Where what has not been given out begins; `None` when everything was.
    pub(super) fn start(&self) -> Option<u64> {
        let known = self.known.front().map(|span| span.range.start);
        known.or_else(|| (!self.unknown.is_empty()).then_some(self.unknown.start))
    }

    /// Whether an answer is still to come.
    pub(super) const fn is_asking(&self) -> bool {
        self.asking
    }
}
