//! How many commands took how long: 4 steps an octave from 1 us to 67 s.
//!
//! A bucket is at most a quarter of its lower bound wide. The bounds that are powers of two have
//! buckets that begin there, so that coarser histograms are exact sums of this one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{CLOCK_NS, ClockTicks, add};

/// Buckets of a histogram: one below 1 us, 4 for each of 26 octaves, and one from 67 s on.
pub const BUCKETS: usize = 2 + (OCTAVES * STEPS) as usize;

const STEPS: u64 = 4;
const OCTAVES: u64 = 26;

/// A histogram that one core writes and others may read.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct CoreLatency {
    buckets: [AtomicU64; BUCKETS],
    ticks: AtomicU64,
}

impl Default for CoreLatency {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            ticks: AtomicU64::new(0),
        }
    }
}

impl CoreLatency {
    pub(super) fn count(&self, took: ClockTicks) {
        add(&self.buckets[bucket(took.0)], 1);
        add(&self.ticks, took.0);
    }
}

/// How many commands took how long. Of thousands of units most buckets are empty, and not kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Latency {
    /// Which one, and how many are in it.
    buckets: Vec<(u8, u64)>,
    ticks: u64,
}

const _: () = assert!(BUCKETS <= 1 << u8::BITS);

impl Latency {
    /// What cores have counted, added up.
    pub(super) fn of<'a>(cores: impl Iterator<Item = &'a CoreLatency>) -> Self {
        let mut cores = cores.peekable();
        if cores.peek().is_none() {
            return Self::default();
        }
        let (mut sums, mut ticks) = ([0; BUCKETS], 0_u64);
        for core in cores {
            for (sum, bucket) in sums.iter_mut().zip(&core.buckets) {
                *sum += bucket.load(Relaxed);
            }
            ticks = ticks.wrapping_add(core.ticks.load(Relaxed));
        }
        let some = (0..).zip(sums).filter(|(_, sum)| *sum > 0);
        Self {
            buckets: some.collect(),
            ticks,
        }
    }

    /// How many commands there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// How long all of them took together.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.ticks.saturating_mul(CLOCK_NS as u64))
    }

    /// Each bucket that has any: what all in it took less than, and how many there are. The last
    /// bucket has no end, and is told with one.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let some = self.buckets.iter();
        some.map(|(bucket, count)| (end(usize::from(*bucket)), *count))
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Latency({} in {:?})", self.count(), self.sum())
    }
}

/// A number has [`STEPS`] = 4 for its first two bits below the highest, and the octave from that.
fn bucket(ticks: u64) -> usize {
    if ticks < STEPS {
        return 0;
    }
    let octave = u64::from(ticks.ilog2()) - 2;
    let step = (ticks >> octave) - STEPS;
    ((1 + octave * STEPS + step) as usize).min(BUCKETS - 1)
}

/// What is too long for a bucket.
fn end(bucket: usize) -> Duration {
    let next = bucket as u64;
    let (octave, step) = (next / STEPS, next % STEPS);
    Duration::from_nanos(((STEPS + step) << octave) * u64::from(CLOCK_NS))
}
