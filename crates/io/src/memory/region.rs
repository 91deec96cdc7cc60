//! The memory of a RAM volume.
//!
//! A region reserves address space for the whole volume at once and keeps one bit for each granule
//! of 4 KiB: whether it was written since it was last deallocated. The bits, not the kernel's page
//! tables, say what is allocated; a granule without its bit reads as zeros. Memory is charged to a
//! [`MemoryLimit`] by the granule, and by 2 MiB where granules have got a huge page together (see
//! [`super::granules`]).
//!
//! # What runs at the same time
//!
//! Any core may do anything at any moment; initiators see to it themselves that they do not write
//! what another one unmaps, but whatever they do must not harm the others. A writer borrows the
//! memory by [`LocalRegion::lend`]; each claim on it that is dropped looks whether an UNMAP of the
//! same granules ran meanwhile, and then takes them back into the book (see [`super::granules`]):
//!
//! - bytes that were stored after the UNMAP are not lost to readers;
//! - a write that was given up half way, whose end was never told, leaves nothing behind
//!   in granules that count as free, where it would come to light as stale bytes when another
//!   write allocates them.
//!
//! Should nothing have been stored, the granules are allocated all the same, as zeros: that is what
//! not knowing costs. A block that is written and unmapped at once may be found half zero.

mod recall;

use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use rustix::mm::Advice;

use super::bitmap::Bitmap;
use super::buffer::{Buffer, ZEROS_MAX};
use super::granules::{Clear, GRANULE, GROUP, Granules, Pages};
use super::huge::huge_page;
use super::limit::{MemoryLimit, NoSpace};
use super::locked::{LockError, RegionUsers};
use super::mapping::{Mapping, PageRules};
use super::raw;
use super::write_claim::StagingArea;
pub use recall::Recall;

/// How far `state` looks, in granules: 16 GiB, for which it reads 512 KiB of bits (30 us).
const STATE_GRANULES: u64 = 1 << 22;

/// The longest region that gets huge pages where advice is kept, in bytes: at worst each second
/// group has it, and a process may have some 65,000 mappings.
const ADVISED_MAX: u64 = 32 << 30;

/// Memory of a RAM volume, for all cores.
#[derive(Debug)]
pub struct Region {
    bytes: Mapping,
    /// Parts of the mapping that may be written, where that is not all of it.
    open: Option<Bitmap>,
    /// Where the region begins in the mapping, so that huge pages fit.
    base: usize,
    len: u64,
    granules: Granules,
    limit: MemoryLimit,
    /// Huge pages come by MADV_COLLAPSE, not by khugepaged.
    collapses: bool,
    /// What is told before the memory goes.
    users: RegionUsers,
}

impl Drop for Region {
    fn drop(&mut self) {
        self.users.tell(self.bytes.at(self.base));
    }
}

/// Memory that a locked region takes before it asks again how much there is, in bytes: a quarter of
/// what is left to the rest of the process, as several may be taken at once.
const TAKEN_AT_ONCE: usize = 8 * GROUP as usize;

impl Region {
    /// Reserves a region of `len` bytes (more than 0); none of it is allocated. It may be larger
    /// than the machine's memory. `pages` becomes [`Pages::Small`] where the kernel has no huge
    /// pages of 2 MiB to give.
    ///
    /// # Errors
    ///
    /// Of mmap: no address space, or overcommitment is forbidden.
    pub fn reserve(len: u64, pages: Pages, limit: &MemoryLimit) -> io::Result<Arc<Self>> {
        let region = Self::with_page_rules(len, pages, limit, PageRules::here())?;
        if region.pages() == Pages::Huge {
            limit.replacer().add(&region);
        }
        Ok(region)
    }

    /// The same on another kernel; huge pages only come by [`Self::replace`].
    pub(super) fn with_page_rules(
        len: u64,
        pages: Pages,
        limit: &MemoryLimit,
        rules: PageRules,
    ) -> io::Result<Arc<Self>> {
        let (bytes, base) = Self::map(len, rules)?;
        // Whatever the kernel would do by itself: the first write takes a small page.
        bytes.advise(0, bytes.len(), Advice::LinuxNoHugepage);
        let collapses = bytes.collapse(base, 0).is_ok();
        let (group, most) = (huge_page(), if collapses { u64::MAX } else { ADVISED_MAX });
        let pages = match pages {
            Pages::Huge if group == Some(GROUP) && (GROUP..=most).contains(&len) => Pages::Huge,
            _ => Pages::Small,
        };
        let parts = bytes.parts(0, bytes.len()).map(|parts| parts.end as u64);
        Ok(Arc::new(Self {
            bytes,
            open: parts.map(Bitmap::new).transpose()?,
            base,
            len,
            granules: Granules::new(len.div_ceil(GRANULE), pages, limit)?,
            limit: limit.clone(),
            collapses,
            users: RegionUsers::default(),
        }))
    }

