//! `ram:SIZE`: a RAM disk, and `ram:SIZE?locked`, whose memory is there from the start.
//!
//! Memory is taken where blocks are written and given back where they are unmapped; the region's
//! own map says which are, so that reading a hole takes none. What is read leaves from the memory
//! of the volume itself, and blocks that were received into memory that [`MediumOp::PrepareWrite`]
//! gave are there already.
//!
//! # What it promises
//!
//! It does not outlive the process, let alone a power cut: after either it is a new, empty volume
//! of another identity. Between the two nothing is volatile, so there is no write cache to flush.
//! A write of up to a segment from private memory is all there or not at all, since space is
//! reserved before anything is copied and the copy cannot fail; no power cut can leave half of it
//! behind, because none leaves anything. So it offers atomic writes of up to a segment, at any
//! alignment. Of memory that was lent that holds for each block alone: when a write is given up,
//! each of its blocks is old or new, and never a part of one. A write that has to be whole asks for
//! [`MediumOp::Buffer`], and keeps readers on other cores away for the time of the copy.
//!
//! SANITIZE is real: overwriting overwrites the only copy that there is, and a block erase gives
//! the memory back to the kernel, which clears it before anybody else gets it. (What was swapped
//! out is beyond our reach; do not swap where RAM disks are sanitized.)
//!
//! # Huge pages
//!
//! Memory is taken by pages of 4 KiB. Where most of 2 MiB was written, the region replaces them by
//! a huge page, in the background: reads and writes at random places are a quarter faster then.
//! That takes what was not written of the 2 MiB as well, so it is done only for a volume that fits
//! whole into what is left of the memory limit, where it cannot make writes fail.
//!
//! # Locked
//!
//! All memory of a locked disk is taken and locked when it is opened, so it is never swapped out,
//! no write fails for want of it, and RDMA devices can know it for good: they read and write it
//! without a copy. It is never given back before the disk goes, as a device would go on with the
//! pages that were there before. So blocks that are unmapped are zeroed, and are then anchored:
//! they read as zeros, and their storage is reserved. Where a device fills blocks by itself, a
//! write that is given up may leave a part of a block.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::io::memory::{
    Buffer, GRANULE, LocalRegion, MemoryLimit, NoSpace, Pages, Pool, PrefetchQueue, Recall, Region,
};
use rustix::io::Errno;
use scsi::medium::{
    Atomic, Extent, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning, ReadMemory,
    SEGMENT_BYTES, Sanitize, SanitizeKind, Traits,
};
use scsi::statistics::SpaceUsage;
use slab::Slab;

use crate::chunked::{ChunkStep, ChunkedRange};
use crate::error::{VolumeError, write_error};
use crate::lease::BlockLease;
use crate::size::BlockSize;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};

/// A RAM disk.
#[derive(Debug)]
pub struct Ram {
    region: Arc<Region>,
    /// What it shares with other volumes.
    memory: MemoryLimit,
    block_size: BlockSize,
    blocks: u64,
}

impl Ram {
    /// A RAM disk of `size` bytes, all holes. It may be larger than the machine's memory.
    ///
    /// # Errors
    ///
    /// When the size is less than a block, `block_size` is neither 512 nor 4096, or there is no
    /// address space left.
    pub fn new(size: u64, block_size: u32, memory: &MemoryLimit) -> Result<Self, VolumeError> {
        let pages = if size <= memory.limit().saturating_sub(memory.used()) {
            Pages::Huge
        } else {
            Pages::Small
        };
        Self::with_pages(size, block_size, memory, pages)
    }

    /// A RAM disk whose memory is taken and locked now. It blocks for as long as that takes.
    ///
    /// # Errors
    ///
    /// As [`Self::new`]; and when there is not so much memory, or it may not be locked.
    pub fn locked(size: u64, block_size: u32, memory: &MemoryLimit) -> Result<Self, VolumeError> {
        let block_size = BlockSize::new(block_size)?;
        let blocks = block_size.capacity(size)?;
        let len = blocks * u64::from(block_size.bytes());
        Ok(Self {
            region: Region::locked(len, memory)?,
            memory: memory.clone(),
            block_size,
            blocks,
        })
    }

    pub(crate) fn with_pages(
        size: u64,
        block_size: u32,
        memory: &MemoryLimit,
        pages: Pages,
    ) -> Result<Self, VolumeError> {
        let block_size = BlockSize::new(block_size)?;
        let blocks = block_size.capacity(size)?;
        let len = blocks * u64::from(block_size.bytes());
        let region = Region::reserve(len, pages, memory).map_err(|cause| VolumeError::Kernel {
            what: "reserve address space",
            cause,
        })?;
        Ok(Self {
            region,
            memory: memory.clone(),
            block_size,
            blocks,
        })
    }
}

