//! What a volume is and has done, as `lunar stats` and `/metrics` tell it.

use std::time::Duration;

use engine::server::UnitReport;
use scsi::statistics::{ClassCount, Latency};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a volume is and has done since it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeStats {
    /// The name of its row.
    pub volume: String,
    /// What holds its blocks cannot be used now.
    pub absent: bool,
    /// Capacity in bytes; 0 where it was never known.
    pub capacity_bytes: u64,
    /// What it uses of its storage, where that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Commands that were sent again to the target that has its storage, where another one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Read commands that ended well.
    pub reads: u64,
    /// Write commands that ended well.
    pub writes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// How long read commands took.
    #[serde(default)]
    pub read: OperationStats,
    /// How long write commands took.
    #[serde(default)]
    pub write: OperationStats,
    /// How long all other commands took.
    #[serde(default)]
    pub other: OperationStats,
}

/// Commands of one class, those that failed among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationStats {
    /// Commands that ended with a status.
    pub operations: u64,
    /// Those of them that ended with another one than GOOD.
    pub errors: u64,
    /// Nanoseconds from their arrival to their status, summed up.
    pub sum_ns: u64,
    /// How many took how long: the end of each bucket that has any in nanoseconds, and how many are
    /// in it. 4 buckets an octave from 1 us to 67 s.
    pub buckets: Vec<(u64, u64)>,
}

impl OperationStats {
    /// Those that ended since an earlier time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |end| {
            let mut buckets = earlier.buckets.iter();
            let found = buckets.find(|bucket| bucket.0 == end);
            found.map_or(0, |bucket| bucket.1)
        };
        let buckets = self.buckets.iter();
        let rest = buckets.map(|&(end, count)| (end, count.saturating_sub(before(end))));
        Self {
            operations: self.operations.saturating_sub(earlier.operations),
            errors: self.errors.saturating_sub(earlier.errors),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            buckets: rest.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// What `share` (0 to 1) of them did not exceed, rounded up to the end of its bucket; `None`
    /// without any.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let count: u64 = self.buckets.iter().map(|(_, count)| count).sum();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut before = 0;
        let mut buckets = self.buckets.iter();
        let bucket = buckets.find(|(_, in_it)| {
            before += in_it;
            before >= rank
        });
        bucket.map(|(end, _)| Duration::from_nanos(*end))
    }

    /// How many ended within a time that is the end of a bucket.
    #[must_use]
    pub fn within(&self, time: Duration) -> u64 {
        let within = self.buckets.iter();
        let within = within.take_while(|(end, _)| u128::from(*end) <= time.as_nanos());
        within.map(|(_, count)| count).sum()
    }
}

impl From<&Latency> for OperationStats {
    fn from(latency: &Latency) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let buckets = latency.buckets();
        Self {
            operations: latency.count(),
            errors: 0,
            sum_ns: ns(latency.sum()),
            buckets: buckets.map(|(end, count)| (ns(end), count)).collect(),
        }
    }
}

impl From<&ClassCount> for OperationStats {
    fn from(class: &ClassCount) -> Self {
        Self {
            errors: class.errors,
            ..Self::from(&class.latency)
        }
    }
}

impl From<UnitReport> for VolumeStats {
    fn from(unit: UnitReport) -> Self {
        let bytes = |blocks: u64| blocks * u64::from(unit.block_size);
        let [reads, writes, _] = &unit.classes;
        let [read, write, other] = unit.classes.each_ref().map(OperationStats::from);
        Self {
            absent: unit.is_absent,
            capacity_bytes: bytes(unit.blocks),
            retries: unit.retries,
            used_bytes: unit.usage.map(|usage| bytes(usage.used)),
            reads: read.operations.saturating_sub(read.errors),
            writes: write.operations.saturating_sub(write.errors),
            read_bytes: bytes(reads.blocks),
            written_bytes: bytes(writes.blocks),
            volume: unit.name,
            read,
            write,
            other,
        }
    }
}
