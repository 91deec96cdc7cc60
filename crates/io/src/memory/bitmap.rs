//! One bit for each granule of a region.

use std::io;
use std::ops::Range;

use crate::sync::{AtomicU64, Ordering::SeqCst};
use words::MappedWords;

const WORD_BITS: u64 = u64::BITS as u64;

/// Bits that several cores set and clear. The map itself takes memory only where a bit was set.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: MappedWords,
    bits: u64,
}

impl Bitmap {
    /// `bits` bits (more than 0), all clear.
    pub(super) fn new(bits: u64) -> io::Result<Self> {
        let words = MappedWords::new(bits.div_ceil(WORD_BITS))?;
        Ok(Self { words, bits })
    }

    fn words(&self) -> &[AtomicU64] {
        self.words.all()
    }

    /// Whether every bit of the range is set.
    pub(super) fn all(&self, range: Range<u64>) -> bool {
        masks(range).all(|(word, mask)| self.words()[word].load(SeqCst) & mask == mask)
    }

    /// Whether any bit of the range is set.
    pub(super) fn any(&self, range: Range<u64>) -> bool {
        masks(range).any(|(word, mask)| self.words()[word].load(SeqCst) & mask != 0)
    }

    pub(super) fn set(&self, range: Range<u64>) {
        for (word, mask) in masks(range) {
            self.words()[word].fetch_or(mask, SeqCst);
        }
    }

    pub(super) fn clear(&self, range: Range<u64>) {
        for (word, mask) in masks(range) {
            self.words()[word].fetch_and(!mask, SeqCst);
        }
    }

    /// How many bits of the range are set.
    pub(super) fn count(&self, range: Range<u64>) -> u64 {
        let set = |(word, mask): (usize, u64)| self.words()[word].load(SeqCst) & mask;
        masks(range).map(|at| u64::from(set(at).count_ones())).sum()
    }

    /// The state of the bit at `start`, and where the run of bits in that state ends: at `end`, or
    /// before it.
    pub(super) fn run(&self, start: u64, end: u64) -> (bool, u64) {
        let end = end.min(self.bits);
        let set = self.any(start..start + 1);
        let differing = |(word, mask): (usize, u64)| {
            let bits = self.words()[word].load(SeqCst);
            let differing = if set { !bits } else { bits } & mask;
            let first = u64::from(differing.trailing_zeros());
            (differing != 0).then(|| word as u64 * WORD_BITS + first)
        };
        let run_end = masks(start..end).find_map(differing);
        (set, run_end.unwrap_or(end))
    }
}

/// The words that a range of bits lies in, each with a mask of the bits.
fn masks(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let first = range.start / WORD_BITS;
    let end = range.end.div_ceil(WORD_BITS);
    let words = if range.is_empty() { 0..0 } else { first..end };
    words.map(move |word| {
        let first = word * WORD_BITS;
        let from = range.start.saturating_sub(first);
        let to = (range.end - first).min(WORD_BITS);
        let mask = (u64::MAX >> (WORD_BITS - (to - from))) << from;
        (word as usize, mask)
    })
}

#[cfg(not(loom))]
mod words {
    use std::io;

    use crate::memory::mapping::Mapping;
    use crate::sync::AtomicU64;

    /// Zeros that take memory where they are no longer zero.
    #[derive(Debug)]
    pub(super) struct MappedWords(Mapping);

    impl MappedWords {
        pub(super) fn new(count: u64) -> io::Result<Self> {
            let bytes = count.checked_mul(size_of::<AtomicU64>() as u64);
            let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
            Mapping::reserve(bytes.ok_or(io::ErrorKind::OutOfMemory)?).map(Self)
        }

        pub(super) fn all(&self) -> &[AtomicU64] {
            let words = self.0.at(0).cast::<AtomicU64>();
            let len = self.0.len() / size_of::<AtomicU64>();
            // SAFETY: mapped as long as we live, aligned, zero to begin with, and accessed in no
            // other way than as these atomics.
            unsafe { std::slice::from_raw_parts(words.as_ptr(), len) }
        }
    }
}

/// loom's atomics cannot lie in memory of ours.
#[cfg(loom)]
mod words {
    use std::io;

    use crate::sync::AtomicU64;

    #[derive(Debug)]
    pub(super) struct MappedWords(Vec<AtomicU64>);

    impl MappedWords {
        pub(super) fn new(count: u64) -> io::Result<Self> {
            Ok(Self((0..count).map(|_| AtomicU64::new(0)).collect()))
        }

        pub(super) fn all(&self) -> &[AtomicU64] {
            &self.0
        }
    }
}
