//! Which granules of a region are allocated, and what that is charged.
//!
//! Bits change, and memory is cleared, under the lock of the 2 MiB around (a mutex of few), so that
//! giving back never meets a neighbour that is being allocated. The path of data takes no lock: for
//! what is allocated, [`Granules::allocate`] and [`Granules::confirm`] only read the bits.
//!
//! A write is `allocate`, copy, `confirm`, and another core may deallocate the same granules at any
//! moment between them. [`Granules::deallocate`] clears the bits first and the bytes second, with
//! a barrier between; `confirm` has the other side of that barrier between the copy and its look at
//! the bits. So either the look finds the bits gone and sets them again, or the bytes that were
//! copied are cleared with the others: never do they stay behind in a granule that counts as free,
//! to come back when it is allocated once more.
//!
//! # Huge pages
//!
//! Memory is taken in small pages. A group of which three quarters are allocated is ripe: another
//! thread (`super::huge`) makes it one huge page, all of which is charged from then on. What is
//! deallocated in it is only zeroed, until less than half is allocated; then the huge page is cut
//! up and its free granules are given back. So a region never holds more than twice what is
//! allocated in it, and a load has to allocate or free a quarter of a group before its pages change
//! again. The group's lock is not held while the kernel copies: that takes up to milliseconds, for
//! which writers would wait.

use std::io;
use std::ops::Range;

use super::barrier;
use super::bitmap::Bitmap;
use super::limit::{MemoryLimit, NoSpace};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering::Relaxed};

/// What is allocated and deallocated as a whole, in bytes.
pub const GRANULE: u64 = 4096;

/// What one lock covers, and what a huge page has: 2 MiB.
pub(super) const GROUP: u64 = if cfg!(loom) { 4 * GRANULE } else { 2 << 20 };
pub(super) const GROUP_GRANULES: u64 = GROUP / GRANULE;

/// Allocated granules from which a group is worth a huge page.
const RIPE: u64 = GROUP_GRANULES / 4 * 3;

/// Allocated granules below which a huge page is cut up.
const CUT_UP: u64 = GROUP_GRANULES / 2;

/// Enough that cores seldom meet at one.
const LOCKS: usize = if cfg!(loom) { 1 } else { 64 };

/// Which pages a region asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of 4 KiB.
    Small,
    /// Of 4 KiB at first, and of 2 MiB, which are faster, where most of those was written.
    Huge,
}

/// What is to be done with the bytes of granules that are free now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Clear {
    /// Give the memory back; it reads as zeros then.
    Discard(Range<u64>),
    /// Zero them: the rest of their huge page is in use, or they keep their memory.
    Zero(Range<u64>),
    /// Cut their huge page up and give the memory of these back.
    CutUp(Range<u64>),
}

/// The book of a region's granules, which are numbered from 0.
#[derive(Debug)]
pub(super) struct Granules {
    count: u64,
    pages: Pages,
    allocated: Bitmap,
    /// Groups that are one huge page, and charged as such.
    huge: Bitmap,
    /// Groups that have become ripe and were not taken note of yet.
    ripe: Bitmap,
    charged: AtomicU64,
    limit: MemoryLimit,
    locks: [Mutex<()>; LOCKS],
    /// Memory is never given back, and all of it is charged: what is free is zeroed.
    is_kept: bool,
}

impl Granules {
    /// `count` granules (more than 0), all free.
    pub(super) fn new(count: u64, pages: Pages, limit: &MemoryLimit) -> io::Result<Self> {
        barrier::prepare();
        let groups = count.div_ceil(GROUP_GRANULES);
        Ok(Self {
            count,
            pages,
            allocated: Bitmap::new(count)?,
            huge: Bitmap::new(groups)?,
            ripe: Bitmap::new(groups)?,
            charged: AtomicU64::new(0),
            limit: limit.clone(),
            locks: std::array::from_fn(|_| Mutex::new(())),
            is_kept: false,
        })
    }

    /// The same for memory that is taken as a whole, and never given back.
    pub(super) fn kept(count: u64, limit: &MemoryLimit) -> io::Result<Self> {
        let mut granules = Self::new(count, Pages::Small, limit)?;
        granules.is_kept = true;
        Ok(granules)
    }

