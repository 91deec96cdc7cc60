//! UNMAP and zeroing, step by step, and what is left of them to writing.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::io::memory::{Buffer, ZEROS_MAX};
use ::io::ring::FileOp;
use scsi::medium::{Extent, MediumError, MediumOutcome, SEGMENT_BYTES};

use super::{BackingHandle, BackingStarted, RingOperation};
use crate::backing::Zeroing;
use crate::chunked::{ChunkStep, ChunkedRange};
use crate::error::is_unsupported;
use crate::lease::BlockLease;
use crate::volume::Context;

/// What a change of allocation is for.
#[derive(Clone, Copy)]
pub(super) enum AllocationGoal {
    /// To give space back. Nothing is written for it: it may be of any length.
    Space,
    /// Zeros, which are written where they cannot be made otherwise.
    Zeros,
}

pub(super) struct RepeatedFill {
    rest: Range<u64>,
    buffer: Buffer,
}

impl BackingHandle {
    pub(super) fn unmap(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
    ) -> BackingStarted {
        if self.backing.rules.unmap_granularity.is_none() {
            return Err(MediumError::Unsupported);
        }
        self.reallocate(cx, id, extent, AllocationGoal::Space)
    }

    /// Makes an extent read as zeros, a step at a time, by the first way that works.
    pub(super) fn reallocate(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        goal: AllocationGoal,
    ) -> BackingStarted {
        self.backing.check_end(extent, MediumError::Write)?;
        let rules = &self.backing.rules;
        if rules.sync {
            self.backing.check()?;
        }
        let range = rules.block_size.range(extent);
        let ways = match goal {
            AllocationGoal::Space => &[Zeroing::Punch],
            AllocationGoal::Zeros => rules.zeroing,
        };
        if !self.backing.unsupported.leaves(ways) {
            return self.no_way(cx, id, range, goal);
        }
        let (backing, file) = (Arc::clone(&self.backing), Arc::clone(&self.durable));
        let work: ChunkStep = Arc::new(move |range| {
            let result = backing.unsupported.zero(&file, &range, ways);
            // A step that has failed may have given back a part, and one that has kept the space
            // costs a look at each page that is read again.
            backing.forget_pages(&range);
            result
        });
        Ok(self.step(cx, id, ChunkedRange::new(range, STEP, work), goal))
    }

    /// The rest of a change of allocation of which none is supported.
    fn no_way(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        rest: Range<u64>,
        goal: AllocationGoal,
    ) -> BackingStarted {
        match goal {
            AllocationGoal::Space => Err(MediumError::Unsupported),
            AllocationGoal::Zeros => Ok(self.write_zeros(cx, id, rest)),
        }
    }

    fn step(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        long: ChunkedRange,
        goal: AllocationGoal,
    ) -> Option<MediumOutcome<BlockLease>> {
        match long.next() {
            Some(op) => self.ask(cx, RingOperation::Long(id, long, goal), op),
            None if self.backing.rules.sync => {
                let file = Arc::clone(&self.durable);
                self.ask(cx, RingOperation::Settle(id), FileOp::DataSync { file });
            }
            None => return Some(MediumOutcome::Done),
        }
        None
    }

    pub(super) fn stepped(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        mut long: ChunkedRange,
        goal: AllocationGoal,
        result: &io::Result<u64>,
    ) -> BackingStarted {
        match result {
            Ok(_) => {
                long.advance();
                Ok(self.step(cx, id, long, goal))
            }
            Err(error) if is_unsupported(error) => self.no_way(cx, id, long.rest(), goal),
            Err(error) => Err(self.backing.write_failed(error)),
        }
    }

    fn write_zeros(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        rest: Range<u64>,
    ) -> Option<MediumOutcome<BlockLease>> {
        let buffer = Buffer::zeros(ZEROS_MAX);
        self.fill(cx, id, RepeatedFill { rest, buffer })
    }

    /// Writes one block to all blocks of an extent, a segment at a time.
    pub(super) fn repeat(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        pattern: &Buffer,
    ) -> BackingStarted {
        self.backing.check_end(extent, MediumError::Write)?;
        let rules = &self.backing.rules;
        if rules.sync {
            self.backing.check()?;
        }
        let rest = rules.block_size.range(extent);
        let len = (rest.end - rest.start).min(SEGMENT_BYTES);
        let len = usize::try_from(len).unwrap_or(0);
        let buffer = self.pool.buffer(len).ok_or(MediumError::Busy)?;
        for at in (0..len).step_by(pattern.len().max(1)) {
            buffer.copy_from(at, pattern);
        }
        Ok(self.fill(cx, id, RepeatedFill { rest, buffer }))
    }

    fn fill(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        fill: RepeatedFill,
    ) -> Option<MediumOutcome<BlockLease>> {
        if fill.rest.is_empty() {
            return Some(MediumOutcome::Done);
        }
        let rest = fill.rest.end - fill.rest.start;
        let len = usize::try_from(rest).map_or(fill.buffer.len(), |n| n.min(fill.buffer.len()));
        let piece = fill.buffer.slice(0, len);
        let op = self.write_op(fill.rest.start, piece, self.backing.rules.sync, false);
        self.ask(cx, RingOperation::Fill(id, fill), op);
        None
    }

    pub(super) fn filled(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        mut fill: RepeatedFill,
        result: &io::Result<u64>,
    ) -> BackingStarted {
        match result {
            Ok(written) => {
                fill.rest.start = fill.rest.start.saturating_add(*written);
                Ok(self.fill(cx, id, fill))
            }
            Err(error) => Err(self.backing.write_failed(error)),
        }
    }
}

/// What one change of allocation covers: a device that has to write the zeros itself takes a
/// fraction of a second for it.
const STEP: u64 = 64 << 20;