    /// Address space for a region, and where in it that begins.
    fn map(len: u64, rules: PageRules) -> io::Result<(Mapping, usize)> {
        let rounded = len
            .checked_next_multiple_of(GROUP)
            .and_then(|len| len.checked_add(GROUP))
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let bytes = Mapping::closed(rounded, rules)?;
        let base = bytes.at(0).as_ptr().align_offset(GROUP as usize);
        bytes.advise(0, bytes.len(), Advice::LinuxDontDump);
        Ok((bytes, base))
    }

    /// A region of `len` bytes (more than 0) whose memory is taken and locked now, all of it, by
    /// huge pages where the kernel has some. It is never swapped out or given back: what is
    /// deallocated is zeroed. It blocks for as long as that takes.
    ///
    /// # Errors
    ///
    /// No memory, or a limit; what has been taken is given back then.
    pub fn locked(len: u64, limit: &MemoryLimit) -> Result<Arc<Self>, LockError> {
        let cannot_map = |cause| LockError::kernel("reserve address space", cause);
        let granules = Granules::kept(len.div_ceil(GRANULE), limit).map_err(cannot_map)?;
        limit.admit(&granules, len)?;
        let (bytes, base) = Self::map(len, PageRules::here()).map_err(cannot_map)?;
        if huge_page() == Some(GROUP) {
            bytes.advise(base, bytes.len() - base, Advice::LinuxHugepage);
        }
        let region = Arc::new(Self {
            bytes,
            open: None,
            base,
            len,
            granules,
            limit: limit.clone(),
            collapses: false,
            users: RegionUsers::default(),
        });
        region.lock()?;
        limit.locked().add(&region);
        Ok(region)
    }

    /// Takes and locks all of its memory.
    fn lock(&self) -> Result<(), LockError> {
        let (_, len) = self.span();
        let mut parts = self.bytes.parts(0, self.bytes.len()).into_iter().flatten();
        let opened = parts.try_for_each(|part| self.bytes.open(part));
        opened.map_err(|cause| LockError::kernel("have memory set aside", cause))?;
        let locked = self.bytes.lock_on_fault(self.base, len);
        locked.map_err(|cause| LockError::refused(len, cause))?;
        let end = self.base + len;
        for at in (self.base..end).step_by(TAKEN_AT_ONCE) {
            // Others may have taken what was there at the start.
            LockError::check_available(len as u64, (at - self.base) as u64)?;
            self.bytes.take(at..end.min(at + TAKEN_AT_ONCE));
        }
        Ok(())
    }

    /// What is told before the memory goes.
    pub(crate) fn users(&self) -> &RegionUsers {
        &self.users
    }

    /// In bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where it lies, in whole pages: for devices that are told of all of it.
    pub(crate) fn span(&self) -> (NonNull<u8>, usize) {
        let len = (self.len as usize).next_multiple_of(GRANULE as usize);
        (self.bytes.at(self.base), len)
    }

