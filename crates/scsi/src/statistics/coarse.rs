//! How many commands took how long, in few steps: for what there is much of, such as sessions.

use std::time::Duration;

use super::{CLOCK_NS, ClockTicks};

/// 12 buckets that end at 4^n us, n from 0 to 11, and one for all that took longer. One core has it
/// and counts without atomics; whoever asks is given a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoarseLatency {
    buckets: [u64; BOUNDED + 1],
    ticks: u64,
}

/// Buckets that have an end.
const BOUNDED: usize = 12;

impl CoarseLatency {
    /// Counts a command.
    pub fn count(&mut self, took: ClockTicks) {
        self.buckets[bucket(took.0)] += 1;
        self.ticks = self.ticks.wrapping_add(took.0);
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Self) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += bucket;
        }
        self.ticks = self.ticks.wrapping_add(other.ticks);
    }

    /// How many commands there were.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long all of them took together.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.ticks.saturating_mul(CLOCK_NS as u64))
    }

    /// Each bucket that has an end: what all in it took less than, and how many are in it alone.
    /// Commands that took longer than the last end are in none of them.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let ends = (0..BOUNDED).map(|bucket| Duration::from_micros(1 << (2 * bucket)));
        ends.zip(self.buckets)
    }
}

/// A microsecond has 4 ticks, so that its powers of 4 are those of ticks.
fn bucket(ticks: u64) -> usize {
    ((ticks | 1).ilog2() as usize / 2).min(BOUNDED)
}
