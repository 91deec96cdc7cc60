//! How long I/Os took: a histogram whose size does not grow with their number.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies, each within 1 % of what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "LatencyFile", from = "LatencyFile")]
pub struct Latency(Histogram<u64>);

/// The percentiles that are written out.
const PERCENTILES: [f64; 9] = [1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 99.99];

/// Longer ones are counted as this: an hour, which is past every time limit.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// 128 buckets an octave: 36 KiB a histogram.
const DIGITS: u8 = 2;

impl Latency {
    /// Counts one.
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for step in other.0.iter_recorded() {
            let count = step.count_at_value();
            self.0.saturating_record_n(step.value_iterated_to(), count);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The shortest; 0 where there is none.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        self.0.min()
    }

    /// The longest; 0 where there is none.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The mean; 0 where there is none.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// What `percent` of 100 do not exceed; 0 where there is none.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Self(histogram.expect("bounds that hdrhistogram takes"))
    }
}

/// What stands in a file. The buckets say everything, the rest is for readers without tools.
#[derive(Serialize, Deserialize)]
struct LatencyFile {
    #[serde(skip_deserializing)]
    count: u64,
    #[serde(skip_deserializing)]
    min_ns: u64,
    #[serde(skip_deserializing)]
    max_ns: u64,
    #[serde(skip_deserializing)]
    mean_ns: f64,
    /// Percent, and what as many do not exceed.
    #[serde(skip_deserializing)]
    percentiles_ns: Vec<(f64, u64)>,
    /// The upper end of a bucket, and how many are in it.
    buckets_ns: Vec<(u64, u64)>,
}

impl From<Latency> for LatencyFile {
    fn from(latency: Latency) -> Self {
        let steps = latency.0.iter_recorded();
        let buckets = steps.map(|step| (step.value_iterated_to(), step.count_at_value()));
        Self {
            count: latency.count(),
            min_ns: latency.min_ns(),
            max_ns: latency.max_ns(),
            mean_ns: latency.mean_ns(),
            percentiles_ns: PERCENTILES
                .map(|percent| (percent, latency.percentile_ns(percent)))
                .to_vec(),
            buckets_ns: buckets.collect(),
        }
    }
}

impl From<LatencyFile> for Latency {
    fn from(file: LatencyFile) -> Self {
        let mut latency = Self::default();
        for (value, count) in file.buckets_ns {
            latency.0.saturating_record_n(value, count);
        }
        latency
    }
}
