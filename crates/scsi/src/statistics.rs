//! What a unit has done so far, for LOG SENSE and for metrics.
//!
//! Each core counts for itself in cache lines that no other core writes, by a load and a store:
//! that costs an I/O about a nanosecond, where one shared counter would pass its cache line around
//! between the cores. Readers add the cores up. Latencies have memory from the first command of
//! their class on a core, so that units without I/O cost nothing.

mod coarse;
mod latency;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::medium::Now;
use crate::unit::CoreId;
pub use coarse::CoarseLatency;
use latency::CoreLatency;
pub use latency::{BUCKETS, Latency};

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

/// Two cache lines, as prefetchers fetch them in pairs. Arrays are by [`OperationClass`].
#[derive(Debug, Default)]
#[repr(align(128))]
struct CoreCounters {
    blocks: [AtomicU64; OperationClass::ALL.len()],
    errors: [AtomicU64; OperationClass::ALL.len()],
    latency: [OnceLock<Box<ClassLatency>>; OperationClass::ALL.len()],
}

/// How long commands of one class took on one core. The difference of the two is what they waited
/// for here: for locks, for others of their task set, for their turn, and for their data.
#[derive(Debug, Default)]
struct ClassLatency {
    /// From the command to its status.
    front: CoreLatency,
    /// At the volume.
    medium: CoreLatency,
}

/// What commands are counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationClass {
    /// READ.
    Read,
    /// WRITE, WRITE SAME, COMPARE AND WRITE and what else writes blocks.
    Write,
    /// Everything else.
    Other,
}

impl OperationClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Other];
}

/// A point in time as a number of [`CLOCK_NS`], which costs less to keep and to subtract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockTicks(pub u64);

/// How long a command took, in ticks of [`CLOCK_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTime {
    /// From its arrival to its status.
    pub front: ClockTicks,
    /// How much of that anything of it was at the volume; nothing for one that needs no volume.
    pub medium: ClockTicks,
}

impl ClockTicks {
    /// The time from `earlier` to this instant, in ticks.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.wrapping_sub(earlier.0))
    }
}

/// Nanoseconds in a tick: a quarter of a microsecond, the finest step of [`Latency`].
pub const CLOCK_NS: u32 = 250;

impl From<Now> for ClockTicks {
    fn from(now: Now) -> Self {
        let each = u64::from(1_000_000_000 / CLOCK_NS);
        let ticks = u64::from(now.subsec_nanos() / CLOCK_NS);
        Self(now.as_secs().wrapping_mul(each).wrapping_add(ticks))
    }
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

/// What commands of one class have done, on all cores, since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Those of them that ended with another status than GOOD or CONDITION MET.
    pub errors: u64,
    /// Logical blocks that the others named.
    pub blocks: u64,
    /// How long they took, from the command to its status. Their number is its count.
    pub latency: Latency,
}

impl ClassCount {
    /// Commands that ended with a status.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.latency.count()
    }
}

impl UnitStatistics {
    /// Counts a command that ended well, on its core.
    pub fn count(&self, core: CoreId, class: OperationClass, blocks: u64, took: CommandTime) {
        let core = self.core(core);
        add(&core.blocks[class as usize], blocks);
        core.latency(class).count(took);
    }

    /// Counts a command that ended with an error, on its core.
    #[cold]
    pub fn count_error(&self, core: CoreId, class: OperationClass, took: CommandTime) {
        let core = self.core(core);
        add(&core.errors[class as usize], 1);
        core.latency(class).count(took);
    }

    /// Adds the cores up. Commands that end meanwhile may be in some numbers and not in others.
    #[must_use]
    pub fn class(&self, class: OperationClass) -> ClassCount {
        let sum = |counter: fn(&CoreCounters) -> &[AtomicU64; OperationClass::ALL.len()]| {
            let of_class = |core| counter(core)[class as usize].load(Relaxed);
            self.cores.iter().map(of_class).sum()
        };
        ClassCount {
            errors: sum(|core| &core.errors),
            blocks: sum(|core| &core.blocks),
            latency: Latency::of(self.latencies(class).map(|latency| &latency.front)),
        }
    }

    /// How long commands of a class were at the volume, all that are in [`Self::class`]: adds the
    /// cores up, too.
    #[must_use]
    pub fn medium(&self, class: OperationClass) -> Latency {
        Latency::of(self.latencies(class).map(|latency| &latency.medium))
    }

    /// Those of the cores that have counted any.
    fn latencies(&self, class: OperationClass) -> impl Iterator<Item = &ClassLatency> {
        let cores = self.cores.iter();
        cores.filter_map(move |core| Some(&**core.latency[class as usize].get()?))
    }

    /// What LOG SENSE tells.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let [reads, writes] =
            [OperationClass::Read, OperationClass::Write].map(|of| self.class(of));
        Totals {
            reads: reads.operations().saturating_sub(reads.errors),
            writes: writes.operations().saturating_sub(writes.errors),
            blocks_read: reads.blocks,
            blocks_written: writes.blocks,
        }
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

impl ClassLatency {
    fn count(&self, took: CommandTime) {
        self.front.count(took.front);
        self.medium.count(took.medium);
    }
}

impl CoreCounters {
    fn latency(&self, class: OperationClass) -> &ClassLatency {
        self.latency[class as usize].get_or_init(Box::default)
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
