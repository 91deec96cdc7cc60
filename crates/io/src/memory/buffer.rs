//! Counted claims on memory.

use std::io;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::OnceLock;

use super::file_map::FileView;
use super::mapping::Mapping;
use super::pool::{PoolPart, PoolSlot};
use super::raw;
use super::region::LocalRegion;
use super::write_claim::WriteClaim;

/// The longest [`Buffer::zeros`].
pub const ZEROS_MAX: usize = 256 << 10;

/// Bytes that a comparison or combination handles at a time: on the stack, within the L1 cache.
const STEP: usize = 2048;

/// From here on what is stored at once in a buffer that no region lends goes past the cache: by the
/// time that the kernel reads it, others have come after it. Measured from 64 KiB on.
const STREAM_FROM: usize = 32 << 10;

/// A counted claim on a piece of memory of a [`Pool`](super::Pool), a region, or the heap. It
/// stays valid until the last claim is dropped, and is bound to its core.
///
/// Clones and slices share the memory: what is copied into one is seen in all. Of memory that was
/// not written yet the content is that of the former use, except for regions, which read as zeros.
/// Memory of a region can be written only where it was lent for that. Memory of a file
/// ([`LocalFileMap`](super::LocalFileMap)) can only be sent. Where it was lent in blocks
/// ([`Region::attach_in_blocks`](super::Region::attach_in_blocks)), a block that one claim has
/// been given a part of is seen as it was, until that claim has all of it; an RDMA device that
/// stores whole blocks by itself is seen to do so.
#[derive(Clone)]
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    owner: BufferOwner,
}

#[derive(Clone)]
enum BufferOwner {
    Heap(#[expect(dead_code, reason = "held")] Rc<Heap>),
    Slot(PoolSlot),
    /// To be read.
    Region(#[expect(dead_code, reason = "held")] LocalRegion),
    /// To be written, which the region is told of when it is over, however it ends.
    WriteClaim(WriteClaim),
    /// To be sent, and nothing else.
    File(Rc<FileView>),
    Zeros,
}

/// A box whose bytes are no longer reached through it, but by address.
struct Heap {
    bytes: NonNull<[u8]>,
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: it came from `Box::into_raw`, and no buffer points to it any more.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

impl Buffer {
    /// Bytes on the heap, for what is not on the path of data.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let bytes = NonNull::from(Box::leak(bytes.into_boxed_slice()));
        Self {
            start: bytes.cast(),
            len: bytes.len(),
            owner: BufferOwner::Heap(Rc::new(Heap { bytes })),
        }
    }

    /// Zeros, at most [`ZEROS_MAX`] of them, which take no memory. They cannot be written.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        assert!(len <= ZEROS_MAX, "{len} zeros");
        Self {
            start: zero_pages().at(0),
            len,
            owner: BufferOwner::Zeros,
        }
    }

    pub(super) fn of_slot(start: NonNull<u8>, len: usize, slot: PoolSlot) -> Self {
        let owner = BufferOwner::Slot(slot);
        Self { start, len, owner }
    }

    pub(super) fn of_region(start: NonNull<u8>, len: usize, region: LocalRegion) -> Self {
        let owner = BufferOwner::Region(region);
        Self { start, len, owner }
    }

    pub(super) fn lent(start: NonNull<u8>, len: usize, region: LocalRegion) -> Self {
        let owner = BufferOwner::WriteClaim(WriteClaim::new(region));
        Self { start, len, owner }
    }

    pub(super) fn of_file(start: NonNull<u8>, len: usize, view: Rc<FileView>) -> Self {
        let owner = BufferOwner::File(view);
        Self { start, len, owner }
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it is of [`Self::zeros`]; such a buffer cannot be written.
    #[must_use]
    pub fn is_zeros(&self) -> bool {
        matches!(self.owner, BufferOwner::Zeros)
    }

    /// Whether it is memory of a region, which others may write at the same time.
    #[must_use]
    pub fn is_of_region(&self) -> bool {
        matches!(
            self.owner,
            BufferOwner::Region(_) | BufferOwner::WriteClaim(_)
        )
    }

    /// Whether it is memory of a file, which can only be sent.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        matches!(self.owner, BufferOwner::File(_))
    }

    /// It was to be sent, and the kernel could not take pages that may have been this: what the
    /// file holds, in memory of our own. `None` where it has lost that, or it is no memory of a
    /// file.
    pub(crate) fn copied_from_file(&self) -> Option<Self> {
        match &self.owner {
            BufferOwner::File(view) => view.copy(self.start.addr().get(), self.len),
            _ => None,
        }
    }

    /// Whether `other` claims exactly the same memory.
    #[must_use]
    pub fn is_same_memory(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }

    /// Whether it begins at a multiple of `alignment` bytes in memory, as direct I/O asks for.
    #[must_use]
    pub fn is_aligned(&self, alignment: usize) -> bool {
        self.start.addr().get().is_multiple_of(alignment)
    }

    /// The part of `len` bytes from `offset`.
    ///
    /// # Panics
    ///
    /// When the range is not inside the buffer.
    #[must_use]
    pub fn slice(&self, offset: usize, len: usize) -> Self {
        Self {
            start: self.range(offset, len),
            len,
            owner: self.owner.clone(),
        }
    }

    /// Stores `bytes` at `offset`.
    ///
    /// # Panics
    ///
    /// When the range is not inside the buffer, or the buffer is only for reading.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let to = self.writable(offset, bytes.len());
        // SAFETY: `to` is ours for that length, and the slice is the caller's.
        unsafe { self.store(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
    }

    /// Fills `bytes` from `offset`.
    ///
    /// # Panics
    ///
    /// When the range is not inside the buffer, or the buffer is only to be sent.
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.readable(offset, bytes.len());
        // SAFETY: `from` is ours for that length, and the slice is the caller's.
        unsafe { raw::copy(bytes.as_mut_ptr(), from.as_ptr(), bytes.len()) };
    }

    /// Stores `len` bytes of other memory, which a device may be writing, at `offset`.
    ///
    /// # Safety
    ///
    /// So many bytes are mapped at `from`, and no exclusive reference to them is alive.
    ///
    /// # Panics
    ///
    /// As [`Self::copy_in`].
    pub(crate) unsafe fn copy_from_address(&self, offset: usize, from: NonNull<u8>, len: usize) {
        let to = self.writable(offset, len);
        // SAFETY: `to` is ours for that length, and the rest is promised.
        unsafe { self.store(to.as_ptr(), from.as_ptr(), len) };
    }

    /// Fills `len` bytes of other memory, which a device may be reading, from `offset`.
    ///
    /// # Safety
    ///
    /// So many bytes are mapped at `to`, and no reference to them is alive.
    ///
    /// # Panics
    ///
    /// As [`Self::copy_out`].
    pub(crate) unsafe fn copy_to_address(&self, offset: usize, to: NonNull<u8>, len: usize) {
        let from = self.readable(offset, len);
        // SAFETY: `from` is ours for that length, and the rest is promised.
        unsafe { raw::copy(to.as_ptr(), from.as_ptr(), len) };
    }

    /// Adds all of it to the end of `bytes`.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.reserve(self.len);
        let (end, from) = (bytes.len(), self.readable(0, self.len));
        // SAFETY: room for `self.len` bytes was made behind the end, and they are initialized
        // when they become part of the vector.
        unsafe {
            raw::copy(bytes.as_mut_ptr().add(end), from.as_ptr(), self.len);
            bytes.set_len(end + self.len);
        }
    }