impl Volume for Ram {
    fn traits(&self) -> Traits {
        let block_size = u64::from(self.block_size.bytes());
        Traits {
            block_size: self.block_size.bytes(),
            blocks: self.blocks,
            physical_exponent: self.block_size.physical_exponent(),
            read_only: false,
            write_cache: false,
            unmap_granularity: u32::try_from(GRANULE / block_size).ok(),
            anchor: self.region.is_locked(),
            atomic: Some(Atomic {
                max_blocks: u32::try_from(SEGMENT_BYTES / block_size).unwrap_or(1),
                alignment: 1,
                granularity: 1,
            }),
            sanitize: &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
            solid_state: true,
            write_same_to_end: false,
            shared: false,
        }
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(RamHandle {
            read: self.region.attach(),
            written: self.region.attach_in_blocks(self.block_size.bytes()),
            shared: Arc::clone(&self.region),
            block_size: self.block_size,
            pool: core.pool.clone(),
            node: core.node(),
            ahead: PrefetchQueue::default(),
            long: Slab::new(),
        }))
    }

    fn is_empty_at_start(&self) -> bool {
        true
    }

    fn usage(&self) -> Option<SpaceUsage> {
        let used = self.region.charged();
        let holes = self.region.len().saturating_sub(used);
        let available = self.memory.limit().saturating_sub(self.memory.used());
        let blocks = |bytes: u64| bytes / u64::from(self.block_size.bytes());
        Some(SpaceUsage {
            used: blocks(used).min(self.blocks),
            available: blocks(available.min(holes)),
        })
    }
}

struct RamHandle {
    /// Lends what is read.
    read: LocalRegion,
    /// Lends what is to be written, which a recall does not wait for: data may come late.
    written: LocalRegion,
    /// The same, for threads that may block.
    shared: Arc<Region>,
    block_size: BlockSize,
    pool: Pool,
    node: HandleId,
    ahead: PrefetchQueue,
    long: Slab<(u64, ChunkedRange)>,
}

impl Handle for RamHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let result = match op {
            MediumOp::Read {
                extent,
                memory: ReadMemory::Private,
            } => self.copy(extent),
            MediumOp::Read { extent, .. } => Ok(self.read(extent)),
            MediumOp::PrepareWrite { extent } => self.lend(extent),
            MediumOp::Buffer { bytes } => self.private(bytes),
            MediumOp::Write { extent, data, .. } => self.write(extent, data),
            MediumOp::Flush { .. } | MediumOp::Prefetch { .. } => Ok(MediumOutcome::Done),
            MediumOp::Status { extent } => Ok(self.status(extent)),
            MediumOp::Unmap { anchor: true, .. } if !self.shared.is_locked() => {
                Err(MediumError::Unsupported)
            }
            MediumOp::WriteSame { extent, pattern } => {
                let work = match pattern {
                    Some(pattern) => self.filling(&pattern.into(), fill),
                    None => self.freeing(),
                };
                return self.start(cx, id, extent, work);
            }
            MediumOp::Unmap { extent, .. } => {
                let work = self.freeing();
                return self.start(cx, id, extent, work);
            }
            MediumOp::Sanitize { extent, method } => {
                let work = self.sanitizing(method);
                return self.start(cx, id, extent, work);
            }
        };
        cx.done(id, result);
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        let HandleEvent::File { result, .. } = event else {
            return;
        };
        let Some((id, long)) = self.long.get_mut(slot as usize) else {
            return;
        };
        let id = *id;
        let result = match result {
            Ok(_) => {
                long.advance();
                match long.next() {
                    Some(op) => return cx.file(self.node, slot, op),
                    None => Ok(MediumOutcome::Done),
                }
            }
            Err(error) => Err(write_error(&error)),
        };
        self.long.remove(slot as usize);
        cx.done(id, result);
    }

    fn recall(&mut self) -> Option<Recall> {
        Some(self.read.recall())
    }
}

impl RamHandle {
    fn read(&mut self, extent: Extent) -> MediumOutcome<BlockLease> {
        let buffer = self.read.buffer(self.block_size.range(extent));
        // It is sent when the whole batch of commands has been looked at.
        self.ahead.note(&buffer);
        MediumOutcome::Lease(buffer.into())
    }

    fn copy(&self, extent: Extent) -> MediumResult<BlockLease> {
        let data = self.read.buffer(self.block_size.range(extent));
        let copy = self.pool.buffer(data.len()).ok_or(MediumError::Busy)?;
        copy.copy_from(0, &data);
        Ok(MediumOutcome::Lease(copy.into()))
    }

    fn lend(&self, extent: Extent) -> MediumResult<BlockLease> {
        let lent = self.written.lend(self.block_size.range(extent));
        Ok(MediumOutcome::Lease(lent.map_err(no_space)?.into()))
    }