    /// Whether it has no bytes; there is no such region.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether all of its memory was taken and locked at the start.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.granules.is_kept()
    }

    /// Which pages it got.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.granules.pages()
    }

    /// The memory that it holds, in bytes.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.granules.charged()
    }

    /// What one core works with. What it lends is stored a byte at a time.
    #[must_use]
    pub fn attach(self: &Arc<Self>) -> LocalRegion {
        LocalRegion::new(self, 1)
    }

    /// The same for a region of blocks of `block` bytes: data received into its lent memory is
    /// stored one block at a time. A block that does not arrive completely stays unchanged, unless
    /// an RDMA device stores whole blocks by itself, and is stopped within one.
    ///
    /// # Panics
    ///
    /// When `block` is not a power of two from 64 to [`GRANULE`].
    #[must_use]
    pub fn attach_in_blocks(self: &Arc<Self>, block: u32) -> LocalRegion {
        let fits = block.is_power_of_two() && (64..=GRANULE).contains(&block.into());
        assert!(fits, "blocks of {block} bytes");
        LocalRegion::new(self, block as usize)
    }

    /// Makes the range read as zeros, and gives back the memory of granules (of huge pages) that it
    /// covers whole. Giving 1 GiB back can take 100 ms: a large range is to be handed in by parts.
    pub fn deallocate(&self, range: Range<u64>) {
        let touched = self.touched(range.clone());
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
        let clear = |what: Clear| self.clear(&what);
        self.granules.deallocate(whole_start..whole_end, clear);
    }

    /// The first group, from that one on, that is worth a huge page; each is told of once.
    pub(super) fn next_ripe(&self, group: u64) -> Option<u64> {
        self.granules.next_ripe(group)
    }

    /// Replaces the small pages of a group by a huge one, unless it is not worth it any more.
    /// Returns whether that is over, or else may be tried again.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when the limit leaves no room for the rest of a huge page.
    pub(super) fn replace(&self, group: u64) -> Result<bool, NoSpace> {
        if !self.granules.replace(group)? {
            return Ok(true);
        }
        let (start, len) = (self.base + (group * GROUP) as usize, GROUP as usize);
        self.bytes.advise(start, len, Advice::LinuxHugepage);
        let is_done = !self.collapses || self.bytes.collapse(start, len).is_ok();
        if self.collapses || !is_done {
            self.bytes.advise(start, len, Advice::LinuxNoHugepage);
        }
        let clear = |what: Clear| self.clear(&what);
        self.granules.have_replaced(group, is_done, clear);
        Ok(is_done)
    }

    /// Whether the byte at `offset` is allocated, and for how many bytes from there that holds
    /// (it may hold for longer).
    #[must_use]
    pub fn state(&self, offset: u64) -> (bool, u64) {
        assert!(offset < self.len, "{offset} in a region of {}", self.len);
        let granule = offset / GRANULE;
        let (set, end) = self.granules.run(granule, granule + STATE_GRANULES);
        (set, (end * GRANULE).min(self.len) - offset)
    }

    /// Lets the groups of a range be written, all of each: when a part of one is deallocated, the
    /// rest of it may be filled with zeros.
    fn open(&self, open: &Bitmap, range: &Range<u64>) -> Result<(), NoSpace> {
        let start = range.start / GROUP * GROUP;
        let len = (range.end.next_multiple_of(GROUP) - start) as usize;
        let parts = self.bytes.parts(self.base + start as usize, len);
        for part in parts.into_iter().flatten() {
            let bit = part as u64..part as u64 + 1;
            if !open.any(bit.clone()) {
                self.bytes.open(part).map_err(|_| NoSpace)?;
                open.set(bit);
            }
        }
        Ok(())
    }

    /// Zeroes what is allocated of a range within one or two granules.
    fn zero_edges(&self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let granule = at / GRANULE;
            let end = range.end.min((granule + 1) * GRANULE);
            self.granules.if_allocated(granule, || self.zero(at..end));
            at = end;
        }
    }

    /// The granules that a range touches.
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    fn touched(&self, range: Range<u64>) -> Range<u64> {
        let inside = range.start <= range.end && range.end <= self.len;
        assert!(inside, "{range:?} of a region of {}", self.len);
        range.start / GRANULE..range.end.div_ceil(GRANULE)
    }

    fn zero(&self, range: Range<u64>) {
        let to = self.bytes.at(self.base + range.start as usize);
        // SAFETY: callers have checked the range against the region or its last granule, which
        // the mapping has whole.
        unsafe { raw::fill(to.as_ptr(), 0, (range.end - range.start) as usize) };
    }

    fn clear(&self, what: &Clear) {
        let (Clear::Discard(part) | Clear::Zero(part) | Clear::CutUp(part)) = what;
        let bytes = bytes(part);
        let (start, len) = (
            self.base + bytes.start as usize,
            (bytes.end - bytes.start) as usize,
        );
        match what {
            Clear::Zero(_) => return self.zero(bytes),
            Clear::CutUp(_) => self.cut_up(bytes.start, start, len),
            Clear::Discard(_) => {}
        }
        self.bytes.clear(start, len);
    }

    /// Has the huge page of a group be one no more, of which a part is given back next. The kernel
    /// would keep all of it for as long as anything of it is in use, while we count the part as
    /// free; of what it is told to free when it likes it cuts huge pages up at once.
    fn cut_up(&self, offset: u64, start: usize, len: usize) {
        if !self.collapses {
            let group = self.base + (offset / GROUP * GROUP) as usize;
            let advice = Advice::LinuxNoHugepage;
            self.bytes.advise(group, GROUP as usize, advice);
        }
        self.bytes.advise(start, len, Advice::LinuxFree);
    }
}

