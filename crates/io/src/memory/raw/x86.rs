//! For x86-64. All blocks: they read and write nothing but the ranges that the caller vouches for,
//! and find the direction flag clear, as the ABI has it.

use std::arch::asm;

use super::LINE;

/// Bytes that a round of the loop for short copies moves.
const ROUND: usize = LINE;

/// The longest copy that is faster by that loop.
const SHORT: usize = 1024;

/// Moves this many rounds, at least one, by that instruction to store with. The pointers are
/// behind what was moved then.
macro_rules! lines {
    ($store:literal, $to:ident, $from:ident, $rounds:expr) => {
        asm!(
            "2:",
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            concat!($store, " [{to}], {a}"),
            concat!($store, " [{to} + 16], {b}"),
            concat!($store, " [{to} + 32], {c}"),
            concat!($store, " [{to} + 48], {d}"),
            "add {from}, 64",
            "add {to}, 64",
            "dec {rounds}",
            "jnz 2b",
            from = inout(reg) $from,
            to = inout(reg) $to,
            rounds = inout(reg) $rounds => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack)
        )
    };
}

/// As [`super::copy`].
///
/// # Safety
///
/// As of [`super::copy`].
#[inline]
pub(super) unsafe fn copy(mut to: *mut u8, mut from: *const u8, mut len: usize) {
    if (ROUND..=SHORT).contains(&len) {
        // SAFETY: `len / ROUND` rounds, at least one, stay within the ranges; afterwards the
        // pointers are behind what was copied.
        unsafe {
            lines!("movups", to, from, len / ROUND);
        }
        len %= ROUND;
        if len == 0 {
            return;
        }
    }
    // SAFETY: the rest of the ranges.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// As [`super::stream`] for whole cache lines, at least one.
///
/// # Safety
///
/// As of [`super::copy`]; `to` begins a cache line.
#[inline]
pub(super) unsafe fn stream_lines(mut to: *mut u8, mut from: *const u8, lines: usize) {
    // SAFETY: the ranges of the caller; both pointers are behind them then, and unused.
    unsafe {
        lines!("movntps", to, from, lines);
    }
    let _ = (to, from);
}

/// As [`super::fill`].
///
/// # Safety
///
/// As of [`super::fill`].
#[inline]
pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    // SAFETY: the range of the caller.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            in("al") value,
            options(nostack, preserves_flags)
        );
    }
}

/// Has the processor fetch the cache line of this address, which may be any.
#[inline]
pub(super) fn prefetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which neither faults nor reads for the program.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
}

/// Has what was streamed reach memory before anything that is stored after.
#[inline]
pub(super) fn drain() {
    // SAFETY: it orders stores, and has no other effect.
    unsafe { std::arch::x86_64::_mm_sfence() };
}
