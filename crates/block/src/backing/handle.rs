//! Blocks behind a descriptor, as one core works on them.

use std::io;
use std::sync::Arc;

use ::io::memory::{Buffer, Pool, Recall};
use ::io::ring::{FileOp, RingFile};
use scsi::medium::{
    Extent, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning, ReadMemory,
};
use slab::Slab;

use super::lent::LentPages;
use super::{Backing, space};
use crate::chunked::ChunkedRange;
use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId};

mod allocation;

use allocation::{AllocationGoal, RepeatedFill};

pub(super) struct BackingHandle {
    node: HandleId,
    backing: Arc<Backing>,
    /// For reads, writes and flushes.
    data: Arc<RingFile>,
    /// For writes that are durable when they end.
    durable: Arc<RingFile>,
    pool: Pool,
    pending: Slab<RingOperation>,
    flushes: FlushQueue,
    lent: LentPages,
}

/// An operation on the ring, and what it is for.
enum RingOperation {
    Read(u64),
    Write(u64),
    Flush,
    Status(u64, Extent),
    Prefetch(u64),
    /// The end of a change of allocation that must be durable.
    Settle(u64),
    /// A change of allocation, step by step.
    Long(u64, ChunkedRange, AllocationGoal),
    /// One buffer written again and again.
    Fill(u64, RepeatedFill),
}

/// Flushes go one after the other. Those that come meanwhile share the next one: it begins after
/// all of their writes have ended.
#[derive(Default)]
struct FlushQueue {
    in_flight: Vec<u64>,
    waiting: Vec<u64>,
}

/// What an operation came to: its result now, or later by its slot.
type BackingStarted = Result<Option<MediumOutcome<BlockLease>>, MediumError>;

impl BackingHandle {
    pub(super) fn new(
        backing: Arc<Backing>,
        data: Arc<RingFile>,
        durable: Arc<RingFile>,
        core: &CoreContext,
    ) -> Self {
        Self {
            node: core.node(),
            backing,
            data,
            durable,
            pool: core.pool.clone(),
            pending: Slab::with_capacity(SLOTS),
            flushes: FlushQueue::default(),
            lent: LentPages::default(),
        }
    }