    /// Charges all granules at once, once, where memory is kept.
    pub(super) fn charge_all(&self) -> Result<(), NoSpace> {
        let bytes = self.count * GRANULE;
        self.limit.charge(bytes)?;
        self.charged.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Whether granules keep their memory when they are deallocated.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// The memory that is charged, in bytes.
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
    /// been allocated. Calls `ripened` if a group has become ripe, also then.
    pub(super) fn allocate(
        &self,
        granules: Range<u64>,
        ripened: impl FnOnce(),
    ) -> Result<(), NoSpace> {
        if self.allocated.all(granules.clone()) {
            return Ok(());
        }
        let mut is_ripe = false;
        let allocated = by_group(granules).try_for_each(|part| {
            let _guard = self.lock(&part);
            let bytes = self.lacking(&part);
            self.limit.charge(bytes)?;
            is_ripe |= self.take(part, bytes);
            Ok(())
        });
        if is_ripe {
            ripened();
        }
        allocated
    }

    /// To be called after bytes were stored, once `allocate` had been. It may exceed the limit, as
    /// the memory is taken already. Calls `ripened` if a group has become ripe.
    pub(super) fn confirm(&self, granules: Range<u64>, ripened: impl FnOnce()) {
        barrier::light();
        if self.allocated.all(granules.clone()) {
            return;
        }
        let mut is_ripe = false;
        for part in by_group(granules) {
            let _guard = self.lock(&part);
            let bytes = self.lacking(&part);
            self.limit.charge_anyway(bytes);
            is_ripe |= self.take(part, bytes);
        }
        if is_ripe {
            ripened();
        }
    }

    /// Allocates granules of one group, for which `bytes` were charged to the limit. Returns
    /// whether the group has become ripe by that. Its lock is held.
    fn take(&self, part: Range<u64>, bytes: u64) -> bool {
        self.charged.fetch_add(bytes, Relaxed);
        let group = self.group_around(part.start);
        self.allocated.set(part);
        // The rest behind the last whole group stays in small pages, and so does what is huge.
        if self.pages == Pages::Small || bytes == 0 || group.end - group.start < GROUP_GRANULES {
            return false;
        }
        let allocated = self.allocated.count(group.clone());
        let is_ripe = allocated >= RIPE && allocated - bytes / GRANULE < RIPE;
        if is_ripe {
            self.ripe.set(bit(&group));
        }
        is_ripe
    }

    /// The first ripe group from `group` on, which is not told of again until it was less than ripe
    /// in between.
    pub(super) fn next_ripe(&self, group: u64) -> Option<u64> {
        let groups = self.count.div_ceil(GROUP_GRANULES);
        let (is_ripe, end) = (group < groups).then(|| self.ripe.run(group, groups))?;
        let ripe = if is_ripe { group } else { end };
        (ripe < groups).then(|| self.ripe.clear(ripe..ripe + 1))?;
        Some(ripe)
    }

    /// Charges a huge page for a group that is still ripe, and whose small pages the caller will
    /// have the kernel replace; then [`Self::have_replaced`] is to be called. Returns whether that
    /// is to be done. When the limit leaves no room for it the group stays ripe, but is not told of
    /// again.
    pub(super) fn replace(&self, group: u64) -> Result<bool, NoSpace> {
        let group = self.group(group);
        let _guard = self.lock(&group);
        let allocated = self.allocated.count(group.clone());
        if self.pages == Pages::Small || self.is_huge(&group) || allocated < RIPE {
            return Ok(false);
        }
        let bytes = GROUP - allocated * GRANULE;
        self.limit.charge(bytes)?;
        self.charged.fetch_add(bytes, Relaxed);
        self.huge.set(bit(&group));
        Ok(true)
    }

    /// What became of a group that was to be replaced. If that failed, or if so much was
    /// deallocated meanwhile that the group is to have small pages, `clear` gives back what is free
    /// of it.
    pub(super) fn have_replaced(&self, group: u64, is_done: bool, clear: impl Fn(Clear)) {
        let group = self.group(group);
        let _guard = self.lock(&group);
        match (self.is_huge(&group), is_done) {
            (true, true) => {}
            (true, false) => self.cut_up(&group, &clear),
            (false, _) => self.give_back_holes(&group, &clear),
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
        let group = self.group_around(part.start);
        if self.is_kept {
            clear(Clear::Zero(part));
        } else if !self.is_huge(&group) {
            clear(Clear::Discard(part));
            self.release(freed);
        } else if self.allocated.count(group.clone()) < CUT_UP {
            self.cut_up(&group, clear);
        } else {
            clear(Clear::Zero(part));
        }
    }

    /// Has a group that is huge be made of small pages, and gives back what is free of it. Its lock
    /// is held.
    fn cut_up(&self, group: &Range<u64>, clear: &impl Fn(Clear)) {
        self.huge.clear(bit(group));
        self.give_back_holes(group, clear);
        self.release(GROUP - self.allocated.count(group.clone()) * GRANULE);
    }

    /// Gives back the memory of what is free of a group. Its lock is held.
    fn give_back_holes(&self, group: &Range<u64>, clear: &impl Fn(Clear)) {
        let mut at = group.start;
        while at < group.end {
            let (set, end) = self.allocated.run(at, group.end);
            if !set {
                clear(Clear::CutUp(at..end));
            }
            at = end;
        }
    }

    fn release(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Relaxed);
        self.limit.release(bytes);
    }

    /// What allocating granules of one group costs, in bytes. Its lock is held.
    fn lacking(&self, part: &Range<u64>) -> u64 {
        if self.is_kept || self.is_huge(part) {
            return 0;
        }
        (part.end - part.start - self.allocated.count(part.clone())) * GRANULE
    }

    /// Whether the group around is one huge page.
    fn is_huge(&self, part: &Range<u64>) -> bool {
        self.huge.any(bit(part))
    }

    fn group(&self, group: u64) -> Range<u64> {
        self.group_around(group * GROUP_GRANULES)
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

/// The bit of the group that granules are of.
fn bit(part: &Range<u64>) -> Range<u64> {
    let group = part.start / GROUP_GRANULES;
    group..group + 1
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
