//! Where a volume has data and where it has holes, asked some way ahead of the work.
//!
//! Where the next span begins is only known from the answer about the one before. So that a slow
//! volume with many spans is not asked for one after the other, what is unknown is cut into windows
//! that are asked about at the same time. They are as long as some answers were: a volume with few
//! spans is not asked more often for it.

use std::collections::VecDeque;
use std::ops::Range;

use scsi::medium::{MediumOp, MediumOutcome, MediumResult, Provisioning};

use super::{CHUNK, VolumeShape};

/// The part of a volume that is still to be worked on.
#[derive(Debug)]
pub(super) struct RemainingSpans {
    shape: VolumeShape,
    /// What every boundary is a multiple of; `end` too.
    unit: u64,
    /// In their order; they do not overlap.
    windows: VecDeque<StatusWindow>,
    /// How much the last answer was about.
    answer: Option<u64>,
}

/// A part that is asked about front to back.
#[derive(Debug)]
struct StatusWindow {
    /// What is known of its beginning.
    known: VecDeque<MappedSpan>,
    /// What has not been answered.
    unknown: Range<u64>,
    /// The number of the question in flight.
    asked: Option<u64>,
}

/// A part that is all data or all hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedSpan {
    pub(super) range: Range<u64>,
    pub(super) hole: bool,
}

/// Questions in flight, at the most; they are numbered from 0.
pub(super) const QUESTIONS: u64 = 16;

/// Spans known ahead; enough to keep all pieces busy.
const AHEAD: usize = 128;

/// How many answers a window is for.
const ANSWERS: u64 = 4;

/// The shortest window, in bytes.
const WINDOW: u64 = 1 << 20;

/// The longest hole that is worked on as one, in bytes: often enough to see progress.
const HOLE: u64 = 1 << 30;

impl RemainingSpans {
    pub(super) fn new(shape: VolumeShape, unit: u64, range: Range<u64>) -> Self {
        Self {
            shape,
            unit,
            windows: [StatusWindow::new(range)].into(),
            answer: None,
        }
    }

    /// What was given out is to be worked on again.
    pub(super) fn again(&mut self, range: Range<u64>) {
        let behind = |window: &StatusWindow| window.start().is_none_or(|start| start < range.start);
        let place = self.windows.partition_point(behind);
        self.windows.insert(place, StatusWindow::new(range));
    }

    /// What is to be asked now, and the number of the question.
    pub(super) fn question<L>(&mut self) -> Option<(u64, MediumOp<L>)> {
        let in_use = |number| {
            self.windows
                .iter()
                .any(|window| window.asked == Some(number))
        };
        let number = (0..QUESTIONS).find(|number| !in_use(*number))?;
        let known: usize = self.windows.iter().map(|window| window.known.len()).sum();
        let is_idle = |window: &StatusWindow| window.asked.is_none() && !window.unknown.is_empty();
        let place = if known < AHEAD {
            let idle = self.windows.iter().position(is_idle);
            idle.or_else(|| self.split())?
        } else {
            // Nothing can be given out before the first is known.
            let first = self.windows.front()?;
            (first.known.is_empty() && is_idle(first)).then_some(0)?
        };
        let end = self.contiguous_end(place);
        let window = &mut self.windows[place];
        window.asked = Some(number);
        let extent = self.shape.extent(&(window.unknown.start..end));
        Some((number, MediumOp::Status { extent }))
    }

    /// Makes two windows of the last one, if that is long.
    fn split(&mut self) -> Option<usize> {
        let answer = self.answer?;
        let len = answer.saturating_mul(ANSWERS).max(WINDOW);
        let last = &mut self.windows.back_mut()?.unknown;
        let cut = last.start.saturating_add(len) / CHUNK * CHUNK;
        if cut <= last.start || cut >= last.end {
            return None;
        }
        let rest = cut..last.end;
        last.end = cut;
        self.windows.push_back(StatusWindow::new(rest));
        Some(self.windows.len() - 1)
    }

