//! How many took how long.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Durations by how many there were of each, with an error below 1/16.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = vec![0; BUCKETS];
        Self { buckets }
    }
}

impl Histogram {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What `share` (0 to 1) of them did not exceed, rounded up to the end of its bucket; `None`
    /// without any.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut before = 0;
        let bucket = self.buckets.iter().position(|in_it| {
            before += in_it;
            before >= rank
        });
        Some(Duration::from_nanos(last_of(bucket?)))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = self.percentile(0.5);
        write!(f, "Histogram({} of {median:?} at the median)", self.count())
    }
}

/// A histogram that one core writes and others may read.
#[derive(Debug)]
pub(super) struct SharedHistogram([AtomicU64; BUCKETS]);

impl Default for SharedHistogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl SharedHistogram {
    pub(super) fn note(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0[bucket(nanos)].fetch_add(1, Relaxed);
    }

    pub(super) fn add_to(&self, all: &mut Histogram) {
        for (sum, bucket) in all.buckets.iter_mut().zip(&self.0) {
            *sum += bucket.load(Relaxed);
        }
    }
}

/// Numbers below 16 have a bucket each, later ones share one with those that have the same five
/// highest bits.
fn bucket(number: u64) -> usize {
    let exponent = (number | (STEPS - 1)).ilog2() + 1 - STEPS.ilog2();
    let shift = exponent.saturating_sub(1);
    (u64::from(shift) * STEPS + (number >> shift)) as usize
}

/// The greatest number in a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let first = bucket - shift * STEPS;
    (first << shift) + ((1 << shift) - 1)
}

const STEPS: u64 = 16;
const BUCKETS: usize = (64 - STEPS.ilog2() as usize + 1) * STEPS as usize;

#[cfg(test)]
mod tests;
