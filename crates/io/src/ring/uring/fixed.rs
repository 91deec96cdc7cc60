//! Memory that the kernel knows: the parts of pools that much is moved from and to.
//!
//! A transfer that goes past the page cache has the kernel look up each page of its memory and hold
//! it until the device is done. For registered memory that was done once, when it was registered.
//! Registered memory is pinned, all 2 MiB of a part. So a part is registered after as many
//! transfers as registering costs, and given up when a second brings fewer.
//!
//! The pool does not give back the memory of a part that is registered, as the kernel would go on
//! with the pages that were there before; what is unused of it is given back when it is given up.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use io_uring::IoUring;
use rustix::thread::{CapabilitySet, capabilities};

use crate::limits;
use crate::memory::{Buffer, PoolPart};

/// Parts that are registered at the most: 32 MiB, as many as 128 transfers of 256 KiB take.
pub(super) const PLACES: u16 = 16;

/// Parts that are counted at the most.
const KNOWN_MAX: usize = 256;

/// What a transfer saves is what [`PAGES_OF_TRANSFER`] pages and its own pages cost to look up:
/// 0.45 us for 4 KiB, 8 us for 256 KiB. After so many, registering 2 MiB has paid: 0.25 ms where
/// most of it has no memory yet.
const WORTH: usize = 2048;

/// Pages that a transfer counts for, beside its own.
const PAGES_OF_TRANSFER: usize = 3;

const PAGE: usize = 4096;

/// Of what this process may lock, one part in so many is pinned at the most. What a user may lock
/// is one for all processes, and from Linux 6.13 on takes in the queues of each io_uring: the
/// next ring of this user must find enough, as there would be none but epoll for it else.
const SHARE: usize = 4;

/// Bytes that all rings of this process have pinned.
static PINNED: AtomicUsize = AtomicUsize::new(0);

/// The parts of pools of one ring.
#[derive(Default)]
pub(super) struct FixedBuffers {
    /// Sorted by where they begin.
    known: Vec<KnownPart>,
    /// Places of the kernel's table that are free; `None` before there is a table.
    free: Option<Vec<u16>>,
    /// Transfers that the kernel has, by place.
    in_flight: [u32; PLACES as usize],
    /// The kernel has refused, and is not asked again before the ring is idle.
    is_refused: bool,
    /// Why, until it was told; it is told once.
    refusal: Option<io::Error>,
    was_told: bool,
}

/// A part that transfers lie in.
struct KnownPart {
    start: usize,
    len: usize,
    part: PoolPart,
    /// Pages of transfers since the last trim.
    pages: usize,
    /// Where it stands in the kernel's table, and pinned for as long.
    place: Option<u16>,
}

impl FixedBuffers {
    /// Where in the kernel's table the part is that a buffer lies in, for a transfer that begins
    /// now; [`Self::end`] is told when it is over. `None` if the buffer is to be passed by address.
    #[inline]
    pub(super) fn begin(&mut self, ring: &IoUring, buffer: &Buffer) -> Option<u16> {
        if self.is_refused && self.known.is_empty() {
            return None;
        }
        let at = self.place_in_known(buffer)?;
        let known = &mut self.known[at];
        known.pages += PAGES_OF_TRANSFER + buffer.len() / PAGE;
        if known.place.is_none() && known.pages >= WORTH {
            self.register(ring, at);
        }
        let place = self.known[at].place?;
        self.in_flight[usize::from(place)] += 1;
        Some(place)
    }

    /// A transfer is over that has begun at this place.
    pub(super) fn end(&mut self, place: u16) {
        self.in_flight[usize::from(place)] -= 1;
    }

    fn place_in_known(&mut self, buffer: &Buffer) -> Option<usize> {
        let address = buffer.address().addr().get();
        let after = self.known.partition_point(|known| known.start <= address);
        let before = after.checked_sub(1).map(|at| (at, &self.known[at]));
        if let Some((at, known)) = before
            && address - known.start < known.len
        {
            return Some(at);
        }
        let part = buffer.pool_part()?;
        if self.is_refused || self.known.len() >= KNOWN_MAX {
            return None;
        }
        let (start, len) = part.span();
        let known = KnownPart {
            start: start.addr().get(),
            len,
            part,
            pages: 0,
            place: None,
        };
        self.known.insert(after, known);
        Some(after)
    }

