//! The memory of a RAM volume.
//!
//! A region reserves address space for the whole volume at once and keeps one bit for each granule
//! of 4 KiB: whether it was written since it was last deallocated. The bits, not the kernel's page
//! tables, say what is allocated; a granule without its bit reads as zeros. Memory is charged to a
//! [`MemoryLimit`] by units: a granule, or 2 MiB where the kernel is asked for huge pages, since
//! the first octet written costs as much.
//!
//! # What runs at the same time
//!
//! Any core may do anything at any moment; initiators see to it themselves that they do not write
//! what another one unmaps, but whatever they do must not harm the others. Bits change, and memory
//! is given back, under the lock of the 2 MiB around (a mutex of few), so that giving back never
//! meets a neighbour that is being allocated. The path of data takes no lock: `allocate` and
//! `confirm` of what is allocated only read the bits. A write is `allocate`, copy, `confirm`:
//!
//! - an UNMAP of the same granules between `allocate` and `confirm` takes the bits; `confirm` finds
//!   that and sets them, so that what was copied after the UNMAP is not lost to readers, and never
//!   comes back as stale octets when the granule is allocated once more;
//! - one that begins after `confirm` has looked clears bits and octets both.
//!
//! Between the copy and the look at the bits is a fence, and `deallocate` clears bits before it
//! discards octets: one of the two sees the other. A write that is given up after octets were
//! copied must be confirmed too. A block that is written and unmapped at once may be found
//! half zero.

use std::io;
use std::ops::{Deref, Range};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::mm::Advice;

use super::bitmap::Bitmap;
use super::buffer::{Buffer, ZEROS_MAX};
use super::limit::{MemoryLimit, NoSpace};
use super::mapping::Mapping;
use super::raw;

/// What is allocated and deallocated as a whole, in octets.
pub const GRANULE: u64 = 4096;

/// What one lock covers, and what a huge page has: 2 MiB.
const GROUP: u64 = 2 << 20;
const GROUP_GRANULES: u64 = GROUP / GRANULE;

/// Enough that cores seldom meet at one.
const LOCKS: usize = 64;

/// How far `state` looks, in granules: 16 GiB, for which it reads 512 KiB of bits (30 us).
const STATE_GRANULES: u64 = 1 << 22;

/// Which pages a region asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of 4 KiB: memory is taken and given back by as much.
    Small,
    /// Of 2 MiB where the kernel gives them: faster, and taken and given back by as much.
    Huge,
}

/// Memory of a RAM volume, for all cores.
#[derive(Debug)]
pub struct Region {
    octets: Mapping,
    /// Where the region begins in the mapping, so that huge pages fit.
    base: usize,
    len: u64,
    pages: Pages,
    allocated: Bitmap,
    charged: AtomicU64,
    limit: MemoryLimit,
    locks: [Mutex<()>; LOCKS],
}

impl Region {
    /// Reserves a region of `len` octets (more than 0); none of it is allocated. It may be larger
    /// than the machine's memory. `pages` becomes [`Pages::Small`] where the kernel has no huge
    /// pages to give.
    ///
    /// # Errors
    ///
    /// Of mmap: no address space, or overcommitment is forbidden.
    pub fn reserve(len: u64, pages: Pages, limit: &MemoryLimit) -> io::Result<Arc<Self>> {
        let pages = if len >= GROUP && huge_pages_offered() {
            pages
        } else {
            Pages::Small
        };
        let rounded = len
            .checked_next_multiple_of(GROUP)
            .and_then(|len| len.checked_add(GROUP))
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let octets = Mapping::reserve(rounded)?;
        let base = octets.at(0).as_ptr().align_offset(GROUP as usize);
        let advice = match pages {
            Pages::Small => Advice::LinuxNoHugepage,
            Pages::Huge => Advice::LinuxHugepage,
        };
        octets.advise(0, octets.len(), advice);
        octets.advise(0, octets.len(), Advice::LinuxDontDump);
        Ok(Arc::new(Self {
            octets,
            base,
            len,
            pages,
            allocated: Bitmap::new(len.div_ceil(GRANULE))?,
            charged: AtomicU64::new(0),
            limit: limit.clone(),
            locks: [const { Mutex::new(()) }; LOCKS],
        }))
    }

