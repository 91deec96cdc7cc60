//! Anonymous memory of the kernel.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The size of the pages that everything is aligned to.
pub(crate) const PAGE: usize = 4096;

/// A reservation of address space that reads as zeros, and gets memory where it is written.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is an address and a length. Octets are accessed by `raw` only, which may be done from
// any thread; mapping and unmapping belong to the owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` octets (more than 0), rounded up to pages. Nothing is allocated, so that more
    /// may be reserved than the machine has.
    pub(crate) fn reserve(len: usize) -> io::Result<Self> {
        Self::map(len, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Zeros for ever.
    pub(crate) fn read_only(len: usize) -> io::Result<Self> {
        Self::map(len, ProtFlags::READ)
    }

    fn map(len: usize, protection: ProtFlags) -> io::Result<Self> {
        let len = len
            .checked_next_multiple_of(PAGE)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// The address of the octet at `offset`, which may be the end.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len, "{offset} in a mapping of {}", self.len);
        // SAFETY: within the mapping, or its end.
        unsafe { self.start.add(offset) }
    }

    /// In octets.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Gives the memory of whole pages back; they read as zeros again.
    pub(crate) fn discard(&self, offset: usize, len: usize) {
        self.advise(offset, len, Advice::LinuxDontNeed);
    }

    /// Advice can be refused (a kernel without huge pages, locked memory); all that is lost is
    /// memory or speed, so nobody is told.
    pub(crate) fn advise(&self, offset: usize, len: usize, advice: Advice) {
        assert!(offset.is_multiple_of(PAGE) && len <= self.len - offset);
        let start = self.at(offset).as_ptr();
        // SAFETY: our own pages. Those that are discarded become zeros, which for the users of
        // `raw` is a store like any other.
        let _ = unsafe { rustix::mm::madvise(start.cast(), len, advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: buffers and operations that point here hold a claim on the owner.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
