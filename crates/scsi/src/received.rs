//! Which bytes of a transfer have come, or were asked for, in whatever order a transport allows.

#[cfg(test)]
mod tests;

/// A set of bytes, all but the last few of which are its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedBytes {
    /// All bytes before this one have come.
    next: u32,
    /// Ranges after it, sorted, neither overlapping nor touching.
    apart: Vec<(u32, u32)>,
}

/// Ranges that may stand apart: a bound on what a peer's disorder can cost, and more than a target
/// has reason to leave, with each of its disks or cores ahead of the others by one.
const MAX_APART: usize = 64;

impl ReceivedBytes {
    /// The first byte that has not come.
    #[must_use]
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// Whether nothing is missing before what has come.
    #[must_use]
    pub const fn is_contiguous(&self) -> bool {
        self.apart.is_empty()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.next = 0;
        self.apart.clear();
    }

    /// Whether one of the bytes from `start` to `end` has come.
    #[must_use]
    pub fn overlaps(&self, start: u32, end: u32) -> bool {
        let at = self.apart.partition_point(|range| range.1 <= start);
        start < end && (start < self.next || self.apart.get(at).is_some_and(|range| range.0 < end))
    }

    /// The bytes from `start` to `end` have come, some of them perhaps for the second time.
    /// Returns `false` if that cannot be noted, as too much stands apart.
    pub fn add(&mut self, start: u32, end: u32) -> bool {
        if start > self.next {
            return self.add_apart(start, end);
        }
        self.next = self.next.max(end);
        while let Some(&(first, behind)) = self.apart.first()
            && first <= self.next
        {
            self.next = self.next.max(behind);
            self.apart.remove(0);
        }
        true
    }

    fn add_apart(&mut self, start: u32, end: u32) -> bool {
        if start >= end {
            return true;
        }
        let from = self.apart.partition_point(|range| range.1 < start);
        let to = self.apart.partition_point(|range| range.0 <= end);
        if from == to {
            if self.apart.len() == MAX_APART {
                return false;
            }
            self.apart.insert(from, (start, end));
        } else {
            let joined = (start.min(self.apart[from].0), end.max(self.apart[to - 1].1));
            self.apart.drain(from + 1..to);
            self.apart[from] = joined;
        }
        true
    }
}
