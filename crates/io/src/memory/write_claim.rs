//! Memory of a region that was lent to be written, a block at a time.
//!
//! Data comes in pieces that end anywhere in a block, and the rest may never come: the initiator
//! dies, or its write is aborted. Databases and file systems rely on a block being old or new then,
//! as they find it on a disk. So a part of a block is staged outside of the region, and stored when
//! the block is whole; what a claim has staged is dropped with it. Whole blocks go straight to
//! where they belong, which costs one test. An RDMA device stores these by itself, in its own
//! order; where it is stopped, one may be new in part.
//!
//! Clones of a claim, and of parts of it, stage in one place: over RDMA a block comes in part with
//! the command and in part by an RDMA Read, which fills a slice of the same memory.
//!
//! Each byte that has come has its bit: they may come in any order, and twice, as where a sequence
//! of Fibre Channel is sent again. To save the old bytes instead, and to store at once, was
//! considered: a READ by others would find the parts, for as long as the rest takes to come.
//!
//! A block that is whole is copied like any other data. A READ that is sent in that moment may find
//! a part of it, and two writes of one block by two cores may mix.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr::NonNull;

use super::raw;
use super::region::LocalRegion;

/// From here on what is stored in a region goes past the cache. Shorter pieces are parts of a
/// block, whose other parts follow.
const STREAM_FROM: usize = 512;

/// As many claims of one core and volume may stage parts before the next one has to allocate. They
/// keep 1 MiB at most.
const KEPT: usize = 64;

/// What a claim may leave for the next one: four blocks at least.
const KEPT_BYTES: usize = 16 << 10;

/// The number of a claim that has nothing staged.
const NONE: u32 = u32::MAX;

/// A claim on memory of a region, to be written. Its clones are the same claim; a block whose parts
/// come through several claims is not stored.
pub(super) struct WriteClaim {
    region: LocalRegion,
    /// Where in [`StagingArea`] the parts of blocks are. What has clones keeps its place.
    stage: Cell<u32>,
}

impl WriteClaim {
    pub(super) const fn new(region: LocalRegion) -> Self {
        Self {
            region,
            stage: Cell::new(NONE),
        }
    }

    /// Whether a range has whole blocks.
    pub(super) fn is_whole(&self, start: NonNull<u8>, len: usize) -> bool {
        (start.addr().get() | len) & self.region.within_block() == 0
    }

    /// The write to this range is over, however far it has come. Not inlined: buffers of other
    /// memory are dropped more often.
    #[inline(never)]
    pub(super) fn end(&self, start: NonNull<u8>, len: usize) {
        self.region.written(start, len);
    }

    /// The place for parts of blocks, for one more claim.
    fn share(&self) -> u32 {
        let mut stages = self.region.stages().0.borrow_mut();
        if self.stage.get() == NONE {
            self.stage.set(stages.take());
        }
        stages.all[self.stage.get() as usize].claims += 1;
        self.stage.get()
    }

    #[cold]
    fn forget(&self) {
        let number = self.stage.replace(NONE);
        let mut stages = self.region.stages().0.borrow_mut();
        let stage = &mut stages.all[number as usize];
        stage.claims -= 1;
        if stage.claims == 0 {
            stages.give_back(number);
        }
    }

    /// Stores bytes, or stages them where they are a part of a block.
    ///
    /// # Safety
    ///
    /// As of [`raw::copy`]; `to` lies in what this claim covers.
    #[inline]
    pub(super) unsafe fn store(&self, to: *mut u8, from: *const u8, len: usize) {
        let within = self.region.within_block();
        // SAFETY: as ours.
        unsafe {
            if (to.addr() | len) & within == 0 {
                place(to, from, len);
            } else {
                self.store_parts(to, from, len, within);
            }
        }
    }

    /// The same, for what begins or ends within a block.
    ///
    /// # Safety
    ///
    /// As of [`Self::store`].
    #[inline(never)]
    unsafe fn store_parts(&self, to: *mut u8, from: *const u8, len: usize, within: usize) {
        let mut at = 0;
        while at < len {
            // SAFETY: `at` is less than `len`.
            let (to, from) = unsafe { (to.add(at), from.add(at)) };
            let (skipped, left) = (to.addr() & within, len - at);
            let whole = left & !within;
            // SAFETY: as ours, for a part of it.
            at += unsafe {
                if skipped == 0 && whole > 0 {
                    place(to, from, whole);
                    whole
                } else {
                    let part = left.min(within + 1 - skipped);
                    self.stage(to.wrapping_sub(skipped), skipped..skipped + part, from);
                    part
                }
            };
        }
    }

