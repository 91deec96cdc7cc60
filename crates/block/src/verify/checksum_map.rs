//! What was written, and what is in flight.
//!
//! | what happens to a block | what follows |
//! |---|---|
//! | a write begins | it is unknown; another write in flight is disturbed, as are reads |
//! | a write ends | it is known, if this write went well and was not disturbed; reads are disturbed |
//! | a read begins | it is counted |
//! | a read ends | it is judged, if it is known and no read was disturbed since the first began |
//!
//! A read of a piece that is not there yet cannot be counted, so it is not judged there: a write
//! may begin and end before it does. Pieces never go again.

use std::collections::HashMap;

use scsi::medium::Extent;

/// The sums of all blocks that were written.
#[derive(Debug, Default)]
pub(super) struct ChecksumMap {
    pieces: HashMap<u64, Box<ChecksumChunk>>,
    /// Long changes in progress.
    long: Vec<Extent>,
    /// There was no room for a piece.
    full: bool,
}

/// The pieces that were there when a read began, of the few that it touches.
#[derive(Debug, Default)]
pub(super) struct ReadSnapshot(u64);

/// Consecutive blocks.
#[derive(Debug)]
struct ChecksumChunk([Block; PIECE as usize]);

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    sum: u32,
    reads: u32,
    writes: u32,
    /// The sum is that of its content.
    known: bool,
    /// Writes that are in flight have met.
    met: bool,
    /// Reads that are in flight have met a write.
    disturbed: bool,
}

impl Block {
    fn begin_write(&mut self, sum: u32, meets: bool) {
        self.met |= meets || self.writes > 0;
        self.disturbed |= self.reads > 0;
        self.writes += 1;
        self.known = false;
        self.sum = sum;
    }

    fn end_write(&mut self, good: bool) {
        self.disturbed |= self.reads > 0;
        self.writes = self.writes.saturating_sub(1);
        if self.writes == 0 {
            self.known = good && !self.met;
            self.met = false;
        }
    }

    fn end_read(&mut self) -> Option<u32> {
        let judged = self.known && !self.disturbed;
        self.reads = self.reads.saturating_sub(1);
        self.disturbed &= self.reads > 0;
        judged.then_some(self.sum)
    }

    /// A long change begins or ends.
    fn forget(&mut self) {
        self.known = false;
        self.met |= self.writes > 0;
        self.disturbed |= self.reads > 0;
    }
}

impl ChecksumMap {
    /// A write of blocks with these sums begins. Returns whether there was room for all of them, or
    /// it had been told before that there was not.
    pub(super) fn begin_write(&mut self, extent: Extent, sums: &[u32]) -> bool {
        let was_full = self.full;
        let mut sums = sums.iter();
        for (number, within) in pieces(extent) {
            let sums = sums.by_ref().take(within.len());
            if !self.pieces.contains_key(&number) && self.pieces.len() >= PIECES {
                self.full = true;
                sums.for_each(drop);
                continue;
            }
            let piece = self.pieces.entry(number).or_insert_with(ChecksumChunk::new);
            let first = number * PIECE + within.start as u64;
            for ((block, sum), lba) in piece.0[within].iter_mut().zip(sums).zip(first..) {
                let long = &self.long;
                let meets = long.iter().any(|long| long.overlaps(Extent::new(lba, 1)));
                block.begin_write(*sum, meets);
            }
        }
        self.full == was_full
    }

    pub(super) fn end_write(&mut self, extent: Extent, good: bool) {
        for (number, within) in pieces(extent) {
            if let Some(piece) = self.pieces.get_mut(&number) {
                let blocks = piece.0[within].iter_mut();
                blocks.for_each(|block| block.end_write(good));
            }
        }
    }

    pub(super) fn begin_read(&mut self, extent: Extent) -> ReadSnapshot {
        let mut seen = ReadSnapshot::default();
        for (at, (number, within)) in pieces(extent).enumerate().take(SEEN) {
            if let Some(piece) = self.pieces.get_mut(&number) {
                seen.0 |= 1 << at;
                let blocks = piece.0[within].iter_mut();
                blocks.for_each(|block| block.reads += 1);
            }
        }
        seen
    }

    /// A read ends; what it should have found is put into `expected`, block by block.
    pub(super) fn end_read(
        &mut self,
        extent: Extent,
        seen: &ReadSnapshot,
        expected: &mut Vec<Option<u32>>,
    ) {
        expected.clear();
        for (at, (number, within)) in pieces(extent).enumerate().take(SEEN) {
            match self.pieces.get_mut(&number) {
                Some(piece) if seen.0 & 1 << at != 0 => {
                    expected.extend(piece.0[within].iter_mut().map(Block::end_read));
                }
                _ => expected.extend(within.map(|_| None)),
            }
        }
    }

    /// A change of many blocks begins: what it covers is unknown from now on.
    pub(super) fn begin_long(&mut self, extent: Extent) {
        self.long.push(extent);
        self.forget(extent);
    }

    pub(super) fn end_long(&mut self, extent: Extent) {
        if let Some(at) = self.long.iter().position(|long| *long == extent) {
            self.long.swap_remove(at);
        }
        self.forget(extent);
    }

    /// Looks at the pieces that there are, which may be far fewer than the extent covers.
    fn forget(&mut self, extent: Extent) {
        for (number, piece) in &mut self.pieces {
            let start = number * PIECE;
            if !extent.overlaps(Extent::new(start, PIECE)) {
                continue;
            }
            for (block, lba) in piece.0.iter_mut().zip(start..) {
                if extent.overlaps(Extent::new(lba, 1)) {
                    block.forget();
                }
            }
        }
    }
}

impl ChecksumChunk {
    fn new() -> Box<Self> {
        Box::new(Self([Block::default(); PIECE as usize]))
    }
}

/// The pieces that an extent lies on, and where in them.
fn pieces(extent: Extent) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let numbers = extent.lba / PIECE..extent.end().div_ceil(PIECE);
    numbers.map(move |number| {
        let start = number * PIECE;
        let from = extent.lba.max(start) - start;
        let to = extent.end().min(start + PIECE) - start;
        (number, from as usize..to as usize)
    })
}

/// Blocks in a piece: a segment of 512-byte blocks.
const PIECE: u64 = 512;

/// How many pieces there may be: 1 GiB.
const PIECES: usize = (1 << 30) / size_of::<ChecksumChunk>();

/// How many pieces of a read are looked at. A read of a segment lies on two.
const SEEN: usize = 64;