    fn start(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) -> BackingStarted {
        match op {
            MediumOp::Read { extent, memory } => self.read(cx, id, extent, memory),
            MediumOp::Buffer { bytes } => self.buffer(bytes as usize),
            MediumOp::Status { extent } => Ok(self.status(cx, id, extent)),
            MediumOp::Prefetch { extent } => Ok(self.prefetch(cx, id, extent)),
            MediumOp::Flush { .. } => self.flush(cx, id),
            _ if self.backing.rules.read_only => Err(MediumError::ReadOnly),
            MediumOp::PrepareWrite { extent } => {
                self.buffer(self.backing.rules.block_size.len(extent))
            }
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic,
            } => self.write(cx, id, extent, data.into(), BackingWrite { fua, atomic }),
            MediumOp::WriteSame {
                extent,
                pattern: Some(pattern),
            } => self.repeat(cx, id, extent, &pattern.into()),
            MediumOp::WriteSame {
                extent,
                pattern: None,
            } => self.reallocate(cx, id, extent, AllocationGoal::Zeros),
            MediumOp::Unmap {
                extent,
                anchor: false,
            } => self.unmap(cx, id, extent),
            MediumOp::Unmap { anchor: true, .. } | MediumOp::Sanitize { .. } => {
                Err(MediumError::Unsupported)
            }
        }
    }

    fn buffer(&self, len: usize) -> BackingStarted {
        let buffer = self.pool.buffer(len).ok_or(MediumError::Busy)?;
        Ok(Some(MediumOutcome::Lease(buffer.into())))
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        memory: ReadMemory,
    ) -> BackingStarted {
        self.backing.check_end(extent, MediumError::Read)?;
        if memory == ReadMemory::Sent
            && let Some(buffer) = self.lent.lend(cx.now, (&self.backing, &self.data), extent)
        {
            return Ok(Some(MediumOutcome::Lease(buffer.into())));
        }
        let block_size = self.backing.rules.block_size;
        let buffer = self.pool.buffer(block_size.len(extent));
        let op = FileOp::Read {
            file: Arc::clone(&self.data),
            offset: block_size.range(extent).start,
            buffer: buffer.ok_or(MediumError::Busy)?,
        };
        self.ask(cx, RingOperation::Read(id), op);
        Ok(None)
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
        data: Buffer,
        way: BackingWrite,
    ) -> BackingStarted {
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
        self.ask(cx, RingOperation::Write(id), op);
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

    fn flush(&mut self, cx: &mut Context<'_>, id: u64) -> BackingStarted {
        if self.backing.rules.read_only {
            return Ok(Some(MediumOutcome::Done));
        }
        self.backing.check()?;
        self.flushes.waiting.push(id);
        if self.flushes.in_flight.is_empty() {
            self.flush_waiting(cx);
        }
        Ok(None)
    }

    fn flush_waiting(&mut self, cx: &mut Context<'_>) {
        let FlushQueue { in_flight, waiting } = &mut self.flushes;
        std::mem::swap(in_flight, waiting);
        if !in_flight.is_empty() {
            let file = Arc::clone(&self.data);
            self.ask(cx, RingOperation::Flush, FileOp::DataSync { file });
        }
    }

    fn flushed(&mut self, cx: &mut Context<'_>, result: &io::Result<u64>) {
        let failure = match result {
            Ok(_) => self.backing.check().err(),
            Err(error) => Some(self.backing.flush_failed(error)),
        };
        for id in self.flushes.in_flight.drain(..) {
            cx.done(id, failure.map_or(Ok(MediumOutcome::Done), Err));
        }
        self.flush_waiting(cx);
    }

    fn status(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
    ) -> Option<MediumOutcome<BlockLease>> {
        if !self.backing.rules.knows_holes {
            return Some(MediumOutcome::Provisioning {
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
        self.ask(cx, RingOperation::Status(id, extent), op);
        None
    }

    fn prefetch(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        extent: Extent,
    ) -> Option<MediumOutcome<BlockLease>> {
        let rules = &self.backing.rules;
        if rules.direct.is_some() || extent.blocks == 0 {
            return Some(MediumOutcome::Done);
        }
        let (file, range) = (Arc::clone(&self.data), rules.block_size.range(extent));
        let advise = move || space::prefetch(&file, &range).map(|()| 0);
        let op = FileOp::Blocking(Box::new(advise));
        self.ask(cx, RingOperation::Prefetch(id), op);
        None
    }

    fn was_read(
        &self,
        result: &io::Result<u64>,
        buffer: Option<Buffer>,
    ) -> MediumResult<BlockLease> {
        match (result, buffer) {
            (Ok(_), Some(buffer)) => Ok(MediumOutcome::Lease(buffer.into())),
            (Ok(_), None) => Err(MediumError::Read),
            (Err(error), _) => Err(self.backing.read_failed(error)),
        }
    }

    fn provisioning(&self, result: &io::Result<u64>, extent: Extent) -> MediumResult<BlockLease> {
        let packed = result.as_ref();
        let packed = packed.map_err(|error| self.backing.read_failed(error))?;
        let state = match packed & 1 {
            0 => Provisioning::Deallocated,
            _ => Provisioning::Mapped,
        };
        let blocks = (packed >> 1).min(extent.blocks);
        Ok(MediumOutcome::Provisioning { blocks, state })
    }

    fn ask(&mut self, cx: &mut Context<'_>, pending: RingOperation, op: FileOp) {
        let slot = self.pending.insert(pending);
        cx.file(self.node, u32::try_from(slot).unwrap_or(u32::MAX), op);
    }
}

impl Handle for BackingHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let started = self.start(cx, id, op);
        tell(cx, id, started);
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        let HandleEvent::File { result, buffer } = event else {
            return;
        };
        let Some(pending) = self.pending.try_remove(slot as usize) else {
            return;
        };
        match pending {
            RingOperation::Read(id) => cx.done(id, self.was_read(&result, buffer)),
            RingOperation::Write(id) => {
                let written = result.map(|_| MediumOutcome::Done);
                cx.done(
                    id,
                    written.map_err(|error| self.backing.write_failed(&error)),
                );
            }
            RingOperation::Flush => self.flushed(cx, &result),
            RingOperation::Status(id, extent) => cx.done(id, self.provisioning(&result, extent)),
            // It is advice: what cannot be read is reported to the next read.
            RingOperation::Prefetch(id) => cx.done(id, Ok(MediumOutcome::Done)),
            RingOperation::Settle(id) => {
                let settled = result.map(|_| MediumOutcome::Done);
                cx.done(
                    id,
                    settled.map_err(|error| self.backing.flush_failed(&error)),
                );
            }
            RingOperation::Long(id, long, goal) => {
                let started = self.stepped(cx, id, long, goal, &result);
                tell(cx, id, started);
            }
            RingOperation::Fill(id, fill) => {
                let started = self.filled(cx, id, fill, &result);
                tell(cx, id, started);
            }
        }
    }

    fn recall(&mut self) -> Option<Recall> {
        self.lent.recall()
    }
}

/// How a write is to be done.
#[derive(Clone, Copy)]
struct BackingWrite {
    fua: bool,
    atomic: bool,
}

fn tell(cx: &mut Context<'_>, id: u64, started: BackingStarted) {
    match started {
        Ok(None) => {}
        Ok(Some(outcome)) => cx.done(id, Ok(outcome)),
        Err(error) => cx.done(id, Err(error)),
    }
}

/// Room for the operations of a busy core, so that the path of data does not allocate.
const SLOTS: usize = 1024;