    fn private(&self, bytes: u32) -> MediumResult<BlockLease> {
        let buffer = self.pool.buffer(bytes as usize);
        Ok(MediumOutcome::Lease(
            buffer.ok_or(MediumError::Busy)?.into(),
        ))
    }

    fn write(&self, extent: Extent, data: BlockLease) -> MediumResult<BlockLease> {
        let range = self.block_size.range(extent);
        if !self.written.is_memory_of(&range, data.buffer()) {
            let memory = self.written.lend(range).map_err(no_space)?;
            memory.copy_from(0, data.buffer());
        }
        // Before the write counts as done, the region must know that it is over.
        drop(data);
        Ok(MediumOutcome::Done)
    }

    fn status(&self, extent: Extent) -> MediumOutcome<BlockLease> {
        let range = self.block_size.range(extent);
        let (mapped, bytes) = self.shared.state(range.start);
        let blocks = bytes / u64::from(self.block_size.bytes());
        MediumOutcome::Provisioning {
            blocks: blocks.clamp(1, extent.blocks.max(1)),
            state: match mapped {
                true => Provisioning::Mapped,
                false if self.shared.is_locked() => Provisioning::Anchored,
                false => Provisioning::Deallocated,
            },
        }
    }

    /// Does it at once when it is short, else a step at a time on other threads.
    fn start(&mut self, cx: &mut Context<'_>, id: u64, extent: Extent, work: ChunkStep) {
        let range = self.block_size.range(extent);
        if range.end - range.start <= AT_ONCE {
            let result = work(range).map_err(|error| write_error(&error));
            return cx.done(id, result.map(|()| MediumOutcome::Done));
        }
        let long = ChunkedRange::new(range, STEP, work);
        let first = long.next();
        let slot = self.long.insert((id, long));
        if let (Some(op), Ok(slot)) = (first, u32::try_from(slot)) {
            cx.file(self.node, slot, op);
        }
    }

    fn freeing(&self) -> ChunkStep {
        let region = Arc::clone(&self.shared);
        Arc::new(move |range| {
            region.deallocate(range);
            Ok(())
        })
    }

    /// Fills with a block, repeated.
    fn filling(&self, pattern: &Buffer, fill: StoreBytes) -> ChunkStep {
        let region = Arc::clone(&self.shared);
        let mut bytes = vec![0; pattern.len()];
        pattern.copy_out(0, &mut bytes);
        let bytes = bytes.repeat((FILL_BYTES / bytes.len().max(1)).max(1));
        Arc::new(move |range| fill(&region, range, &bytes))
    }

    fn sanitizing(&self, method: Sanitize<BlockLease>) -> ChunkStep {
        match method {
            Sanitize::BlockErase => self.freeing(),
            Sanitize::Overwrite { pattern } => self.filling(&pattern.into(), overwrite),
        }
    }
}

type StoreBytes = fn(&Arc<Region>, Range<u64>, &[u8]) -> io::Result<()>;

/// The same as [`fill`], but that zeros are not stored in holes: nothing is there to be
/// overwritten, and a thin volume may have more holes than there is memory.
fn overwrite(region: &Arc<Region>, range: Range<u64>, bytes: &[u8]) -> io::Result<()> {
    if bytes.iter().any(|byte| *byte != 0) {
        return fill(region, range, bytes);
    }
    let mut start = range.start;
    while start < range.end {
        let (mapped, bytes_alike) = region.state(start);
        let end = range.end.min(start + bytes_alike.max(1));
        if mapped {
            fill(region, start..end, bytes)?;
        }
        start = end;
    }
    Ok(())
}

/// Stores `bytes` again and again. The range begins where they do, and has whole blocks.
fn fill(region: &Arc<Region>, range: Range<u64>, bytes: &[u8]) -> io::Result<()> {
    let local = region.attach();
    for start in range.clone().step_by(bytes.len()) {
        let end = range.end.min(start + bytes.len() as u64);
        let memory = local.lend(start..end).map_err(|NoSpace| Errno::NOSPC)?;
        memory.copy_in(0, &bytes[..memory.len()]);
    }
    Ok(())
}

fn no_space(_: NoSpace) -> MediumError {
    MediumError::NoSpace
}

/// What a pattern is repeated to before it is stored: enough that the length of a step does not
/// matter, and small enough for the L2 cache.
const FILL_BYTES: usize = 64 << 10;

/// Up to here a change of allocation is done on the core itself: giving a segment back takes some
/// 20 us, about what handing it to another thread and back takes.
const AT_ONCE: u64 = SEGMENT_BYTES;

/// What one step on another thread covers: a few milliseconds.
const STEP: u64 = 16 << 20;
