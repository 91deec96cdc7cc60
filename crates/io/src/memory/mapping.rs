//! Memory of the kernel: anonymous, or of a file.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::OnceLock;

use rustix::mm::{Advice, MapFlags, MlockFlags, MprotectFlags, ProtFlags};

use super::raw;

/// madvise(2), since Linux 6.1.
const MADV_COLLAPSE: i32 = 25;

/// A reservation of address space that reads as zeros, and gets memory where it is written; or a
/// file.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// The size of the kernel's pages: 4 KiB on x86-64, up to 64 KiB elsewhere.
    page: usize,
    /// Bytes of the parts that are made writable one by one; `None` if all is from the start.
    part: Option<usize>,
}

/// What a mapping is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRules {
    /// The size of the kernel's pages. Tests take larger ones than this machine's.
    pub(crate) page: usize,
    /// Whether the kernel counts what may be written as used, written or not.
    pub(crate) strict: bool,
}

impl PageRules {
    /// As this machine's kernel has it.
    pub(crate) fn here() -> Self {
        static STRICT: OnceLock<bool> = OnceLock::new();
        // Where it cannot be read, as in some containers, the kernel's default holds.
        let setting = || std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        let is_strict = || setting().is_ok_and(|setting| setting.trim() == "2");
        Self {
            page: page_size(),
            strict: *STRICT.get_or_init(is_strict),
        }
    }
}

/// Parts of a mapping at the most: each can be a mapping of its own in the kernel, of which a
/// process may have some 65,000.
const PARTS_MAX: usize = 1024;

/// Bytes of a part at the least.
const PART_MIN: usize = 2 << 20;

/// The size of the kernel's pages, in bytes.
fn page_size() -> usize {
    rustix::param::page_size()
}

