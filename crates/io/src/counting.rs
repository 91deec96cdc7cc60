//! A global allocator that counts, for tests of the rule that the I/O path does not use the heap.
//! Only `io` may say `unsafe`, so it is here; nothing but tests installs it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
#[derive(Debug)]
pub struct CountingAllocator;

/// How often this thread has allocated memory, or made an allocation longer.
#[must_use]
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}

/// Bytes that this thread has allocated, without those that it has freed.
#[must_use]
pub fn held() -> isize {
    HELD.get()
}

fn count(bytes: usize) {
    // A thread that is being torn down counts no more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    hold(bytes as isize);
}

fn hold(bytes: isize) {
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every request is passed on unchanged to the system's allocator, which keeps the contract;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        hold(-(layout.size() as isize));
        count(size);
        // SAFETY: the caller keeps the contract of `realloc`; the pointer came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
