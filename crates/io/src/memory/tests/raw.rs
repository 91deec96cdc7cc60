//! Copies and fills, of this processor and of any: every alignment, every short length, and no byte
//! outside of what was asked for is written, or read.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

use super::super::raw::{self, portable};

type CopyFn = unsafe fn(*mut u8, *const u8, usize);
type FillFn = unsafe fn(*mut u8, u8, usize);

const COPIES: [(&str, CopyFn); 3] = [
    ("copy", raw::copy),
    ("stream", raw::stream),
    ("portable", portable::copy),
];
const FILLS: [(&str, FillFn); 2] = [("fill", raw::fill), ("portable", portable::fill)];

/// Lengths around which code takes another way, and of blocks and pages.
const LONG: [usize; 15] = [
    255, 256, 257, 511, 512, 1000, 1023, 1024, 1025, 2112, 4095, 4096, 4097, 8192, 16384,
];

/// Bytes that are watched before and behind a destination.
const AROUND: usize = 80;

/// Bytes of a cache line.
const LINE: usize = 64;

/// A copy between two places of memory of its own, whose neighbours are watched.
fn check_copy((name, copy): (&str, CopyFn), to: usize, from: usize, len: usize) {
    let source: Vec<u8> = (0..from + len).map(|at| (at % 251) as u8).collect();
    let (mut copied, start) = watched(to, len);
    // SAFETY: both ranges are inside their vectors.
    unsafe { copy(copied[start..].as_mut_ptr(), source[from..].as_ptr(), len) };
    let here = format!("{name}: {len} bytes from {from} to {to}");
    assert_eq!(copied[start..start + len], source[from..], "{here}");
    check_around(&copied, start, len, &here);
}

fn check_fill((name, fill): (&str, FillFn), to: usize, len: usize) {
    let (mut filled, start) = watched(to, len);
    // SAFETY: the range is inside the vector.
    unsafe { fill(filled[start..].as_mut_ptr(), 3, len) };
    let here = format!("fill {name}: {len} bytes at {to}");
    let part = &filled[start..start + len];
    assert!(part.iter().all(|byte| *byte == 3), "{here}");
    check_around(&filled, start, len, &here);
}

/// Memory for `len` bytes `to` bytes behind the start of a cache line, and where that is.
fn watched(to: usize, len: usize) -> (Vec<u8>, usize) {
    let bytes = vec![0xff; AROUND + LINE + to + len + AROUND];
    let start = AROUND + bytes[AROUND..].as_ptr().align_offset(LINE) + to;
    (bytes, start)
}

fn check_around(bytes: &[u8], start: usize, len: usize, here: &str) {
    let mut around = bytes[..start].iter().chain(&bytes[start + len..]);
    assert!(around.all(|byte| *byte == 0xff), "{here}");
}

#[test]
fn every_short_length_is_copied_at_every_alignment() {
    for copy in COPIES {
        for (to, from) in (0..17 * 17).map(|at| (at / 17, at % 17)) {
            (0..=200).for_each(|len| check_copy(copy, to, from, len));
        }
    }
}

#[test]
fn long_ranges_are_copied_at_every_alignment() {
    for copy in COPIES {
        for (to, from) in (0..17 * 17).map(|at| (at / 17, at % 17)) {
            LONG.iter().for_each(|len| check_copy(copy, to, from, *len));
        }
    }
}

#[test]
fn ranges_are_copied_from_and_to_every_place_in_a_cache_line() {
    for copy in COPIES {
        for place in 0..LINE {
            for len in [64, 100, 128, 200, 512] {
                check_copy(copy, place, 0, len);
                check_copy(copy, 0, place, len);
            }
        }
    }
}

#[test]
fn every_length_is_filled_at_every_alignment() {
    for fill in FILLS {
        for to in 0..LINE {
            (0..=200).for_each(|len| check_fill(fill, to, len));
            LONG.iter().for_each(|len| check_fill(fill, to, *len));
        }
    }
}

/// Some bytes of memory between two pages that nothing may access: who reads or writes a byte
/// before or behind them ends the test by a signal.
struct Fenced {
    start: *mut u8,
    page: usize,
}

impl Fenced {
    fn new() -> Self {
        let page = rustix::param::page_size();
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: new memory, of which all but the middle page is then closed.
        let start = unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), 3 * page, rights, flags).unwrap();
            mprotect(start, page, MprotectFlags::empty()).unwrap();
            mprotect(start.byte_add(2 * page), page, MprotectFlags::empty()).unwrap();
            start.cast()
        };
        Self { start, page }
    }

    /// The first bytes of the page, or the last ones.
    fn bytes(&self, len: usize, at_the_end: bool) -> *mut u8 {
        let offset = if at_the_end { self.page - len } else { 0 };
        // SAFETY: inside the mapping.
        unsafe { self.start.add(self.page + offset) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which no pointer is used any more.
        unsafe { rustix::mm::munmap(self.start.cast(), 3 * self.page).unwrap() };
    }
}

#[test]
fn no_byte_outside_is_accessed() {
    let (to, from) = (Fenced::new(), Fenced::new());
    let ends = [(false, false), (false, true), (true, false), (true, true)];
    for (len, (to_end, from_end)) in (0..=200)
        .chain([512, 1025, 4090, 4096])
        .flat_map(|len| ends.map(|ends| (len, ends)))
    {
        let (to, from) = (to.bytes(len, to_end), from.bytes(len, from_end));
        for (_, copy) in COPIES {
            // SAFETY: both ranges are mapped.
            unsafe { copy(to, from, len) };
        }
        for (_, fill) in FILLS {
            // SAFETY: the range is mapped.
            unsafe { fill(to, 5, len) };
        }
    }
}