    /// Stores the bytes of `source` at `offset`.
    ///
    /// # Panics
    ///
    /// As [`Self::copy_in`].
    pub fn copy_from(&self, offset: usize, source: &Self) {
        let to = self.writable(offset, source.len);
        let from = source.readable(0, source.len);
        // SAFETY: both are ours for that length. Should they overlap, the result is one that
        // copying byte by byte can have.
        unsafe { self.store(to.as_ptr(), from.as_ptr(), source.len) };
    }

    /// Stores bytes in the way that suits our memory.
    ///
    /// # Safety
    ///
    /// As of [`raw::copy`].
    unsafe fn store(&self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: as ours; what is lent covers what the buffer does.
        unsafe {
            match &self.owner {
                BufferOwner::WriteClaim(lent) => lent.store(to, from, len),
                _ if len >= STREAM_FROM => raw::stream(to, from, len),
                _ => raw::copy(to, from, len),
            }
        }
    }

    /// Sets `len` bytes from `offset` to zero. In memory lent in blocks these must be whole blocks.
    ///
    /// # Panics
    ///
    /// As [`Self::copy_in`].
    pub fn zero(&self, offset: usize, len: usize) {
        let to = self.writable(offset, len);
        // SAFETY: ours for that length.
        unsafe { raw::fill(to.as_ptr(), 0, len) };
    }

