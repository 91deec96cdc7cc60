//! `null:SIZE`: reads zeros, drops writes. For measuring what is above it.

use std::io;

use ::io::memory::{Buffer, Pool};
use ::io::ring::FileOp;
use scsi::medium::{
    MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning, SEGMENT_BYTES, SanitizeKind,
    Traits,
};
use slab::Slab;

use crate::error::VolumeError;
use crate::lease::BlockLease;
use crate::size::BlockSize;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};

/// A volume that holds nothing.
///
/// What is written to it is gone at once, so it promises everything that does not need data to be
/// kept: no write is volatile, no block is mapped, and every method of SANITIZE has already worked.
#[derive(Debug)]
pub struct Null {
    block_size: BlockSize,
    blocks: u64,
}

impl Null {
    /// A volume of `size` bytes.
    ///
    /// # Errors
    ///
    /// When that is less than a block, or `block_size` is neither 512 nor 4096.
    pub fn new(size: u64, block_size: u32) -> Result<Self, VolumeError> {
        let block_size = BlockSize::new(block_size)?;
        Ok(Self {
            block_size,
            blocks: block_size.capacity(size)?,
        })
    }
}

impl Volume for Null {
    fn traits(&self) -> Traits {
        Traits {
            block_size: self.block_size.bytes(),
            blocks: self.blocks,
            physical_exponent: self.block_size.physical_exponent(),
            read_only: false,
            write_cache: false,
            unmap_granularity: Some(1),
            anchor: false,
            atomic: None,
            sanitize: &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
            solid_state: true,
            write_same_to_end: true,
            shared: false,
        }
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let scratch = vec![0; usize::try_from(SEGMENT_BYTES).map_err(io::Error::other)?];
        Ok(Box::new(NullHandle {
            node: core.node(),
            block_size: self.block_size,
            scratch: Buffer::from_vec(scratch),
            pool: core.pool.clone(),
            long: Slab::new(),
        }))
    }

    fn is_empty_at_start(&self) -> bool {
        true
    }
}

struct NullHandle {
    node: HandleId,
    block_size: BlockSize,
    /// What everything that is written goes to.
    scratch: Buffer,
    pool: Pool,
    /// Long operations.
    long: Slab<u64>,
}

impl NullHandle {
    fn answer(&self, op: &MediumOp<BlockLease>) -> MediumResult<BlockLease> {
        Ok(match op {
            MediumOp::Read { extent, .. } => {
                MediumOutcome::Lease(Buffer::zeros(self.block_size.len(*extent)).into())
            }
            MediumOp::PrepareWrite { extent } => {
                let len = self.block_size.len(*extent);
                MediumOutcome::Lease(self.scratch.slice(0, len).into())
            }
            MediumOp::Buffer { bytes } => {
                let buffer = self.pool.buffer(*bytes as usize);
                MediumOutcome::Lease(buffer.ok_or(MediumError::Busy)?.into())
            }
            MediumOp::Status { extent } => MediumOutcome::Provisioning {
                blocks: extent.blocks,
                state: Provisioning::Deallocated,
            },
            MediumOp::Unmap { anchor: true, .. } | MediumOp::Write { atomic: true, .. } => {
                return Err(MediumError::Unsupported);
            }
            _ => MediumOutcome::Done,
        })
    }
}

impl Handle for NullHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let result = self.answer(&op);
        let blocks = match op {
            MediumOp::WriteSame { extent, .. }
            | MediumOp::Unmap { extent, .. }
            | MediumOp::Sanitize { extent, .. } => extent.blocks,
            _ => 0,
        };
        if blocks * u64::from(self.block_size.bytes()) <= AT_ONCE || result.is_err() {
            return cx.done(id, result);
        }
        // What asks for the whole volume goes on with its next step as soon as this one is done: by
        // way of the ring, others have their turn in between.
        if let Ok(slot) = u32::try_from(self.long.insert(id)) {
            cx.file(self.node, slot, FileOp::Blocking(Box::new(|| Ok(0))));
        }
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        let HandleEvent::File { .. } = event else {
            return;
        };
        if let Some(id) = self.long.try_remove(slot as usize) {
            cx.done(id, Ok(MediumOutcome::Done));
        }
    }
}

/// The same bound as that of a RAM disk.
const AT_ONCE: u64 = SEGMENT_BYTES;
