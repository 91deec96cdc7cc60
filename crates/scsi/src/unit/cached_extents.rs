//! Blocks that commands have had for themselves (COMPARE AND WRITE, ORWRITE, WRITE ATOMIC), and
//! will have again.
//!
//! A change of them as a whole must not be seen half by any host, also not by one that is still
//! being sent what was read before: such blocks are read by copying. All others leave from where
//! they lie. Initiators keep what they share in few places (on-disk locks, heartbeats), so a short
//! list of ranges does; where there are more, the ranges grow, and more is copied than must be.

use crate::medium::Extent;

/// Those blocks, and some around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedExtents {
    /// In order, with others between them; at most [`RANGES`].
    ranges: Vec<Extent>,
    /// Ranges begin and end at multiples of this many blocks, as a power of two.
    granularity: u32,
}

impl CachedExtents {
    /// Whether any of the blocks is among them.
    #[must_use]
    pub fn overlaps(&self, extent: Extent) -> bool {
        self.first_from(extent.lba)
            .is_some_and(|one| one.overlaps(extent))
    }

    /// Whether all of the blocks are among them.
    #[must_use]
    pub fn covers(&self, extent: Extent) -> bool {
        self.first_from(extent.lba)
            .is_some_and(|one| one.lba <= extent.lba && extent.end() <= one.end())
    }

    /// Adds blocks.
    pub(crate) fn add(&mut self, extent: Extent) {
        self.ranges.push(extent);
        self.ranges.sort_by_key(|one| one.lba);
        self.join();
        while self.ranges.len() > RANGES {
            self.granularity += 1;
            self.join();
        }
    }

    /// The first range with blocks at `lba` or behind it.
    fn first_from(&self, lba: u64) -> Option<&Extent> {
        let at = self.ranges.partition_point(|one| one.end() <= lba);
        self.ranges.get(at)
    }

    /// Rounds the ranges, and makes one of those that meet.
    fn join(&mut self) {
        let mut joined: Vec<Extent> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            let range = rounded(range, self.granularity);
            match joined.last_mut() {
                Some(last) if range.lba <= last.end() => {
                    last.blocks = last.end().max(range.end()) - last.lba;
                }
                _ => joined.push(range),
            }
        }
        self.ranges = joined;
    }
}

impl Default for CachedExtents {
    fn default() -> Self {
        Self {
            ranges: Vec::new(),
            granularity: GRANULARITY,
        }
    }
}

fn rounded(extent: Extent, granularity: u32) -> Extent {
    let first = extent.lba >> granularity << granularity;
    let last = extent.end().saturating_sub(1) | ((1 << granularity) - 1);
    Extent::new(first, (last - first).saturating_add(1))
}

/// This many ranges are found in six steps.
const RANGES: usize = 64;

/// 2,048 blocks, 1 MiB of 512 bytes: what lies beside a lock is mostly the next lock.
const GRANULARITY: u32 = 11;

#[cfg(test)]
mod tests;