// SAFETY: it is an address and a length. Bytes are accessed by `raw` only, which may be done from
// any thread; mapping and unmapping belong to the owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes (more than 0), rounded up to pages. Nothing is allocated, so that more
    /// may be reserved than the machine has.
    pub(crate) fn reserve(len: usize) -> io::Result<Self> {
        Self::map(len, page_size(), ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same, of which [`Self::open`] is to be asked for what is to be written. Where all that
    /// may be written counts as used (vm.overcommit_memory = 2), that is so from then on; what may
    /// only be read is free.
    pub(crate) fn closed(len: usize, rules: PageRules) -> io::Result<Self> {
        if !rules.strict {
            return Self::map(len, rules.page, ProtFlags::READ | ProtFlags::WRITE);
        }
        let mut mapping = Self::map(len, rules.page, ProtFlags::READ)?;
        let part = (mapping.len / PARTS_MAX).max(PART_MIN);
        mapping.part = Some(part.next_multiple_of(PART_MIN));
        Ok(mapping)
    }

    /// The parts that have to be open for a range to be written, as numbers; `None` where all may
    /// be written.
    #[inline]
    pub(crate) fn parts(&self, offset: usize, len: usize) -> Option<Range<usize>> {
        let part = self.part?;
        Some(offset / part..(offset + len).div_ceil(part))
    }

    /// Where a part begins.
    pub(crate) fn part_start(&self, number: usize) -> usize {
        number * self.part.unwrap_or(0)
    }

    /// Lets a part be written, which may be so already.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory for it.
    pub(crate) fn open(&self, number: usize) -> io::Result<()> {
        let Some(part) = self.part else {
            return Ok(());
        };
        let (start, end) = (number * part, ((number + 1) * part).min(self.len));
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        let address = self.at(start).as_ptr();
        // SAFETY: our own pages, whose bytes stay what they are.
        Ok(unsafe { rustix::mm::mprotect(address.cast(), end - start, flags) }?)
    }

    /// Zeros for ever.
    pub(crate) fn read_only(len: usize) -> io::Result<Self> {
        Self::map(len, page_size(), ProtFlags::READ)
    }

    /// The first `len` bytes of a file, only to be read. Pages that the file does not have when
    /// they are read are an error of the system call, and a signal for the process that ends it.
    pub(crate) fn of_file(file: &OwnedFd, len: usize) -> io::Result<Self> {
        let page = page_size();
        let len = len
            .checked_next_multiple_of(page)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let (null, flags) = (std::ptr::null_mut(), MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { rustix::mm::mmap(null, len, ProtFlags::READ, flags, file, 0)? };
        Self::mapped(start, len, page)
    }

    fn map(len: usize, page: usize, protection: ProtFlags) -> io::Result<Self> {
        let len = len
            .checked_next_multiple_of(page)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        Self::mapped(start, len, page)
    }

    fn mapped(start: *mut c_void, len: usize, page: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            len,
            page,
            part: None,
        })
    }

    /// The address of the byte at `offset`, which may be the end.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len, "{offset} in a mapping of {}", self.len);
        // SAFETY: within the mapping, or its end.
        unsafe { self.start.add(offset) }
    }

    /// In bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes a range read as zeros, and gives back the memory of the pages that lie in it whole.
    /// What the kernel does not take back (a part of a page, locked memory) is filled with zeros.
    pub(crate) fn clear(&self, offset: usize, len: usize) {
        let (end, whole) = (offset + len, self.whole_pages(offset, len));
        let is_given_back =
            !whole.is_empty() && self.madvise(&whole, Advice::LinuxDontNeed).is_ok();
        if is_given_back {
            self.fill_zero(offset..whole.start);
            self.fill_zero(whole.end..end);
        } else {
            self.fill_zero(offset..end);
        }
    }

    /// Gives back the memory of the pages that lie in a range whole, as far as the kernel takes it.
    /// What the range holds after that is not defined.
    pub(crate) fn discard(&self, offset: usize, len: usize) {
        self.advise(offset, len, Advice::LinuxDontNeed);
    }

    /// Advice on the pages that lie in a range whole. It can be refused (a kernel without huge
    /// pages, locked memory), which costs memory or speed and nothing else.
    pub(crate) fn advise(&self, offset: usize, len: usize, advice: Advice) {
        let whole = self.whole_pages(offset, len);
        if !whole.is_empty() {
            let _ = self.madvise(&whole, advice);
        }
    }

    /// Takes memory for the page around `offset`.
    pub(crate) fn touch(&self, offset: usize) {
        self.fill_zero(offset..offset + 1);
    }

    /// Keeps memory of a range from being swapped out, from when it is taken on.
    ///
    /// # Errors
    ///
    /// Of mlock2, such as a limit.
    pub(crate) fn lock_on_fault(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset <= self.len && len <= self.len - offset);
        let start = self.at(offset).as_ptr();
        // SAFETY: our own pages, whose bytes stay what they are.
        unsafe { rustix::mm::mlock_with(start.cast(), len, MlockFlags::ONFAULT)? };
        Ok(())
    }

    /// Takes memory for a range that has none yet, page by page: what maps memory on other threads
    /// does not wait for all of it.
    pub(crate) fn take(&self, range: Range<usize>) {
        range.step_by(self.page).for_each(|at| self.touch(at));
    }

    /// Has the kernel copy a range, all of it together, into a huge page (Linux 6.1).
    pub(crate) fn collapse(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset <= self.len && len <= self.len - offset);
        let start = self.at(offset).as_ptr();
        // SAFETY: our own pages, whose bytes stay what they are.
        match unsafe { libc::madvise(start.cast(), len, MADV_COLLAPSE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The pages that lie in a range whole: of any other part of a page, the kernel would refuse
    /// the begin and take the end for all of the page.
    fn whole_pages(&self, offset: usize, len: usize) -> Range<usize> {
        assert!(offset <= self.len && len <= self.len - offset);
        let start = self.at(offset).addr().get();
        let first = start.next_multiple_of(self.page) - start;
        let end = (start + len) / self.page * self.page;
        offset + first..(offset + end.saturating_sub(start)).max(offset + first)
    }

    fn madvise(&self, pages: &Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        // What a kernel does whose pages are larger than this machine's.
        #[cfg(test)]
        let pages = &(pages.start..pages.end.next_multiple_of(self.page).min(self.len));
        let start = self.at(pages.start).as_ptr();
        // SAFETY: our own pages. Those that are discarded become zeros, which for the users of
        // `raw` is a store like any other.
        unsafe { rustix::mm::madvise(start.cast(), pages.len(), advice) }
    }

    fn fill_zero(&self, range: Range<usize>) {
        assert!(range.end <= self.len);
        // SAFETY: within the mapping, which is accessed by `raw` only.
        unsafe { raw::fill(self.at(range.start).as_ptr(), 0, range.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: buffers and operations that point here hold a claim on the owner.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
