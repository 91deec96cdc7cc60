//! Ranges of bytes, sorted and merged.

use std::ops::Range;

/// A set of bytes as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Adds a range; what it touches becomes one with it.
    pub(super) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end < range.start);
        let last = self.0.partition_point(|other| other.start <= range.end);
        let touched = &self.0[first..last];
        let start = touched.first().map_or(range.start, |one| one.start);
        let end = touched.last().map_or(range.end, |one| one.end);
        let merged = start.min(range.start)..end.max(range.end);
        self.0.splice(first..last, [merged]);
    }

    /// Takes a range out.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        let first = self.0.partition_point(|other| other.end <= range.start);
        let last = self.0.partition_point(|other| other.start < range.end);
        if range.is_empty() || first >= last {
            return;
        }
        let before = self.0[first].start..range.start;
        let behind = range.end..self.0[last - 1].end;
        let left = [before, behind].into_iter().filter(|rest| !rest.is_empty());
        self.0.splice(first..last, left);
    }

    /// Takes out all but the first ranges.
    pub(super) fn truncate(&mut self, ranges: usize) {
        self.0.truncate(ranges);
    }

    /// Adds all of another set.
    pub(super) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|range| self.add(range));
    }

    /// The ranges in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// How many bytes there are in all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// How many ranges there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