    fn register(&mut self, ring: &IoUring, at: usize) {
        if self.is_refused {
            return;
        }
        if let Err(error) = self.try_register(ring, at) {
            self.is_refused = true;
            if error.raw_os_error() == Some(libc::ENOMEM) && !self.was_told {
                self.was_told = true;
                self.refusal = Some(error);
            }
        }
    }

    fn try_register(&mut self, ring: &IoUring, at: usize) -> io::Result<()> {
        if self.free.is_none() {
            ring.submitter().register_buffers_sparse(PLACES.into())?;
            self.free = Some((0..PLACES).collect());
        }
        let known = &mut self.known[at];
        let Some(place) = self.free.as_mut().and_then(Vec::pop) else {
            return Ok(());
        };
        let registered = known.pin().and_then(|()| {
            let (start, len) = known.part.span();
            update(ring, place, start.as_ptr().cast(), len).inspect_err(|_| known.unpin())
        });
        match registered {
            Ok(()) => known.place = Some(place),
            Err(_) => self.free.iter_mut().for_each(|free| free.push(place)),
        }
        registered
    }

    /// Why memory could not be registered, once.
    pub(super) fn refusal(&mut self) -> Option<io::Error> {
        self.refusal.take()
    }

    /// Whether a trim may give something up.
    pub(super) fn has_idle(&self) -> bool {
        !self.known.is_empty()
    }

    /// Gives up the parts of which little was used since the last call.
    pub(super) fn trim(&mut self, ring: &IoUring) {
        let Self {
            known,
            free,
            in_flight,
            ..
        } = self;
        known.retain_mut(|known| {
            let is_busy = std::mem::take(&mut known.pages) >= WORTH;
            let Some(place) = known.place else {
                return is_busy;
            };
            // What is queued names the place.
            if is_busy || in_flight[usize::from(place)] > 0 {
                return true;
            }
            if update(ring, place, std::ptr::null_mut(), 0).is_err() {
                return true;
            }
            free.iter_mut().for_each(|free| free.push(place));
            false
        });
        self.is_refused &= !self.known.is_empty();
    }
}

#[cfg(test)]
impl super::UringRing {
    /// How many parts of pools the kernel knows.
    pub(in crate::ring) fn registered(&self) -> usize {
        let is_registered = |known: &&KnownPart| known.place.is_some();
        self.fixed.known.iter().filter(is_registered).count()
    }
}

impl KnownPart {
    fn pin(&self) -> io::Result<()> {
        let before = PINNED.fetch_add(self.len, Relaxed);
        let is_free = before + self.len <= pinned_max();
        let pinned = if is_free {
            self.part.pin()
        } else {
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        };
        pinned.inspect_err(|_| _ = PINNED.fetch_sub(self.len, Relaxed))
    }

    fn unpin(&self) {
        self.part.unpin();
        PINNED.fetch_sub(self.len, Relaxed);
    }
}

impl Drop for KnownPart {
    fn drop(&mut self) {
        if self.place.is_some() {
            self.unpin();
        }
    }
}

/// Bytes that this process may pin.
pub(super) fn pinned_max() -> usize {
    let is_privileged = capabilities(None).is_ok_and(|sets| {
        let effective = sets.effective;
        effective.contains(CapabilitySet::IPC_LOCK)
    });
    let limit = limits::memlock().filter(|_| !is_privileged);
    let bytes = limit.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX) / SHARE);
    bytes.unwrap_or(usize::MAX)
}

/// Puts memory at a place of the kernel's table; none at all frees the place.
fn update(ring: &IoUring, place: u16, start: *mut libc::c_void, len: usize) -> io::Result<()> {
    let memory = libc::iovec {
        iov_base: start,
        iov_len: len,
    };
    let submitter = ring.submitter();
    // SAFETY: it is mapped for as long as its part is known, and pinned before, so that its pages
    // stay those that the kernel knows. No transfer names a place whose memory is taken away.
    unsafe { submitter.register_buffers_update(place.into(), &[memory], None) }
}