    /// In octets.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no octets; there is no such region.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which pages it got.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// The memory that it holds, in octets.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.charged.load(Relaxed)
    }

    /// What one core works with.
    #[must_use]
    pub fn attach(self: &Arc<Self>) -> LocalRegion {
        LocalRegion {
            region: Rc::new(Arc::clone(self)),
        }
    }

    /// Has memory for every octet of the range, before it is written. When that fails, a part of
    /// it may have been allocated, as zeros.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when the limit is reached.
    pub fn allocate(&self, range: Range<u64>) -> Result<(), NoSpace> {
        let granules = self.granules(range);
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

    /// To be called when a write to the range is over, or was given up: see the module's text. It
    /// may exceed the limit, as the memory is taken already.
    pub fn confirm(&self, range: Range<u64>) {
        fence(SeqCst);
        let granules = self.granules(range);
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

    /// Makes the range read as zeros, and gives back the memory of granules (of huge pages) that it
    /// covers whole. Giving 1 GiB back can take 100 ms: a large range is to be handed in by parts.
    pub fn deallocate(&self, range: Range<u64>) {
        let touched = self.granules(range.clone());
        let whole_start = range.start.div_ceil(GRANULE);
        let whole_end = if range.end == self.len {
            touched.end
        } else {
            range.end / GRANULE
        };
        if whole_start >= whole_end {
            self.zero_edges(range);
            return;
        }
        self.zero_edges(range.start..whole_start * GRANULE);
        self.zero_edges((whole_end * GRANULE).min(range.end)..range.end);
        let mut at = whole_start;
        while at < whole_end {
            let (set, end) = self.allocated.run(at, whole_end);
            if set {
                by_group(at..end).for_each(|part| self.give_back(part));
            }
            at = end;
        }
    }

    /// Whether the octet at `offset` is allocated, and for how many octets from there that holds
    /// (it may hold for longer).
    #[must_use]
    pub fn state(&self, offset: u64) -> (bool, u64) {
        assert!(offset < self.len, "{offset} in a region of {}", self.len);
        let granule = offset / GRANULE;
        let (set, end) = self.allocated.run(granule, granule + STATE_GRANULES);
        (set, (end * GRANULE).min(self.len) - offset)
    }

    /// Zeroes what is allocated of a range within one or two granules.
    fn zero_edges(&self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let granule = at / GRANULE;
            let end = range.end.min((granule + 1) * GRANULE);
            let _guard = self.lock(&(granule..granule + 1));
            if self.allocated.any(granule..granule + 1) {
                self.zero(at..end);
            }
            at = end;
        }
    }

    /// Gives back whole granules within one group.
    fn give_back(&self, part: Range<u64>) {
        let _guard = self.lock(&part);
        let octets = part.start * GRANULE..part.end * GRANULE;
        match self.pages {
            Pages::Small => {
                let freed = self.allocated.count(part.clone()) * GRANULE;
                self.allocated.clear(part);
                self.discard(octets);
                self.release(freed);
            }
            Pages::Huge => {
                let group = group_around(part.start);
                if !self.allocated.any(part.clone()) {
                    return;
                }
                self.allocated.clear(part);
                if self.allocated.any(self.within(group.clone())) {
                    // A part of a huge page cannot be given back: the kernel would keep the rest
                    // for as long as anything of it is in use, while we counted it as free.
                    self.zero(octets);
                    return;
                }
                self.discard(group.start * GRANULE..group.end * GRANULE);
                self.release(GROUP);
            }
        }
    }

    fn release(&self, octets: u64) {
        self.limit.release(octets);
        self.charged.fetch_sub(octets, Relaxed);
    }

    /// What allocating granules of one group costs, in octets. Its lock is held.
    fn lacking(&self, part: &Range<u64>) -> u64 {
        match self.pages {
            Pages::Small => (part.end - part.start - self.allocated.count(part.clone())) * GRANULE,
            Pages::Huge if self.allocated.any(self.within(group_around(part.start))) => 0,
            Pages::Huge => GROUP,
        }
    }

    /// The granules of a group that the region has.
    fn within(&self, group: Range<u64>) -> Range<u64> {
        group.start..group.end.min(self.len.div_ceil(GRANULE))
    }

    fn lock(&self, part: &Range<u64>) -> MutexGuard<'_, ()> {
        let group = part.start / GROUP_GRANULES;
        let lock = &self.locks[group as usize % LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The granules that a range touches.
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    fn granules(&self, range: Range<u64>) -> Range<u64> {
        let inside = range.start <= range.end && range.end <= self.len;
        assert!(inside, "{range:?} of a region of {}", self.len);
        range.start / GRANULE..range.end.div_ceil(GRANULE)
    }

    fn zero(&self, range: Range<u64>) {
        let to = self.octets.at(self.base + range.start as usize);
        // SAFETY: callers have checked the range against the region or its last granule, which
        // the mapping has whole.
        unsafe { raw::fill(to.as_ptr(), 0, (range.end - range.start) as usize) };
    }

    fn discard(&self, range: Range<u64>) {
        let len = (range.end - range.start) as usize;
        self.octets.discard(self.base + range.start as usize, len);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.limit.release(*self.charged.get_mut());
    }
}

/// A region as one core uses it: claims on it are counted without atomics.
#[derive(Clone, Debug)]
pub struct LocalRegion {
    #[expect(
        clippy::redundant_allocation,
        reason = "claims of one core need no atomics"
    )]
    region: Rc<Arc<Region>>,
}

impl LocalRegion {
    /// The data of a range, to be read. Where nothing is allocated these are zeros that take no
    /// memory.
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    #[must_use]
    pub fn buffer(&self, range: Range<u64>) -> Buffer {
        let granules = self.region.granules(range.clone());
        let len = (range.end - range.start) as usize;
        if len <= ZEROS_MAX && !self.region.allocated.any(granules) {
            return Buffer::zeros(len);
        }
        self.memory(range)
    }

    /// The memory of a range itself, to be written between [`Region::allocate`] and
    /// [`Region::confirm`].
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    #[must_use]
    pub fn memory(&self, range: Range<u64>) -> Buffer {
        let _ = self.region.granules(range.clone());
        let start = self.region.base + range.start as usize;
        let start = self.region.octets.at(start);
        Buffer::of_region(start, (range.end - range.start) as usize, self.clone())
    }
}

impl Deref for LocalRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

fn group_around(granule: u64) -> Range<u64> {
    let start = granule / GROUP_GRANULES * GROUP_GRANULES;
    start..start + GROUP_GRANULES
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

/// Whether the kernel gives huge pages to those who ask.
fn huge_pages_offered() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|setting| !setting.contains("[never]"))
}
