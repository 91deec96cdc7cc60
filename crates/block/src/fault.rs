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

use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, MediumResult, Traits};

use crate::child::Child;
use crate::filter::{Filter, FilterHandle};
use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, Volume};

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
        Ok(Box::new(FaultHandle {
            inside: Child::attach(&*self.inside, core)?,
            fate: Arc::clone(&self.fate),
            read_only: self.inside.traits().read_only,
            torn: Vec::new(),
        }))
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
                let draw = (self.draw(drawn) >> 11) as f64 / (1_u64 << 53) as f64;
                (draw < probability).then_some(error)
            }
            FailureRule::After(limit, error) => (bytes > limit).then_some(error),
        }
    }

    /// The next number of a sequence, by splitmix64.
    fn draw(&self, drawn: &AtomicU64) -> u64 {
        let number = drawn.fetch_add(1, Relaxed).wrapping_add(1);
        let mut z = self.faults.seed.wrapping_add(number.wrapping_mul(GOLDEN));
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

struct FaultHandle {
    inside: Child,
    fate: Arc<FaultState>,
    read_only: bool,
    /// Writes of which a part is being done, and how they are to end.
    torn: Vec<(u64, MediumError)>,
}

impl FaultHandle {
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
        let blocks = self.fate.draw(&self.fate.writes) % extent.blocks.max(1);
        let len = usize::try_from(blocks * self.fate.block_size).unwrap_or(0);
        (blocks > 0).then(|| MediumOp::Write {
            extent: Extent::new(extent.lba, blocks),
            data: data.slice(0, len),
            fua,
            atomic: false,
        })
    }

    fn drain(&mut self, cx: &mut Context<'_>) {
        while let Some((id, result)) = self.inside.next() {
            cx.done(id, self.told(id, result));
        }
    }

    fn told(&mut self, id: u64, result: MediumResult<BlockLease>) -> MediumResult<BlockLease> {
        match self.torn.iter().position(|(torn, _)| *torn == id) {
            Some(at) => Err(self.torn.swap_remove(at).1),
            None => result,
        }
    }
}

impl FilterHandle for FaultHandle {
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let op = match op {
            MediumOp::PrepareWrite { extent } if !self.read_only => MediumOp::Buffer {
                bytes: u32::try_from(extent.blocks * self.fate.block_size).unwrap_or(u32::MAX),
            },
            op => op,
        };
        let Some(error) = self
            .fate
            .error_of(&op)
            .filter(|_| !refused(self.read_only, &op))
        else {
            self.inside.submit(cx, id, op);
            return self.drain(cx);
        };
        match self.torn(op) {
            Some(first) => {
                self.torn.push((id, error));
                self.inside.submit(cx, id, first);
                self.drain(cx);
            }
            None => cx.done(id, Err(error)),
        }
    }

    fn let_act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        self.inside.act(cx, act);
        self.drain(cx);
    }

    fn inside(&self) -> &dyn Handle {
        self.inside.handle()
    }

    fn inside_mut(&mut self) -> &mut dyn Handle {
        self.inside.handle_mut()
    }
}

/// Whether the volume inside refuses an operation anyway.
fn refused(read_only: bool, op: &MediumOp<BlockLease>) -> bool {
    read_only && !matches!(op, MediumOp::Read { .. } | MediumOp::Flush { .. })
}

/// The odd number next to 2^64 by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
