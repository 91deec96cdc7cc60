//! Which granules of a region are allocated, and what that is charged.
//!
//! Bits change, and memory is cleared, under the lock of the 2 MiB around (a mutex of few), so that
//! giving back never meets a neighbour that is being allocated. The path of data takes no lock: for
//! what is allocated, [`Granules::allocate`] and [`Granules::confirm`] only read the bits.
//!
//! A write is `allocate`, copy, `confirm`, and another core may deallocate the same granules at any
//! moment between them. [`Granules::deallocate`] clears the bits first and the octets second, with
//! a barrier between; `confirm` has the other side of that barrier between the copy and its look at
//! the bits. So either the look finds the bits gone and sets them again, or the octets that were
//! copied are cleared with the others: never do they stay behind in a granule that counts as free,
//! to come back when it is allocated once more.

use std::io;
use std::ops::Range;

use super::barrier;
use super::bitmap::Bitmap;
use super::limit::{MemoryLimit, NoSpace};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering::Relaxed};

/// What is allocated and deallocated as a whole, in octets.
pub const GRANULE: u64 = 4096;

/// What one lock covers, and what a huge page has: 2 MiB.
pub(super) const GROUP: u64 = 2 << 20;
pub(super) const GROUP_GRANULES: u64 = GROUP / GRANULE;

/// Enough that cores seldom meet at one.
const LOCKS: usize = if cfg!(loom) { 1 } else { 64 };

/// Which pages a region asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of 4 KiB: memory is taken and given back by as much.
    Small,
    /// Of 2 MiB where the kernel gives them: faster, and taken and given back by as much.
    Huge,
}

/// What is to be done with the octets of granules that are free now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Clear {
    /// Give the memory back; it reads as zeros then.
    Discard(Range<u64>),
    /// Zero them: the rest of their huge page is in use.
    Zero(Range<u64>),
}

/// The book of a region's granules, which are numbered from 0.
#[derive(Debug)]
pub(super) struct Granules {
    count: u64,
    pages: Pages,
    allocated: Bitmap,
    charged: AtomicU64,
    limit: MemoryLimit,
    locks: [Mutex<()>; LOCKS],
}

impl Granules {
    /// `count` granules (more than 0), all free.
    pub(super) fn new(count: u64, pages: Pages, limit: &MemoryLimit) -> io::Result<Self> {
        barrier::prepare();
        Ok(Self {
            count,
            pages,
            allocated: Bitmap::new(count)?,
            charged: AtomicU64::new(0),
            limit: limit.clone(),
            locks: std::array::from_fn(|_| Mutex::new(())),
        })
    }

    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// The memory that is charged, in octets.
    pub(super) fn charged(&self) -> u64 {
        self.charged.load(Relaxed)
    }

    /// Whether any of the granules is allocated.
    pub(super) fn any(&self, granules: Range<u64>) -> bool {
        self.allocated.any(granules)
    }

    /// Whether the granule is allocated, and up to where, at most `end`, that holds.
    pub(super) fn run(&self, granule: u64, end: u64) -> (bool, u64) {
        self.allocated.run(granule, end)
    }

    /// Allocates and charges what is free of the granules. When that fails, a part of it may have
    /// been allocated.
    pub(super) fn allocate(&self, granules: Range<u64>) -> Result<(), NoSpace> {
        if self.allocated.all(granules.clone()) {
            return Ok(());
        }
        by_group(granules).try_for_each(|part| {
            let _guard = self.lock(&part);
            let octets = self.lacking(&part);
            self.limit.charge(octets)?;
            self.charged.fetch_add(octets, Relaxed);
            self.allocated.set(part);
            Ok(())
        })
    }

    /// To be called after octets were stored, once `allocate` had been. It may exceed the limit, as
    /// the memory is taken already.
    pub(super) fn confirm(&self, granules: Range<u64>) {
        barrier::light();
        if self.allocated.all(granules.clone()) {
            return;
        }
        for part in by_group(granules) {
            let _guard = self.lock(&part);
            let octets = self.lacking(&part);
            self.limit.charge_anyway(octets);
            self.charged.fetch_add(octets, Relaxed);
            self.allocated.set(part);
        }
    }

    /// Frees the granules, and has `clear` clear those that were allocated.
    pub(super) fn deallocate(&self, granules: Range<u64>, clear: impl Fn(Clear)) {
        let mut at = granules.start;
        while at < granules.end {
            let (set, mut end) = self.allocated.run(at, granules.end);
            if set {
                // To the end of the group, with the holes in it: a barrier of all processors and
                // a system call for each run would cost more than giving holes back again.
                end = granules.end.min((at / GROUP_GRANULES + 1) * GROUP_GRANULES);
                self.give_back(at..end, &clear);
            }
            at = end;
        }
    }

    /// Has `act` done if the granule is allocated, and while it stays so.
    pub(super) fn if_allocated(&self, granule: u64, act: impl FnOnce()) {
        let one = granule..granule + 1;
        let _guard = self.lock(&one);
        if self.allocated.any(one) {
            act();
        }
    }

    /// Gives back granules of one group.
    fn give_back(&self, part: Range<u64>, clear: &impl Fn(Clear)) {
        let _guard = self.lock(&part);
        let freed = self.allocated.count(part.clone()) * GRANULE;
        if freed == 0 {
            return;
        }
        self.allocated.clear(part.clone());
        barrier::heavy();
        match self.pages {
            Pages::Small => {
                clear(Clear::Discard(part));
                self.release(freed);
            }
            // A part of a huge page cannot be given back: the kernel would keep the rest for as
            // long as anything of it is in use, while we counted it as free.
            Pages::Huge if self.allocated.any(self.group_around(part.start)) => {
                clear(Clear::Zero(part));
            }
            Pages::Huge => {
                clear(Clear::Discard(self.group_around(part.start)));
                self.release(GROUP);
            }
        }
    }

    fn release(&self, octets: u64) {
        self.charged.fetch_sub(octets, Relaxed);
        self.limit.release(octets);
    }

    /// What allocating granules of one group costs, in octets. Its lock is held.
    fn lacking(&self, part: &Range<u64>) -> u64 {
        match self.pages {
            Pages::Small => (part.end - part.start - self.allocated.count(part.clone())) * GRANULE,
            Pages::Huge if self.allocated.any(self.group_around(part.start)) => 0,
            Pages::Huge => GROUP,
        }
    }

    fn group_around(&self, granule: u64) -> Range<u64> {
        let start = granule / GROUP_GRANULES * GROUP_GRANULES;
        start..(start + GROUP_GRANULES).min(self.count)
    }

    fn lock(&self, part: &Range<u64>) -> MutexGuard<'_, ()> {
        let group = part.start / GROUP_GRANULES;
        let lock = &self.locks[group as usize % LOCKS];
        // Nothing between locking and unlocking panics; and bits and account would be true still.
        lock.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Granules {
    fn drop(&mut self) {
        self.limit.release(self.charged());
    }
}

/// A range of granules, cut where groups meet.
fn by_group(granules: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let groups = granules.start / GROUP_GRANULES..granules.end.div_ceil(GROUP_GRANULES);
    groups.map(move |group| {
        let start = granules.start.max(group * GROUP_GRANULES);
        let end = granules.end.min((group + 1) * GROUP_GRANULES);
        start..end
    })
}

#[cfg(all(test, loom))]
mod loom_tests;
