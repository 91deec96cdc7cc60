//! `stats(A)`: counts what goes through a volume, and how long it takes.
//!
//! Each core counts for itself, without meeting others; [`Stats::snapshot`] adds up. A latency is
//! what lies between the moment at which the core took the operation up and the one at which it
//! learned of its end, both of them as exact as the core's turns.

mod histogram;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use scsi::medium::{MediumOp, MediumResult, Now};

use crate::filter::{Filter, Intercepted, Interceptor};
use crate::lease::BlockLease;
use crate::volume::{CoreContext, Handle, Volume};
pub use histogram::Histogram;
use histogram::SharedHistogram;

/// A volume that counts.
#[derive(Debug)]
pub struct Stats {
    inside: Arc<dyn Volume>,
    /// What is inside is called so.
    name: String,
    /// Of each core.
    cores: Mutex<Vec<Arc<StatsCounters>>>,
}

/// Kinds of operations that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// WRITE SAME.
    WriteSame,
    /// UNMAP.
    Unmap,
    /// Flushes.
    Flush,
    /// Everything else that is asked of a medium: the state of blocks, prefetching, sanitizing.
    /// Asking for memory is not counted.
    Other,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::WriteSame,
        Self::Unmap,
        Self::Flush,
        Self::Other,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::WriteSame => "write same",
            Self::Unmap => "unmaps",
            Self::Flush => "flushes",
            Self::Other => "others",
        }
    }

    fn of(op: &MediumOp<BlockLease>) -> Option<(Self, u64)> {
        Some(match op {
            MediumOp::Read { extent, .. } => (Self::Read, extent.blocks),
            MediumOp::Write { extent, .. } => (Self::Write, extent.blocks),
            MediumOp::WriteSame { extent, .. } => (Self::WriteSame, extent.blocks),
            MediumOp::Unmap { extent, .. } => (Self::Unmap, extent.blocks),
            MediumOp::Flush { .. } => (Self::Flush, 0),
            MediumOp::Status { .. } | MediumOp::Prefetch { .. } | MediumOp::Sanitize { .. } => {
                (Self::Other, 0)
            }
            MediumOp::PrepareWrite { .. } | MediumOp::Buffer { .. } => return None,
        })
    }
}

/// What went through a volume by one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationCount {
    /// Operations that have ended.
    pub operations: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// The bytes of the blocks of those that went well.
    pub bytes: u64,
    /// How long all of them took.
    pub latency: Histogram,
}

impl fmt::Display for OperationCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, errors, bytes) = (self.operations, self.errors, self.bytes);
        write!(f, "{operations}, {errors} of them failed, {bytes} bytes")?;
        let shares = [
            (0.5, "half"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (1.0, "all"),
        ];
        for ((share, name), before) in shares.iter().zip([";", ",", ",", ","]) {
            let within = self.latency.percentile(*share).unwrap_or_default();
            let us = within.as_nanos() as f64 / 1e3;
            write!(f, "{before} {name} within {us:.1} us")?;
        }
        Ok(())
    }
}

impl Stats {
    /// Counts what goes through a volume; `name` is its address, for [`Volume::gathered`].
    #[must_use]
    pub fn new(inside: Arc<dyn Volume>, name: String) -> Self {
        Self {
            inside,
            name,
            cores: Mutex::default(),
        }
    }

    /// What went through until now, on all cores. Operations that end meanwhile may be in some of
    /// its numbers, and not in others.
    #[must_use]
    pub fn snapshot(&self, kind: OperationKind) -> OperationCount {
        let mut all = OperationCount::default();
        let block_size = u64::from(self.inside.traits().block_size);
        for core in &*self.cores.lock().unwrap_or_else(PoisonError::into_inner) {
            let counter = &core.0[kind as usize];
            all.operations += counter.operations.load(Relaxed);
            all.errors += counter.errors.load(Relaxed);
            all.bytes += counter.blocks.load(Relaxed) * block_size;
            counter.latency.add_to(&mut all.latency);
        }
        all
    }
}

impl Filter for Stats {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    /// A line for each kind of which there was any.
    fn own_gathered(&self) -> Vec<String> {
        let counts = OperationKind::ALL.map(|kind| (kind, self.snapshot(kind)));
        let counts = counts.iter().filter(|(_, count)| count.operations > 0);
        counts
            .map(|(kind, count)| format!("stats({}): {}: {count}", self.name, kind.name()))
            .collect()
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let counters = Arc::new(StatsCounters::default());
        let mut cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        cores.push(Arc::clone(&counters));
        let counter = StatsCounter(counters);
        Ok(Box::new(Intercepted::attach(&*self.inside, core, counter)?))
    }
}

/// By [`OperationKind`].
#[derive(Debug, Default)]
struct StatsCounters([KindCounters; OperationKind::ALL.len()]);

#[derive(Debug, Default)]
struct KindCounters {
    operations: AtomicU64,
    errors: AtomicU64,
    blocks: AtomicU64,
    latency: SharedHistogram,
}

/// Counts for one core.
struct StatsCounter(Arc<StatsCounters>);

impl Interceptor for StatsCounter {
    /// When it began, and what it counts as; `None` where it is not counted.
    type Note = (Now, Option<(OperationKind, u64)>);

    fn enter(
        &mut self,
        now: Now,
        op: MediumOp<BlockLease>,
    ) -> Result<(MediumOp<BlockLease>, Self::Note), MediumResult<BlockLease>> {
        let counted = OperationKind::of(&op);
        Ok((op, (now, counted)))
    }

    fn leave(
        &mut self,
        now: Now,
        (begun, counted): Self::Note,
        result: MediumResult<BlockLease>,
    ) -> MediumResult<BlockLease> {
        if let Some((kind, blocks)) = counted {
            let counter = &self.0.0[kind as usize];
            counter.operations.fetch_add(1, Relaxed);
            match result {
                Ok(_) => counter.blocks.fetch_add(blocks, Relaxed),
                Err(_) => counter.errors.fetch_add(1, Relaxed),
            };
            counter.latency.note(now.saturating_sub(begun));
        }
        result
    }
}
