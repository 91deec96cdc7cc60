//! What a unit has done so far, for LOG SENSE.
//!
//! Each core counts for itself in a cache line that no other core writes, by a load and a store:
//! that costs an I/O about a nanosecond, where one shared counter would pass its cache line around
//! between the cores. Readers add the cores up.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::unit::CoreId;

/// Counters of one unit, shared by all versions of its state.
#[derive(Debug)]
pub struct UnitStatistics {
    cores: Box<[CoreCounters]>,
    gauge: Mutex<Option<Arc<dyn UsageGauge>>>,
}

/// Tells how much of its storage a volume uses.
pub trait UsageGauge: fmt::Debug + Send + Sync {
    /// What it uses, as far as is known without blocking; `None` where that is not counted.
    fn usage(&self) -> Option<SpaceUsage>;

    /// Finds out what it uses now. May block.
    fn look(&self) {}
}

/// Two cache lines, as prefetchers fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CoreCounters {
    reads: AtomicU64,
    writes: AtomicU64,
    blocks_read: AtomicU64,
    blocks_written: AtomicU64,
}

/// Use of storage that is allocated on demand, in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceUsage {
    /// Blocks that have storage.
    pub used: u64,
    /// Blocks that can still be given some.
    pub available: u64,
}

/// The sums over all cores, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Read commands that ended well.
    pub reads: u64,
    /// Write commands that ended well.
    pub writes: u64,
    /// Logical blocks that they read.
    pub blocks_read: u64,
    /// Logical blocks that they wrote.
    pub blocks_written: u64,
}

impl UnitStatistics {
    /// Counts a read command of this many blocks, on its core.
    pub fn count_read(&self, core: CoreId, blocks: u64) {
        let core = self.core(core);
        add(&core.reads, 1);
        add(&core.blocks_read, blocks);
    }

    /// Counts a write command of this many blocks, on its core.
    pub fn count_write(&self, core: CoreId, blocks: u64) {
        let core = self.core(core);
        add(&core.writes, 1);
        add(&core.blocks_written, blocks);
    }

    /// Adds the cores up.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.cores
            .iter()
            .fold(Totals::default(), |sum, core| Totals {
                reads: sum.reads + core.reads.load(Relaxed),
                writes: sum.writes + core.writes.load(Relaxed),
                blocks_read: sum.blocks_read + core.blocks_read.load(Relaxed),
                blocks_written: sum.blocks_written + core.blocks_written.load(Relaxed),
            })
    }

    /// Sets the source of the volume's space usage, in place of an earlier one.
    pub fn set_gauge(&self, gauge: impl UsageGauge + 'static) {
        *self.gauge.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(gauge));
    }

    /// Lets go of the source of the volume's space usage: the unit has gone.
    pub fn clear_gauge(&self) {
        *self.gauge.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn gauge(&self) -> Option<Arc<dyn UsageGauge>> {
        let gauge = self.gauge.lock().unwrap_or_else(PoisonError::into_inner);
        gauge.clone()
    }

    /// How much of its storage the volume uses, as far as is known. Never blocks.
    #[must_use]
    pub fn usage(&self) -> Option<SpaceUsage> {
        self.gauge()?.usage()
    }

    /// Finds out how much of its storage the volume uses now. May block.
    pub fn look(&self) {
        if let Some(gauge) = self.gauge() {
            gauge.look();
        }
    }

    /// Cores beyond the last line share it with others, and may then lose a count.
    fn core(&self, core: CoreId) -> &CoreCounters {
        &self.cores[usize::from(core.0) % CORES]
    }
}

/// Counters are part of a unit's state, yet what they show is none of its business: two are the
/// same only if they are one.
impl PartialEq for UnitStatistics {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for UnitStatistics {}

impl Default for UnitStatistics {
    fn default() -> Self {
        Self {
            cores: (0..CORES).map(|_| CoreCounters::default()).collect(),
            gauge: Mutex::default(),
        }
    }
}

/// Not an atomic addition: a core's counters have one writer.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}

/// 8 KiB a unit.
const CORES: usize = 64;