    /// Keeps the bytes `part` of the block that begins at `block`, and stores the block if that
    /// was the last part.
    ///
    /// # Safety
    ///
    /// As of [`Self::store`], for this part of the block.
    unsafe fn stage(&self, block: *mut u8, part: Range<usize>, from: *const u8) {
        let len = self.region.within_block() + 1;
        let mut stages = self.region.stages().0.borrow_mut();
        if self.stage.get() == NONE {
            self.stage.set(stages.take());
        }
        let stage = &mut stages.all[self.stage.get() as usize];
        let index = stage.find_or_add(block, len);
        let bytes = &mut stage.bytes[index * len..][..len];
        let into = &mut bytes[part.clone()];
        // SAFETY: `from` is the caller's for this length, which `into` has.
        unsafe { raw::copy(into.as_mut_ptr(), from, into.len()) };
        if !note(&mut stage.come[index * words(len)..][..words(len)], part) {
            return;
        }
        // SAFETY: every byte of the block was stored through this claim or clones of it, which so
        // cover it.
        unsafe { place(block, bytes.as_ptr(), len) };
        stage.remove(index, len);
        if stage.blocks.is_empty() && stage.claims == 1 {
            stages.give_back(self.stage.replace(NONE));
        }
    }
}

impl Clone for WriteClaim {
    fn clone(&self) -> Self {
        Self {
            region: self.region.clone(),
            stage: Cell::new(self.share()),
        }
    }
}

impl Drop for WriteClaim {
    fn drop(&mut self) {
        if self.stage.get() != NONE {
            self.forget();
        }
    }
}

/// Copies to memory of a region.
///
/// # Safety
///
/// As of [`raw::copy`].
#[inline]
unsafe fn place(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as ours.
    unsafe {
        if len >= STREAM_FROM {
            raw::stream(to, from, len);
        } else {
            raw::copy(to, from, len);
        }
    }
}

/// What the claims of one core have staged, and memory for the next ones.
#[derive(Debug, Default)]
pub(super) struct StagingArea(RefCell<ClaimTable>);

#[derive(Debug, Default)]
struct ClaimTable {
    all: Vec<PartialBlocks>,
    /// Those that no claim has.
    free: Vec<u32>,
}

impl ClaimTable {
    /// A place for one claim.
    fn take(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(PartialBlocks::default());
            self.all.len() as u32 - 1
        });
        self.all[number as usize].claims = 1;
        number
    }

    fn give_back(&mut self, number: u32) {
        let stage = &mut self.all[number as usize];
        stage.blocks.clear();
        if number as usize >= KEPT || stage.bytes.len() > KEPT_BYTES {
            *stage = PartialBlocks::default();
        }
        self.free.push(number);
    }
}

/// Blocks of which a part has come.
#[derive(Debug, Default)]
struct PartialBlocks {
    /// How many claims stage here: clones of one another.
    claims: u32,
    /// Where they belong.
    blocks: Vec<*mut u8>,
    /// A bit for each byte that has come; behind those of the last block what was left there.
    come: Vec<u64>,
    /// Likewise.
    bytes: Vec<u8>,
}

impl PartialBlocks {
    fn find_or_add(&mut self, block: *mut u8, len: usize) -> usize {
        if let Some(index) = self.blocks.iter().position(|known| *known == block) {
            return index;
        }
        let index = self.blocks.len();
        self.blocks.push(block);
        let (bits, end) = (index * words(len), (index + 1) * len);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.come.resize(bits + words(len), 0);
        }
        self.come[bits..][..words(len)].fill(0);
        index
    }

    /// Forgets a block; the last one takes its index.
    fn remove(&mut self, index: usize, len: usize) {
        self.blocks.swap_remove(index);
        let last = self.blocks.len();
        if index < last {
            let (from, to) = (last * len, index * len);
            self.bytes.copy_within(from..from + len, to);
            let (from, to) = (last * words(len), index * words(len));
            self.come.copy_within(from..from + words(len), to);
        }
    }
}

/// Sets the bits of a part of a block, which is not empty; whether all of it has come.
fn note(come: &mut [u64], part: Range<usize>) -> bool {
    let (first, last) = (part.start / 64, (part.end - 1) / 64);
    let (from, to) = (
        u64::MAX << (part.start % 64),
        u64::MAX >> (63 - (part.end - 1) % 64),
    );
    if first == last {
        come[first] |= from & to;
    } else {
        come[first] |= from;
        come[first + 1..last].fill(u64::MAX);
        come[last] |= to;
    }
    come.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
}

/// Words of bits for a block.
const fn words(len: usize) -> usize {
    len / 64
}
