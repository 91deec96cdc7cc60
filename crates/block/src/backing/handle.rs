//! Blocks behind a descriptor, as one core works on them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::io::memory::{Buffer, Pool, ZEROS_MAX};
use ::io::ring::{File, FileOp};
use scsi::medium::{
    Extent, MediumError, MediumOp, MediumResult, Outcome, Provisioning, SEGMENT_BYTES,
};
use slab::Slab;

use super::{Backing, Zeroing, space};
use crate::error::is_unsupported;
use crate::lease::Lease;
use crate::long::{Long, Work};
use crate::volume::{Context, CoreContext, Handle, Node};

pub(super) struct BackingHandle {
    node: Node,
    backing: Arc<Backing>,
    /// For reads, writes and flushes.
    data: Arc<File>,
    /// For writes that are durable when they end.
    durable: Arc<File>,
    pool: Pool,
    pending: Slab<Pending>,
    flushes: Flushes,
}

/// An operation on the ring, and what it is for.
enum Pending {
    Read(u64),
    Write(u64),
    Flush,
    Status(u64, Extent),
    Prefetch(u64),
    /// The end of a change of allocation that must be durable.
    Settle(u64),
    /// A change of allocation, step by step.
    Long(u64, Long, Goal),
    /// One buffer written again and again.
    Fill(u64, Fill),
}

/// What a change of allocation is for.
#[derive(Clone, Copy)]
enum Goal {
    /// To give space back. Nothing is written for it: it may be of any length.
    Space,
    /// Zeros, which are written where they cannot be made otherwise.
    Zeros,
}

struct Fill {
    rest: Range<u64>,
    buffer: Buffer,
}

/// Flushes go one after the other. Those that come meanwhile share the next one: it begins after
/// all of their writes have ended.
#[derive(Default)]
struct Flushes {
    under_way: Vec<u64>,
    waiting: Vec<u64>,
}

/// What an operation came to: its result now, or later by its slot.
type Started = Result<Option<Outcome<Lease>>, MediumError>;

impl BackingHandle {
    pub(super) fn new(
        backing: Arc<Backing>,
        data: Arc<File>,
        durable: Arc<File>,
        core: &CoreContext,
    ) -> Self {
        Self {
            node: core.node(),
            backing,
            data,
            durable,
            pool: core.pool.clone(),
            pending: Slab::with_capacity(SLOTS),
            flushes: Flushes::default(),
        }
    }