    /// The offset of the first byte that differs from `other`.
    ///
    /// # Panics
    ///
    /// When `other` has another length.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<usize> {
        assert_eq!(self.len, other.len, "buffers to compare");
        let (mut ours, mut theirs) = ([0; STEP], [0; STEP]);
        steps(self.len).find_map(|(at, len)| {
            self.copy_out(at, &mut ours[..len]);
            other.copy_out(at, &mut theirs[..len]);
            if ours[..len] == theirs[..len] {
                return None;
            }
            let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            first.map(|first| at + first)
        })
    }

    /// Sets each byte to itself OR that of `other`. Each for itself: a writer at the same moment
    /// may be lost.
    ///
    /// # Panics
    ///
    /// When `other` has another length, or this buffer is only for reading.
    pub fn or_with(&self, other: &Self) {
        assert_eq!(self.len, other.len, "buffers to combine");
        let (mut ours, mut theirs) = ([0; STEP], [0; STEP]);
        for (at, len) in steps(self.len) {
            self.copy_out(at, &mut ours[..len]);
            other.copy_out(at, &mut theirs[..len]);
            for (a, b) in ours[..len].iter_mut().zip(&theirs[..len]) {
                *a |= b;
            }
            self.copy_in(at, &ours[..len]);
        }
    }

    /// Whether it is memory of a medium, lent to be written.
    pub(crate) fn is_of_medium(&self) -> bool {
        matches!(&self.owner, BufferOwner::WriteClaim(_))
    }

    /// Whether a device may store there by itself: in whole blocks of lent memory, as parts of them
    /// are staged, or in any other memory.
    pub(crate) fn may_be_filled_by_device(&self) -> bool {
        match &self.owner {
            BufferOwner::WriteClaim(lent) => lent.is_whole(self.start, self.len),
            _ => true,
        }
    }

    /// The part of its pool that it lies in, of those of [`PoolPart::BYTES`] bytes; `None` where it
    /// is not of a pool.
    pub(crate) fn pool_part(&self) -> Option<PoolPart> {
        match &self.owner {
            BufferOwner::Slot(slot) => Some(slot.part()),
            _ => None,
        }
    }

    /// Where it lies, for the kernel only. Valid as long as the buffer or a clone of it is held.
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.start
    }

    /// The same for an operation that writes.
    ///
    /// # Panics
    ///
    /// When the buffer is only for reading.
    pub(crate) fn writable_address(&self) -> NonNull<u8> {
        self.writable(0, self.len)
    }

    fn writable(&self, offset: usize, len: usize) -> NonNull<u8> {
        let read_only = matches!(
            self.owner,
            BufferOwner::Zeros | BufferOwner::Region(_) | BufferOwner::File(_)
        );
        assert!(
            !read_only || len == 0,
            "a write to what is only lent for reading"
        );
        self.range(offset, len)
    }

    /// Where it is to be read by this process.
    fn readable(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(!self.is_of_file(), "a read of what is only lent to be sent");
        self.range(offset, len)
    }

    fn range(&self, offset: usize, len: usize) -> NonNull<u8> {
        let inside = offset <= self.len && len <= self.len - offset;
        assert!(inside, "{len} bytes at {offset} of {}", self.len);
        // SAFETY: within the memory claimed.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let BufferOwner::WriteClaim(lent) = &self.owner
            && self.len > 0
        {
            lent.end(self.start, self.len);
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let owner = match self.owner {
            BufferOwner::Heap(_) => "heap",
            BufferOwner::Slot(_) => "pool",
            BufferOwner::Region(_) => "region",
            BufferOwner::WriteClaim(_) => "lent of region",
            BufferOwner::File(_) => "file",
            BufferOwner::Zeros => "zeros",
        };
        write!(f, "Buffer({owner}, {} bytes)", self.len)
    }
}

fn steps(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len)
        .step_by(STEP)
        .map(move |at| (at, STEP.min(len - at)))
}

/// One mapping for the whole process: however often its pages are sent, it is the kernel's own
/// zero page that leaves.
fn zero_pages() -> &'static Mapping {
    static ZEROS: OnceLock<Mapping> = OnceLock::new();
    ZEROS.get_or_init(|| match Mapping::read_only(ZEROS_MAX) {
        Ok(mapping) => mapping,
        Err(error) => out_of_address_space(&error),
    })
}

/// As the allocator does it: there is no going on without 256 KiB of address space.
fn out_of_address_space(error: &io::Error) -> ! {
    panic!("no address space for zeros: {error}")
}

/// How many buffers are fetched together. The first byte of each costs a walk through page tables,
/// of which processors do several at once, but only for what they are told in one go.
const TOGETHER: usize = 16;

/// How much of a buffer is fetched; for what follows, the processor sees by itself that it is read
/// in order.
const BYTES: usize = 1024;

/// Buffers that will be copied or sent soon: from random places of a large volume each would cost a
/// trip to memory, one after the other. A reader of one block at a time gains nothing, and fetches
/// nothing.
#[derive(Debug, Default)]
pub struct PrefetchQueue {
    places: [(usize, usize); TOGETHER],
    count: usize,
}

impl PrefetchQueue {
    /// Takes note of a buffer. Its memory may be gone when it is fetched, as fetching is a hint.
    #[inline]
    pub fn note(&mut self, buffer: &Buffer) {
        self.places[self.count] = (buffer.address().addr().get(), buffer.len().min(BYTES));
        self.count += 1;
        if self.count == TOGETHER {
            self.fetch();
        }
    }

    fn fetch(&mut self) {
        for (address, _) in self.places {
            raw::prefetch(address, 1);
        }
        for (address, len) in self.places {
            raw::prefetch(address, len);
        }
        self.count = 0;
    }
}