    /// Where what is asked about ends: an answer may be about the windows behind, too.
    fn contiguous_end(&self, place: usize) -> u64 {
        let mut end = self.windows[place].unknown.end;
        for window in self.windows.iter().skip(place + 1) {
            if !window.is_untouched_at(end) {
                break;
            }
            end = window.unknown.end;
        }
        end
    }

    /// The answer to a question. A volume that cannot tell has data everywhere.
    pub(super) fn answered<L>(&mut self, number: u64, result: &MediumResult<L>) {
        let is_it = |window: &StatusWindow| window.asked == Some(number);
        let Some(place) = self.windows.iter().position(is_it) else {
            return;
        };
        let start = self.windows[place].unknown.start;
        let (end, hole) = match result {
            Ok(MediumOutcome::Provisioning { blocks, state }) => {
                let len = (*blocks).max(1).saturating_mul(self.shape.block_size);
                self.answer = Some(len);
                let hole = *state != Provisioning::Mapped;
                (start.saturating_add(len), hole)
            }
            _ => (u64::MAX, false),
        };
        self.windows[place].asked = None;
        let mut known_to = self.windows[place].learn(self.unit, end, hole);
        for window in self.windows.iter_mut().skip(place + 1) {
            if end <= known_to || !window.is_untouched_at(known_to) {
                break;
            }
            known_to = window.learn(self.unit, end, hole);
        }
    }

    /// The next piece to work on.
    pub(super) fn next(&mut self) -> Option<MappedSpan> {
        while self.windows.front()?.start().is_none() {
            self.windows.pop_front();
        }
        self.windows.front_mut()?.next()
    }

    /// Where what has not been given out begins; `None` when everything was.
    pub(super) fn start(&self) -> Option<u64> {
        self.windows.iter().find_map(StatusWindow::start)
    }

    /// Whether an answer is still to come.
    pub(super) fn is_asking(&self) -> bool {
        self.windows.iter().any(|window| window.asked.is_some())
    }
}

impl StatusWindow {
    fn new(unknown: Range<u64>) -> Self {
        Self {
            known: VecDeque::new(),
            unknown,
            asked: None,
        }
    }

    fn start(&self) -> Option<u64> {
        let known = self.known.front().map(|span| span.range.start);
        known.or_else(|| (!self.unknown.is_empty()).then_some(self.unknown.start))
    }

    /// Whether it begins there, and is neither known nor asked about.
    fn is_untouched_at(&self, at: u64) -> bool {
        self.asked.is_none() && self.known.is_empty() && self.unknown.start == at
    }

    /// What is unknown begins with data or a hole up to `end`, which may be behind this window.
    /// Returns where the unknown begins now.
    fn learn(&mut self, unit: u64, end: u64, mut hole: bool) -> u64 {
        let Range { start, end: limit } = self.unknown;
        let told = end.min(limit);
        // What of a unit is no hole makes it data.
        let whole = told / unit * unit;
        hole &= whole > start;
        let stop = if hole {
            whole
        } else {
            told.next_multiple_of(unit).min(limit)
        };
        self.unknown.start = stop;
        match self.known.back_mut() {
            Some(last) if last.hole == hole => last.range.end = stop,
            _ => self.known.push_back(MappedSpan {
                range: start..stop,
                hole,
            }),
        }
        stop
    }

    fn next(&mut self) -> Option<MappedSpan> {
        let span = self.known.front_mut()?;
        let Range { start, end } = span.range;
        let stop = if span.hole {
            start + HOLE
        } else {
            // Pieces end where those of other runs do, and where granules are likely to.
            (start / CHUNK + 1) * CHUNK
        };
        let stop = stop.min(end);
        let hole = span.hole;
        span.range.start = stop;
        if stop == end {
            self.known.pop_front();
        }
        Some(MappedSpan {
            range: start..stop,
            hole,
        })
    }
}
