//! The same for any processor.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use self::copy as stream;

const WORD: usize = size_of::<u64>();

/// As [`super::copy`].
///
/// # Safety
///
/// As of [`super::copy`].
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let together = (to as usize).abs_diff(from as usize).is_multiple_of(WORD);
    let head = if together {
        to.align_offset(WORD).min(len)
    } else {
        len
    };
    let words = (len - head) / WORD;
    // SAFETY: the three parts make up the range, and the middle one is aligned on both sides.
    unsafe {
        bytes(to, from, head);
        for at in (0..words).map(|word| head + word * WORD) {
            let word = AtomicU64::from_ptr(from.add(at).cast_mut().cast()).load(Relaxed);
            AtomicU64::from_ptr(to.add(at).cast()).store(word, Relaxed);
        }
        let done = head + words * WORD;
        bytes(to.add(done), from.add(done), len - done);
    }
}

/// As [`super::fill`].
///
/// # Safety
///
/// As of [`super::fill`].
pub(crate) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    for at in 0..len {
        // SAFETY: within the range.
        unsafe { AtomicU8::from_ptr(to.add(at)).store(value, Relaxed) };
    }
}

unsafe fn bytes(to: *mut u8, from: *const u8, len: usize) {
    for at in 0..len {
        // SAFETY: within the range. A load through a pointer to what may be immutable memory is
        // fine for the sizes that processors load in one instruction.
        unsafe {
            let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Relaxed);
            AtomicU8::from_ptr(to.add(at)).store(byte, Relaxed);
        }
    }
}
