//! Copies of bytes that another thread may be reading or writing at the same moment.
//!
//! Two initiators may write one block at once, and the kernel reads a RAM volume's memory while a
//! third one writes it. In Rust's memory model such accesses must be atomic, each byte for itself;
//! `ptr::copy_nonoverlapping` is not, so that using it here would be undefined behaviour, however
//! well it may work. There is no atomic copy in the language (RFC 3301 has not landed), so that
//! two ways are left:
//!
//! - a loop of relaxed atomic loads and stores, which compilers do not vectorize: 8 bytes a cycle
//!   at best; it is what other architectures get ([`portable`]);
//! - on x86-64 and aarch64, inline assembly. The compiler knows nothing of it but that it may touch
//!   any memory, and what it does is what a sequence of relaxed atomic accesses to single bytes
//!   could have done, as every plain load and store of the processor is one. So a racing copy finds
//!   each byte old or new, never anything else, and nothing else is at stake.
//!
//! On x86-64 `rep movsb` is taken because processors since 2013 copy whole cache lines by it, for
//! large lengths without reading the destination first, and it needs no dispatch on what the
//! processor has: measured on a Sapphire Rapids it equals the C library's memcpy from 4 KiB on (28
//! ns in the cache, 540 ns to random places of 512 MiB). It has a start-up cost, so that a loop of
//! 64 bytes is taken for up to 1 KiB: 512 bytes cost 5 instead of 14 ns in the cache, 160 instead
//! of 225 outside (memcpy 5 and 188).
//!
//! What is written to a RAM volume goes past the cache ([`stream`]): it lies at a random place of
//! something larger than any cache, of which every line would be fetched only to be overwritten,
//! and then push out something that is needed. Measured as above, 4 KiB take 200 instead of 450 ns,
//! 512 bytes 30 instead of 140. So does what is stored at once in a large buffer, which the kernel
//! reads later. Such stores may reach memory later than what is stored after them, so that
//! [`drain`] has to come before anybody else is told of them.
//!
//! All accesses to memory of regions, pools and heap buffers are made here or by the kernel. No
//! `&[u8]` to them is ever made.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable as machine;
#[cfg(target_arch = "x86_64")]
use x86 as machine;

/// Copies `len` bytes.
///
/// # Safety
///
/// Both ranges are mapped for the duration, `to` for writing. No reference to bytes of either
/// range is alive, except that `from` may be a shared slice and `to` an exclusive one of the
/// caller's own.
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as ours.
    unsafe { machine::copy(to, from, len) };
}

/// Copies `len` bytes to where they will not be needed soon: whole cache lines past the cache, what
/// is left of them at both ends through it. They may become visible to others out of order, until
/// [`drain`].
///
/// # Safety
///
/// As of [`copy`].
#[inline]
pub(crate) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let done = head + lines * LINE;
    // SAFETY: the three parts make up the range.
    unsafe {
        if head > 0 {
            copy(to, from, head);
        }
        if lines > 0 {
            machine::stream_lines(to.add(head), from.add(head), lines);
        }
        if done < len {
            copy(to.add(done), from.add(done), len - done);
        }
    }
}

/// Has what was streamed reach memory before anything that is stored after.
#[inline]
pub(crate) fn drain() {
    machine::drain();
}

/// Has the processor fetch bytes that will be read soon. Nothing is read: any address will do.
#[inline]
pub(crate) fn prefetch(from: usize, len: usize) {
    for offset in (0..len).step_by(LINE) {
        machine::prefetch(from.wrapping_add(offset));
    }
}

/// Sets `len` bytes to `value`.
///
/// # Safety
///
/// As of [`copy`], for the destination.
#[inline]
pub(crate) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    // SAFETY: as ours.
    unsafe { machine::fill(to, value, len) };
}

/// Bytes in a cache line of most processors.
const LINE: usize = 64;
