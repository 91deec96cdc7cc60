//! `fault:read=1e-4,write=enospc@10G,torn(A)`: a volume that fails as it is told to.
//!
//! Whether an operation fails is drawn in the order in which operations of its kind come, from a
//! seed: the same operations in the same order fail the same. WRITE SAME, UNMAP and SANITIZE fail
//! as writes do; an UNMAP needs no space, so it does not fail for lack of it.
//!
//! What fails is not done at all, but for a torn write, whose first blocks are. To keep that, data
//! is never received into the memory of the volume inside. A flush that fails is not remembered:
//! the next one may succeed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, MediumResult, Now, Traits};

use crate::filter::{Filter, Intercepted, Interceptor};
use crate::lease::BlockLease;
use crate::volume::{CoreContext, Handle, Volume};

/// What fails, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Reads.
    pub read: Option<FailureRule>,
    /// Everything that changes blocks.
    pub write: Option<FailureRule>,
    /// Flushes.
    pub flush: Option<FailureRule>,
    /// Of a write that fails the first blocks are written, how many is drawn: none at the least,
    /// all but one at the most.
    pub torn: bool,
    /// What the draws begin from.
    pub seed: u64,
}

/// When operations of a kind fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailureRule {
    /// With this probability, as a defective medium does.
    Seldom(f64),
    /// All, once this many bytes have been read, or for flushes as for writes written; so does the
    /// operation that would exceed them.
    After(u64, MediumError),
}

/// A volume that fails.
#[derive(Debug)]
pub struct FaultVolume {
    inside: Arc<dyn Volume>,
    fate: Arc<FaultState>,
}

impl FaultVolume {
    /// Has a volume fail.
    #[must_use]
    pub fn new(inside: Arc<dyn Volume>, faults: Faults) -> Self {
        let fate = FaultState {
            faults,
            block_size: inside.traits().block_size.into(),
            ..FaultState::default()
        };
        let fate = Arc::new(fate);
        Self { inside, fate }
    }
}

impl Filter for FaultVolume {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    /// A torn write is just what an atomic one must not be.
    fn limit(&self, inside: Traits) -> Traits {
        Traits {
            atomic: inside.atomic.filter(|_| !self.fate.faults.torn),
            ..inside
        }
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let injector = FaultInjector {
            fate: Arc::clone(&self.fate),
            read_only: self.inside.traits().read_only,
        };
        Ok(Box::new(Intercepted::attach(
            &*self.inside,
            core,
            injector,
        )?))
    }
}

/// What was drawn and counted, on all cores.
#[derive(Debug, Default)]
struct FaultState {
    faults: Faults,
    block_size: u64,
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl FaultState {
    /// The error with which an operation is to fail.
    fn error_of(&self, op: &MediumOp<BlockLease>) -> Option<MediumError> {
        match op {
            MediumOp::Read { extent, .. } => {
                let end = self.count(&self.bytes_read, *extent);
                let failing = self.faults.read?;
                self.strikes(failing, &self.reads, end, MediumError::Read)
            }
            MediumOp::Write { extent, .. }
            | MediumOp::WriteSame { extent, .. }
            | MediumOp::Sanitize { extent, .. } => {
                let end = self.count(&self.bytes_written, *extent);
                let failing = self.faults.write?;
                self.strikes(failing, &self.writes, end, MediumError::Write)
            }
            MediumOp::Unmap { .. } => {
                let end = self.bytes_written.load(Relaxed);
                let failing = self.faults.write?;
                let error = self.strikes(failing, &self.writes, end, MediumError::Write);
                error.filter(|error| *error != MediumError::NoSpace)
            }
            MediumOp::Flush { .. } => {
                // It fails as soon as the number is reached: nothing could exceed it.
                let end = self.bytes_written.load(Relaxed).saturating_add(1);
                let failing = self.faults.flush?;
                self.strikes(failing, &self.flushes, end, MediumError::Write)
            }
            _ => None,
        }
    }

    /// Counts what an operation moves; how much it is with that.
    fn count(&self, bytes: &AtomicU64, extent: Extent) -> u64 {
        let len = extent.blocks.saturating_mul(self.block_size);
        bytes.fetch_add(len, Relaxed).saturating_add(len)
    }

    fn strikes(
        &self,
        failing: FailureRule,
        drawn: &AtomicU64,
        bytes: u64,
        error: MediumError,
    ) -> Option<MediumError> {
        match failing {
            FailureRule::Seldom(probability) => {
                (self.draw(drawn).f64() < probability).then_some(error)
            }
            FailureRule::After(limit, error) => (bytes > limit).then_some(error),
        }
    }

    /// Draws the next number of a sequence. Each has a generator of its own, so that cores share no
    /// more than the count of what was drawn.
    fn draw(&self, drawn: &AtomicU64) -> fastrand::Rng {
        let number = drawn.fetch_add(1, Relaxed);
        // Neighbouring seeds would give neighbouring numbers first: faults at fixed distances.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        fastrand::Rng::with_seed(self.faults.seed ^ spread)
    }
}

struct FaultInjector {
    fate: Arc<FaultState>,
    read_only: bool,
}

impl FaultInjector {
    /// The part of a write that is done although it fails.
    fn torn(&self, op: MediumOp<BlockLease>) -> Option<MediumOp<BlockLease>> {
        let MediumOp::Write {
            extent, data, fua, ..
        } = op
        else {
            return None;
        };
        if !self.fate.faults.torn {
            return None;
        }
        let blocks = self
            .fate
            .draw(&self.fate.writes)
            .u64(..extent.blocks.max(1));
        let len = usize::try_from(blocks * self.fate.block_size).unwrap_or(0);
        (blocks > 0).then(|| MediumOp::Write {
            extent: Extent::new(extent.lba, blocks),
            data: data.slice(0, len),
            fua,
            atomic: false,
        })
    }
}

impl Interceptor for FaultInjector {
    /// How a write ends of which a part is being done.
    type Note = Option<MediumError>;

    fn enter(
        &mut self,
        _: Now,
        op: MediumOp<BlockLease>,
    ) -> Result<(MediumOp<BlockLease>, Self::Note), MediumResult<BlockLease>> {
        let op = match op {
            MediumOp::PrepareWrite { extent } if !self.read_only => MediumOp::Buffer {
                bytes: u32::try_from(extent.blocks * self.fate.block_size).unwrap_or(u32::MAX),
            },
            op => op,
        };
        let error = self.fate.error_of(&op);
        match error.filter(|_| !refused(self.read_only, &op)) {
            None => Ok((op, None)),
            Some(error) => match self.torn(op) {
                Some(first) => Ok((first, Some(error))),
                None => Err(Err(error)),
            },
        }
    }

    fn leave(
        &mut self,
        _: Now,
        torn: Self::Note,
        result: MediumResult<BlockLease>,
    ) -> MediumResult<BlockLease> {
        torn.map_or(result, Err)
    }
}

/// Whether the volume inside refuses an operation anyway.
fn refused(read_only: bool, op: &MediumOp<BlockLease>) -> bool {
    read_only && !matches!(op, MediumOp::Read { .. } | MediumOp::Flush { .. })
}