/// A region as one core uses it: claims on it are counted without atomics.
#[derive(Clone, Debug)]
pub struct LocalRegion {
    local: Rc<RegionView>,
}

#[derive(Debug)]
struct RegionView {
    region: Arc<Region>,
    /// The bits of an address that tell where in a block it lies. The region begins at a group, and
    /// with it at a block.
    within_block: usize,
    stages: StagingArea,
}

impl LocalRegion {
    fn new(region: &Arc<Region>, block: usize) -> Self {
        let local = RegionView {
            region: Arc::clone(region),
            within_block: block - 1,
            stages: StagingArea::default(),
        };
        Self {
            local: Rc::new(local),
        }
    }

    /// The data of a range, to be read. Where nothing is allocated these are zeros that take no
    /// memory; of a locked region it is its own memory all the same, which devices know.
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    #[must_use]
    pub fn buffer(&self, range: Range<u64>) -> Buffer {
        let touched = self.touched(range.clone());
        let len = len(&range);
        if len <= ZEROS_MAX && !self.granules.any(touched) && !self.granules.is_kept() {
            return Buffer::zeros(len);
        }
        Buffer::of_region(self.start(&range), len, self.clone())
    }

    /// The memory of a range itself, to be written, after memory was taken for every byte of it.
    /// The write is over when the buffer, and every clone and slice of it, has been dropped.
    ///
    /// # Errors
    ///
    /// [`NoSpace`] when the limit is reached. A part of the range may have been allocated then, as
    /// zeros.
    ///
    /// # Panics
    ///
    /// When the range is not inside the region.
    pub fn lend(&self, range: Range<u64>) -> Result<Buffer, NoSpace> {
        let touched = self.touched(range.clone());
        if let Some(open) = &self.open {
            self.open(open, &range)?;
        }
        self.granules
            .allocate(touched, || self.limit.replacer().wake())?;
        let start = self.start(&range);
        Ok(Buffer::lent(start, len(&range), self.clone()))
    }

    /// Whether a buffer is exactly the memory of a range, such as what was lent of it.
    #[must_use]
    pub fn is_memory_of(&self, range: &Range<u64>, buffer: &Buffer) -> bool {
        let _ = self.touched(range.clone());
        buffer.address() == self.start(range) && buffer.len() == len(range)
    }

    /// Tells apart what was claimed until now from what will be: buffers of before, and they alone,
    /// are waited for by what is returned.
    pub fn recall(&mut self) -> Recall {
        let next = Self::new(&self.local.region, self.local.within_block + 1);
        let before = std::mem::replace(self, next);
        let before: Weak<RegionView> = Rc::downgrade(&before.local);
        Recall::of_all(vec![before])
    }

    pub(super) fn within_block(&self) -> usize {
        self.local.within_block
    }

    pub(super) fn stages(&self) -> &StagingArea {
        &self.local.stages
    }

    /// Bytes of ours may have been stored from `start` on: see the module's text.
    pub(super) fn written(&self, start: NonNull<u8>, len: usize) {
        let first = self.bytes.at(self.base).addr().get();
        let offset = (start.addr().get() - first) as u64;
        let touched = self.touched(offset..offset + len as u64);
        self.granules
            .confirm(touched, || self.limit.replacer().wake());
    }

    fn start(&self, range: &Range<u64>) -> NonNull<u8> {
        let start = self.base + range.start as usize;
        self.bytes.at(start)
    }
}

impl Deref for LocalRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.local.region
    }
}

/// The bytes of granules.
fn bytes(granules: &Range<u64>) -> Range<u64> {
    granules.start * GRANULE..granules.end * GRANULE
}

fn len(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}
