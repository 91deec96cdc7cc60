//! What a job that verifies knows of its places, and what it makes of the blocks that it reads.

#[cfg(test)]
mod tests;

use block::lease::BlockLease;
use scsi::medium::{Extent, Lease as _};

use super::stamp::BlockStamp;

/// The generations of places. Each place has one user at a time.
#[derive(Debug)]
pub(super) struct WriteGenerations {
    base: BlockStamp,
    block_size: usize,
    /// What must be found, from whichever run, where this run did not write yet.
    strict: bool,
    /// Takes memory only for the places that were used: pages of zeros are not there yet.
    places: Vec<u32>,
}

/// The place is in use.
const BUSY: u32 = 1 << 31;

/// The longest logical block.
const BLOCK_MAX: usize = 4096;

impl WriteGenerations {
    pub(super) fn new(seed: u64, run: u64, block_size: u32, strict: bool, places: u64) -> Self {
        Self {
            base: BlockStamp::base(seed, run),
            block_size: block_size as usize,
            strict,
            places: vec![0; places as usize],
        }
    }

    /// Takes a place, if it is free.
    pub(super) fn take(&mut self, place: u64) -> bool {
        let entry = &mut self.places[place as usize];
        let free = *entry & BUSY == 0;
        *entry |= BUSY;
        free
    }

    /// Gives a place back that was read.
    pub(super) fn release(&mut self, place: u64) {
        self.places[place as usize] &= !BUSY;
    }

    /// The same after a write; `good` is whether it is known what the place holds now.
    pub(super) fn written(&mut self, place: u64, good: bool) {
        let entry = &mut self.places[place as usize];
        *entry = if good { (*entry & !BUSY) + 1 } else { 0 };
    }

    /// Whether this run wrote there.
    pub(super) fn is_written(&self, place: u64) -> bool {
        self.places[place as usize] & !BUSY > 0
    }

    /// How many places there are.
    pub(super) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Makes the data of the next write of a place.
    pub(super) fn stamp(&self, place: u64, extent: Extent, data: &mut BlockLease) {
        let generation = u64::from(self.places[place as usize] & !BUSY) + 1;
        fill(data, self.block_size, |block| BlockStamp {
            lba: extent.lba + block,
            generation,
            ..self.base
        });
    }

    /// Looks at what was read from a place. `None` is good.
    pub(super) fn check(&self, place: u64, extent: Extent, data: &BlockLease) -> Option<String> {
        let generation = u64::from(self.places[place as usize] & !BUSY);
        let mut room = [0; BLOCK_MAX];
        let found = &mut room[..self.block_size];
        (0..extent.blocks).find_map(|block| {
            data.copy_out(block as usize * self.block_size, found);
            let lba = extent.lba + block;
            let expected = self.expected(lba, generation, found)?;
            let at = expected.difference(found)?;
            Some(self.mismatch(expected, found, at))
        })
    }

    /// What the block should be, as far as that is known.
    fn expected(&self, lba: u64, generation: u64, found: &[u8]) -> Option<BlockStamp> {
        let base = self.base;
        if generation > 0 {
            return Some(BlockStamp {
                lba,
                generation,
                ..base
            });
        }
        match BlockStamp::read(found) {
            // Of an earlier run: it has to be whole, and in its place.
            Some(stamp) if stamp.seed == base.seed => Some(BlockStamp { lba, ..stamp }),
            _ if self.strict => Some(BlockStamp {
                run: 0,
                lba,
                ..base
            }),
            _ => None,
        }
    }

    fn mismatch(&self, expected: BlockStamp, found: &[u8], at: usize) -> String {
        let mut right = [0; BLOCK_MAX];
        let right = &mut right[..self.block_size];
        expected.fill(right);
        let lba = expected.lba;
        let offset = lba * self.block_size as u64 + at as u64;
        let end = (at + SHOWN).min(found.len());
        format!(
            "wrong data at offset {offset} (block {lba}): expected {}, found {}; {}",
            hex(&right[at..end]),
            hex(&found[at..end]),
            self.diagnosis(expected, found)
        )
    }

    /// What the block seems to be.
    fn diagnosis(&self, expected: BlockStamp, found: &[u8]) -> String {
        let Some(stamp) = BlockStamp::read(found) else {
            let zeros = found.iter().all(|byte| *byte == 0);
            let what = if zeros { "zeros" } else { "something else" };
            return match expected.run {
                0 => format!("it holds {what}: write it first with --rw write --verify"),
                _ => format!("its write was lost: it holds {what}"),
            };
        };
        if stamp.seed != self.base.seed {
            format!("it was written with --randseed {}", stamp.seed)
        } else if stamp.lba != expected.lba {
            format!("it holds the data of block {}", stamp.lba)
        } else if stamp.run != expected.run {
            "it holds the data of an earlier run".to_owned()
        } else if stamp.generation != expected.generation {
            let (found, wanted) = (stamp.generation, expected.generation);
            format!("it holds write {found} of this block, not write {wanted}")
        } else {
            "part of it is damaged".to_owned()
        }
    }
}

/// Bytes that a mismatch shows.
const SHOWN: usize = 16;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stamps each block of `data`, numbered from 0.
pub(super) fn fill(data: &mut BlockLease, block_size: usize, stamp: impl Fn(u64) -> BlockStamp) {
    let mut room = [0; BLOCK_MAX];
    let block = &mut room[..block_size];
    for number in 0..data.len() / block_size {
        stamp(number as u64).fill(block);
        data.copy_in(number * block_size, block);
    }
}