    fn start(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) -> Started {
        match op {
            MediumOp::Read { extent, .. } => self.read(cx, id, extent),
            MediumOp::Buffer { bytes } => self.buffer(bytes as usize),
            MediumOp::Status { extent } => Ok(self.status(cx, id, extent)),
            MediumOp::Prefetch { extent } => Ok(self.prefetch(cx, id, extent)),
            MediumOp::Flush { .. } => self.flush(cx, id),
            _ if self.backing.rules.read_only => Err(MediumError::ReadOnly),
            MediumOp::Lend { extent } => self.buffer(self.backing.rules.block_size.len(extent)),
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic,
            } => self.write(cx, id, extent, data.into(), Way { fua, atomic }),
            MediumOp::WriteSame {
                extent,
                pattern: Some(pattern),
            } => self.repeat(cx, id, extent, &pattern.into()),
            MediumOp::WriteSame {
                extent,
                pattern: None,
            } => self.reallocate(cx, id, extent, Goal::Zeros),
            MediumOp::Unmap {
                extent,
                anchor: false,
            } => self.unmap(cx, id, extent),
            MediumOp::Unmap { anchor: true, .. } | MediumOp::Sanitize { .. } => {
                Err(MediumError::Unsupported)
            }
        }
    }

    fn buffer(&self, len: usize) -> Started {
        let buffer = self.pool.buffer(len).ok_or(MediumError::Busy)?;
        Ok(Some(Outcome::Lease(buffer.into())))
    }

    fn read(&mut self, cx: &mut Context<'_>, id: u64, extent: Extent) -> Started {
        self.backing.check_end(extent, MediumError::Read)?;
        let block_size = self.backing.rules.block_size;
        let buffer = self.pool.buffer(block_size.len(extent));
        let op = FileOp::Read {
            file: Arc::clone(&self.data),
            offset: block_size.range(extent).start,
            buffer: buffer.ok_or(MediumError::Busy)?,
        };
        self.ask(cx, Pending::Read(id), op);
        Ok(None)
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        data: Buffer,
        way: Way,
    ) -> Started {
        self.backing.check_end(extent, MediumError::Write)?;
        let rules = &self.backing.rules;
        let dsync = way.fua || rules.sync;
        if dsync {
            self.backing.check()?;
        }
        if way.atomic && !self.keeps_whole(extent) {
            return Err(MediumError::Unsupported);
        }
        let offset = rules.block_size.range(extent).start;
        let buffer = self.aligned(data)?;
        let op = self.write_op(offset, buffer, dsync, way.atomic);
        self.ask(cx, Pending::Write(id), op);
        Ok(None)
    }

    fn write_op(&self, offset: u64, buffer: Buffer, dsync: bool, atomic: bool) -> FileOp {
        let file = if dsync { &self.durable } else { &self.data };
        FileOp::Write {
            file: Arc::clone(file),
            offset,
            buffer,
            dsync,
            atomic,
        }
    }

    fn keeps_whole(&self, extent: Extent) -> bool {
        let multiple = |n: u64, of: u32| n.is_multiple_of(u64::from(of.max(1)));
        self.backing.rules.atomic.is_some_and(|atomic| {
            extent.blocks <= u64::from(atomic.max_blocks)
                && multiple(extent.blocks, atomic.granularity)
                && multiple(extent.lba, atomic.alignment)
        })
    }

    /// The data in memory from which it can be written: a copy where direct I/O needs an
    /// alignment that the memory does not have.
    fn aligned(&self, data: Buffer) -> Result<Buffer, MediumError> {
        match self.backing.rules.direct {
            Some(alignment) if !data.is_aligned(alignment) => {
                let copy = self.pool.buffer(data.len()).ok_or(MediumError::Busy)?;
                copy.copy_from(0, &data);
                Ok(copy)
            }
            _ => Ok(data),
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>, id: u64) -> Started {
        if self.backing.rules.read_only {
            return Ok(Some(Outcome::Done));
        }
        self.backing.check()?;
        self.flushes.waiting.push(id);
        if self.flushes.under_way.is_empty() {
            self.flush_waiting(cx);
        }
        Ok(None)
    }

    fn flush_waiting(&mut self, cx: &mut Context<'_>) {
        let Flushes { under_way, waiting } = &mut self.flushes;
        std::mem::swap(under_way, waiting);
        if !under_way.is_empty() {
            let file = Arc::clone(&self.data);
            self.ask(cx, Pending::Flush, FileOp::DataSync { file });
        }
    }

    fn flushed(&mut self, cx: &mut Context<'_>, result: &io::Result<u64>) {
        let failure = match result {
            Ok(_) => self.backing.check().err(),
            Err(error) => Some(self.backing.flush_failed(error)),
        };
        for id in self.flushes.under_way.drain(..) {
            cx.done(id, failure.map_or(Ok(Outcome::Done), Err));
        }
        self.flush_waiting(cx);
    }

    fn status(&mut self, cx: &mut Context<'_>, id: u64, extent: Extent) -> Option<Outcome<Lease>> {
        if !self.backing.rules.knows_holes {
            return Some(Outcome::Provisioning {
                blocks: extent.blocks,
                state: Provisioning::Mapped,
            });
        }
        let block_size = self.backing.rules.block_size;
        let (file, range) = (Arc::clone(&self.data), block_size.range(extent));
        let look = move || {
            let (mapped, blocks) = space::status(&file, &range, block_size)?;
            Ok(blocks << 1 | u64::from(mapped))
        };
        let op = FileOp::Blocking(Box::new(look));
        self.ask(cx, Pending::Status(id, extent), op);
        None
    }

    fn prefetch(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
    ) -> Option<Outcome<Lease>> {
        let rules = &self.backing.rules;
        if rules.direct.is_some() || extent.blocks == 0 {
            return Some(Outcome::Done);
        }
        let (file, range) = (Arc::clone(&self.data), rules.block_size.range(extent));
        let advise = move || space::prefetch(&file, &range).map(|()| 0);
        let op = FileOp::Blocking(Box::new(advise));
        self.ask(cx, Pending::Prefetch(id), op);
        None
    }

    fn unmap(&mut self, cx: &mut Context<'_>, id: u64, extent: Extent) -> Started {
        if self.backing.rules.unmap_granularity.is_none() {
            return Err(MediumError::Unsupported);
        }
        self.reallocate(cx, id, extent, Goal::Space)
    }

    /// Makes an extent read as zeros, a step at a time, by the first way that works.
    fn reallocate(&mut self, cx: &mut Context<'_>, id: u64, extent: Extent, goal: Goal) -> Started {
        self.backing.check_end(extent, MediumError::Write)?;
        let rules = &self.backing.rules;
        if rules.sync {
            self.backing.check()?;
        }
        let range = rules.block_size.range(extent);
        let ways = match goal {
            Goal::Space => &[Zeroing::Punch],
            Goal::Zeros => rules.zeroing,
        };
        if !self.backing.unsupported.leaves(ways) {
            return self.no_way(cx, id, range, goal);
        }
        let (backing, file) = (Arc::clone(&self.backing), Arc::clone(&self.durable));
        let work: Work = Arc::new(move |range| backing.unsupported.zero(&file, &range, ways));
        Ok(self.step(cx, id, Long::new(range, STEP, work), goal))
    }

    /// The rest of a change of allocation of which none is supported.
    fn no_way(&mut self, cx: &mut Context<'_>, id: u64, rest: Range<u64>, goal: Goal) -> Started {
        match goal {
            Goal::Space => Err(MediumError::Unsupported),
            Goal::Zeros => Ok(self.write_zeros(cx, id, rest)),
        }
    }

    fn step(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        long: Long,
        goal: Goal,
    ) -> Option<Outcome<Lease>> {
        match long.next() {
            Some(op) => self.ask(cx, Pending::Long(id, long, goal), op),
            None if self.backing.rules.sync => {
                let file = Arc::clone(&self.durable);
                self.ask(cx, Pending::Settle(id), FileOp::DataSync { file });
            }
            None => return Some(Outcome::Done),
        }
        None
    }

    fn stepped(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        mut long: Long,
        goal: Goal,
        result: &io::Result<u64>,
    ) -> Started {
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
    ) -> Option<Outcome<Lease>> {
        let buffer = Buffer::zeros(ZEROS_MAX);
        self.fill(cx, id, Fill { rest, buffer })
    }

    /// Writes one block to all blocks of an extent, a segment at a time.
    fn repeat(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        pattern: &Buffer,
    ) -> Started {
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
        Ok(self.fill(cx, id, Fill { rest, buffer }))
    }

    fn fill(&mut self, cx: &mut Context<'_>, id: u64, fill: Fill) -> Option<Outcome<Lease>> {
        if fill.rest.is_empty() {
            return Some(Outcome::Done);
        }
        let rest = fill.rest.end - fill.rest.start;
        let len = usize::try_from(rest).map_or(fill.buffer.len(), |n| n.min(fill.buffer.len()));
        let piece = fill.buffer.slice(0, len);
        let op = self.write_op(fill.rest.start, piece, self.backing.rules.sync, false);
        self.ask(cx, Pending::Fill(id, fill), op);
        None
    }

    fn filled(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        mut fill: Fill,
        result: &io::Result<u64>,
    ) -> Started {
        match result {
            Ok(written) => {
                fill.rest.start = fill.rest.start.saturating_add(*written);
                Ok(self.fill(cx, id, fill))
            }
            Err(error) => Err(self.backing.write_failed(error)),
        }
    }

    fn was_read(&self, result: &io::Result<u64>, buffer: Option<Buffer>) -> MediumResult<Lease> {
        match (result, buffer) {
            (Ok(_), Some(buffer)) => Ok(Outcome::Lease(buffer.into())),
            (Ok(_), None) => Err(MediumError::Read),
            (Err(error), _) => Err(self.backing.read_failed(error)),
        }
    }

    fn provisioning(&self, result: &io::Result<u64>, extent: Extent) -> MediumResult<Lease> {
        let packed = result.as_ref();
        let packed = packed.map_err(|error| self.backing.read_failed(error))?;
        let state = match packed & 1 {
            0 => Provisioning::Deallocated,
            _ => Provisioning::Mapped,
        };
        let blocks = (packed >> 1).min(extent.blocks);
        Ok(Outcome::Provisioning { blocks, state })
    }

    fn ask(&mut self, cx: &mut Context<'_>, pending: Pending, op: FileOp) {
        let slot = self.pending.insert(pending);
        cx.file(self.node, u32::try_from(slot).unwrap_or(u32::MAX), op);
    }
}

