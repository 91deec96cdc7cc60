//! For aarch64. All blocks: they read and write nothing but the ranges that the caller vouches for,
//! and no byte of them twice. Addresses need no alignment: that is asked of device memory only,
//! which none of ours is.
//!
//! Pairs of vector registers move 32 bytes an instruction. Each byte of such an access is
//! single-copy atomic (Arm ARM, "Requirements for single-copy atomicity"), as relaxed atomic
//! accesses to single bytes are. Checked under QEMU, where the instructions were counted;
//! unmeasured on hardware.

use std::arch::asm;

use super::LINE;

/// As [`super::copy`].
///
/// # Safety
///
/// As of [`super::copy`].
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: `len / LINE` rounds of `LINE` bytes, then as many bytes as the lower bits of `len`
    // tell: half a line by bit 5, and so on down to one byte by bit 0.
    unsafe {
        asm!(
            "cbz {lines}, 3f",
            "2:",
            "ldp {c:q}, {d:q}, [{from}, #32]",
            "ldp {a:q}, {b:q}, [{from}], #64",
            "sub {lines}, {lines}, #1",
            "stp {c:q}, {d:q}, [{to}, #32]",
            "stp {a:q}, {b:q}, [{to}], #64",
            "cbnz {lines}, 2b",
            "3: tbz {len}, #5, 4f",
            "ldp {a:q}, {b:q}, [{from}], #32",
            "stp {a:q}, {b:q}, [{to}], #32",
            "4: tbz {len}, #4, 5f",
            "ldr {a:q}, [{from}], #16",
            "str {a:q}, [{to}], #16",
            "5: tbz {len}, #3, 6f",
            "ldr {a:d}, [{from}], #8",
            "str {a:d}, [{to}], #8",
            "6: tbz {len}, #2, 7f",
            "ldr {a:s}, [{from}], #4",
            "str {a:s}, [{to}], #4",
            "7: tbz {len}, #1, 8f",
            "ldr {a:h}, [{from}], #2",
            "str {a:h}, [{to}], #2",
            "8: tbz {len}, #0, 9f",
            "ldr {a:b}, [{from}]",
            "str {a:b}, [{to}]",
            "9:",
            lines = inout(reg) len / LINE => _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            len = in(reg) len,
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// As [`super::stream`] for whole cache lines, at least one: the hint says that they will not be
/// needed soon.
///
/// # Safety
///
/// As of [`super::copy`].
#[inline]
pub(super) unsafe fn stream_lines(to: *mut u8, from: *const u8, lines: usize) {
    // SAFETY: the ranges of the caller.
    unsafe {
        asm!(
            "2:",
            "ldp {c:q}, {d:q}, [{from}, #32]",
            "ldp {a:q}, {b:q}, [{from}], #64",
            "sub {lines}, {lines}, #1",
            "stnp {a:q}, {b:q}, [{to}]",
            "stnp {c:q}, {d:q}, [{to}, #32]",
            "add {to}, {to}, #64",
            "cbnz {lines}, 2b",
            lines = inout(reg) lines => _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// As [`super::fill`].
///
/// # Safety
///
/// As of [`super::fill`].
#[inline]
pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    // SAFETY: as in `copy`, of the destination alone.
    unsafe {
        asm!(
            "dup {a}.16b, {value:w}",
            "cbz {lines}, 3f",
            "2:",
            "sub {lines}, {lines}, #1",
            "stp {a:q}, {a:q}, [{to}, #32]",
            "stp {a:q}, {a:q}, [{to}], #64",
            "cbnz {lines}, 2b",
            "3: tbz {len}, #5, 4f",
            "stp {a:q}, {a:q}, [{to}], #32",
            "4: tbz {len}, #4, 5f",
            "str {a:q}, [{to}], #16",
            "5: tbz {len}, #3, 6f",
            "str {a:d}, [{to}], #8",
            "6: tbz {len}, #2, 7f",
            "str {a:s}, [{to}], #4",
            "7: tbz {len}, #1, 8f",
            "str {a:h}, [{to}], #2",
            "8: tbz {len}, #0, 9f",
            "str {a:b}, [{to}]",
            "9:",
            lines = inout(reg) len / LINE => _,
            to = inout(reg) to => _,
            len = in(reg) len,
            value = in(reg) u32::from(value),
            a = out(vreg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// Has the processor fetch the cache line of this address, which may be any.
#[inline]
pub(super) fn prefetch(address: usize) {
    // SAFETY: a hint, which neither faults nor reads for the program.
    unsafe {
        asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
}

/// Has what was streamed reach memory before anything that is stored after. Such stores are as
/// weakly ordered as all are here, so that this is what any store would need.
#[inline]
pub(super) fn drain() {
    // SAFETY: it orders stores, and has no other effect.
    unsafe { asm!("dmb ishst", options(nostack, preserves_flags)) };
}
