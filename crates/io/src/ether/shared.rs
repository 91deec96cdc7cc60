//! Memory that a socket shares with the kernel.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};

/// A mapping of a socket's rings. Both sides write it: which side may touch which bytes is told by
/// words in it.
#[derive(Debug)]
pub(super) struct RingMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length, of memory that belongs to no thread.
unsafe impl Send for RingMapping {}

impl RingMapping {
    /// Maps `len` bytes of what the socket has at `offset`.
    pub(super) fn map(socket: impl AsFd, offset: u64, len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { rustix::mm::mmap(anywhere, len, protection, flags, socket, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Maps `len` bytes of memory for a socket that is told where they are.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: as above.
        let start = unsafe { rustix::mm::mmap_anonymous(anywhere, len, protection, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A word of 32 bits that either side may write at any time.
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4));
        let word = self.at(at, 4).cast::<u32>();
        // SAFETY: mapped for as long as we live, aligned, and accessed as whole words only: by us
        // by this alone, by the kernel as it does.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }
    }

    /// As [`Self::word`], of 64 bits.
    pub(super) fn double(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8));
        let double = self.at(at, 8).cast::<u64>();
        // SAFETY: as of `word`.
        unsafe { AtomicU64::from_ptr(double.as_ptr()) }
    }

    /// Bytes that are ours to read.
    ///
    /// # Safety
    ///
    /// Nothing writes them while the result lives.
    pub(super) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        let start = self.at(at, len);
        // SAFETY: mapped, and the promise made to us.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Bytes that are ours to write.
    ///
    /// # Safety
    ///
    /// Nothing else reads or writes them while the result lives.
    pub(super) unsafe fn bytes_mut(&mut self, at: usize, len: usize) -> &mut [u8] {
        let start = self.at(at, len);
        // SAFETY: mapped, and the promise made to us.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    fn at(&self, at: usize, len: usize) -> NonNull<u8> {
        let inside = at <= self.len && len <= self.len - at;
        assert!(inside, "{len} bytes at {at} of {}", self.len);
        // SAFETY: within the mapping.
        unsafe { self.start.add(at) }
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        // SAFETY: nothing that points here outlives us.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
