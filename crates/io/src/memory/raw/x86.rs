//! For x86-64. All blocks: they read and write nothing but the ranges that the caller vouches for,
//! and find the direction flag clear, as the ABI has it.

use std::arch::asm;

/// Bytes that a round of the loop for short copies moves.
const ROUND: usize = 64;

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

/// As [`super::stream`]: whole cache lines past the cache, what is left of them at both ends
/// through it.
///
/// # Safety
///
/// As of [`super::copy`].
#[inline]
pub(super) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    let head = to.align_offset(ROUND).min(len);
    let rounds = (len - head) / ROUND;
    let done = head + rounds * ROUND;
    // SAFETY: the three parts make up the range.
    unsafe {
        if head > 0 {
            copy(to, from, head);
        }
        let (mut to, mut from) = (to.add(head), from.add(head));
        if rounds > 0 {
            lines!("movntps", to, from, rounds);
        }
        if done < len {
            copy(to, from, len - done);
        }
    }
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