impl Handle for BackingHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        let started = self.start(cx, id, op);
        tell(cx, id, started);
    }

    /// It watches nothing.
    fn ready(&mut self, _: &mut Context<'_>, _: Node, _: u32) {}

    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        _: Node,
        slot: u32,
        result: io::Result<u64>,
        buffer: Option<Buffer>,
    ) {
        let Some(pending) = self.pending.try_remove(slot as usize) else {
            return;
        };
        match pending {
            Pending::Read(id) => cx.done(id, self.was_read(&result, buffer)),
            Pending::Write(id) => {
                let written = result.map(|_| Outcome::Done);
                cx.done(
                    id,
                    written.map_err(|error| self.backing.write_failed(&error)),
                );
            }
            Pending::Flush => self.flushed(cx, &result),
            Pending::Status(id, extent) => cx.done(id, self.provisioning(&result, extent)),
            // It is advice: what cannot be read will be told to whoever reads it.
            Pending::Prefetch(id) => cx.done(id, Ok(Outcome::Done)),
            Pending::Settle(id) => {
                let settled = result.map(|_| Outcome::Done);
                cx.done(
                    id,
                    settled.map_err(|error| self.backing.flush_failed(&error)),
                );
            }
            Pending::Long(id, long, goal) => {
                let started = self.stepped(cx, id, long, goal, &result);
                tell(cx, id, started);
            }
            Pending::Fill(id, fill) => {
                let started = self.filled(cx, id, fill, &result);
                tell(cx, id, started);
            }
        }
    }
}

/// How a write is to be done.
#[derive(Clone, Copy)]
struct Way {
    fua: bool,
    atomic: bool,
}

fn tell(cx: &mut Context<'_>, id: u64, started: Started) {
    match started {
        Ok(None) => {}
        Ok(Some(outcome)) => cx.done(id, Ok(outcome)),
        Err(error) => cx.done(id, Err(error)),
    }
}

/// What one change of allocation covers: a device that has to write the zeros itself takes a
/// fraction of a second for it.
const STEP: u64 = 64 << 20;

/// Room for the operations of a busy core, so that the path of data does not allocate.
const SLOTS: usize = 1024;
