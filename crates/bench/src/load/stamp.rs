//! Blocks that say what they are: every byte follows from seed, run, block number and generation.
//!
//! ```text
//! byte 0    8      16    24    32           40
//!       mark | seed | run | LBA | generation | words drawn from all of these
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

const MARK: u64 = u64::from_be_bytes(*b"lunarblk");

/// What a block says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockStamp {
    pub(super) seed: u64,
    /// Tells measurements apart: what an earlier one left is not taken for this one's.
    pub(super) run: u64,
    pub(super) lba: u64,
    /// How often the block was written in this run.
    pub(super) generation: u64,
}

impl BlockStamp {
    /// The stamps of a measurement: those of blocks differ from it in the block and its generation.
    pub(super) const fn base(seed: u64, run: u64) -> Self {
        Self {
            seed,
            run,
            lba: 0,
            generation: 0,
        }
    }
}

/// A number that no earlier run had.
pub(crate) fn new_run() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_micros() as u64
}

impl BlockStamp {
    /// Writes the whole block.
    pub(super) fn fill(self, block: &mut [u8]) {
        for (words, word) in block.chunks_exact_mut(8).zip(self.words()) {
            words.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// What the beginning of a block says, if it is one of ours.
    pub(super) fn read(block: &[u8]) -> Option<Self> {
        let mut words = block.chunks_exact(8).map(word);
        (words.next()? == MARK).then_some(())?;
        Some(Self {
            seed: words.next()?,
            run: words.next()?,
            lba: words.next()?,
            generation: words.next()?,
        })
    }

    /// The first byte that is not as it should be.
    pub(super) fn difference(self, block: &[u8]) -> Option<usize> {
        let pairs = block.chunks_exact(8).zip(self.words());
        let mut wrong = pairs.enumerate().filter_map(|(at, (found, expected))| {
            let differs = word(found) ^ expected;
            (differs != 0).then(|| at * 8 + differs.leading_zeros() as usize / 8)
        });
        wrong.next()
    }

    fn words(self) -> impl Iterator<Item = u64> {
        let Self {
            seed,
            run,
            lba,
            generation,
        } = self;
        let key = mix(seed ^ mix(run ^ mix(lba ^ mix(generation))));
        let body = (0..).map(move |at: u64| mix(key ^ at));
        [MARK, seed, run, lba, generation].into_iter().chain(body)
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The finalizer of splitmix64: neighbours become strangers.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
