//! For any processor: atomic accesses to aligned words, and to single bytes at both ends.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// As [`super::copy`].
///
/// # Safety
///
/// As of [`super::copy`].
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let head = to.align_offset(WORD).min(len);
    // SAFETY: the three parts make up the range, and the destination of the middle one is aligned.
    unsafe {
        bytes(to, from, head);
        let (to, from, len) = (to.add(head), from.add(head), len - head);
        let done = if from.align_offset(WORD) == 0 {
            words(to, from, len)
        } else {
            shifted_words(to, from, len)
        };
        bytes(to.add(done), from.add(done), len - done);
    }
}

/// Copies whole words, and returns their length in bytes.
///
/// # Safety
///
/// As of [`super::copy`]; both pointers are aligned.
unsafe fn words(to: *mut u8, from: *const u8, len: usize) -> usize {
    let len = len / WORD * WORD;
    for at in (0..len).step_by(WORD) {
        // SAFETY: within the ranges.
        unsafe { store(to.add(at), load(from.add(at))) };
    }
    len
}

/// Copies whole words to an aligned pointer from one that is not, and returns their length in
/// bytes. Each word that is stored is joined from two aligned ones, neither of which has bytes
/// outside of the source: those before the first one are read one by one.
///
/// # Safety
///
/// As of [`super::copy`]; `to` is aligned, `from` is not.
unsafe fn shifted_words(to: *mut u8, from: *const u8, len: usize) -> usize {
    let ahead = from.align_offset(WORD);
    let words = len.saturating_sub(ahead) / WORD;
    let bits = 8 * ahead as u32;
    let mut kept = 0;
    if words > 0 {
        for at in (0..ahead).rev() {
            // SAFETY: within the source, which is longer.
            kept = kept << 8 | u64::from(unsafe { load_byte(from.add(at)) });
        }
    }
    for at in (0..words).map(|word| word * WORD) {
        // SAFETY: within the ranges: the last word read ends at `ahead + words * WORD`, or before.
        unsafe {
            let word = u64::from_le(load(from.add(ahead + at)));
            store(to.add(at), (kept | word << bits).to_le());
            kept = word >> (u64::BITS - bits);
        }
    }
    words * WORD
}

/// As [`super::stream`] for whole cache lines.
///
/// # Safety
///
/// As of [`super::copy`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn stream_lines(to: *mut u8, from: *const u8, lines: usize) {
    // SAFETY: as ours.
    unsafe { copy(to, from, lines * super::LINE) };
}

/// No hint is the same everywhere.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn prefetch(_address: usize) {}

/// Has what was stored reach memory before anything that is stored after.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn drain() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
}

/// As [`super::fill`].
///
/// # Safety
///
/// As of [`super::fill`].
pub(crate) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    let head = to.align_offset(WORD).min(len);
    let done = head + (len - head) / WORD * WORD;
    let word = u64::from_ne_bytes([value; WORD]);
    // SAFETY: the three parts make up the range, and the middle one is aligned.
    unsafe {
        fill_bytes(to, value, head);
        for at in (head..done).step_by(WORD) {
            store(to.add(at), word);
        }
        fill_bytes(to.add(done), value, len - done);
    }
}

unsafe fn fill_bytes(to: *mut u8, value: u8, len: usize) {
    for at in 0..len {
        // SAFETY: within the range.
        unsafe { AtomicU8::from_ptr(to.add(at)).store(value, Relaxed) };
    }
}

unsafe fn bytes(to: *mut u8, from: *const u8, len: usize) {
    for at in 0..len {
        // SAFETY: within the ranges.
        unsafe { AtomicU8::from_ptr(to.add(at)).store(load_byte(from.add(at)), Relaxed) };
    }
}

/// A load through a pointer to what may be immutable memory is fine for the sizes that processors
/// load in one instruction.
#[inline]
unsafe fn load_byte(from: *const u8) -> u8 {
    // SAFETY: the caller's byte.
    unsafe { AtomicU8::from_ptr(from.cast_mut()).load(Relaxed) }
}

/// As [`load_byte`], for an aligned word.
#[inline]
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: the caller's word.
    unsafe { AtomicU64::from_ptr(from.cast_mut().cast()).load(Relaxed) }
}

#[inline]
unsafe fn store(to: *mut u8, word: u64) {
    // SAFETY: the caller's word, which is aligned.
    unsafe { AtomicU64::from_ptr(to.cast()).store(word, Relaxed) };
}
