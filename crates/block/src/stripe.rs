//! `stripe:64k(A,B,…)`: RAID-0.
//!
//! Chunk 0 lies on the first volume, chunk 1 on the second, and so on, round and round. Each
//! volume gives as many whole chunks as the shortest has.

use std::sync::Arc;

use scsi::medium::Extent;

use crate::error::VolumeError;
use crate::parts::{
    Layout, NamedPart, PartOffset, PartsVolume, common_block_size, least_common_multiple,
};

/// A stripe over `parts`, of which there are two or more, in chunks of `chunk` bytes.
///
/// # Errors
///
/// When block sizes differ, `chunk` is not a multiple of them, a volume is shorter than a chunk, or
/// all of them together are too long.
pub fn open(chunk: u64, parts: Vec<NamedPart>) -> Result<PartsVolume, VolumeError> {
    let block_size = common_block_size(&parts)?;
    if chunk == 0 || !chunk.is_multiple_of(block_size.into()) {
        return Err(VolumeError::Chunk { chunk, block_size });
    }
    let layout = Chunks {
        chunk: chunk / u64::from(block_size),
        parts: parts.len() as u64,
    };
    let short = |part: &&NamedPart| part.volume.traits().blocks < layout.chunk;
    if let Some(part) = parts.iter().find(short) {
        let name = part.name.clone();
        return Err(VolumeError::PartTooShort { name, chunk });
    }
    PartsVolume::new(parts, Arc::new(layout))
}

/// Chunks that go round.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// In blocks; more than 0.
    pub(crate) chunk: u64,
    /// More than 0.
    pub(crate) parts: u64,
}

impl Chunks {
    /// How many of the first `lba` blocks lie on a part.
    fn before(&self, part: u64, lba: u64) -> u64 {
        let (chunk, within) = (lba / self.chunk, lba % self.chunk);
        let (rounds, last) = (chunk / self.parts, chunk % self.parts);
        rounds * self.chunk
            + match part.cmp(&last) {
                std::cmp::Ordering::Less => self.chunk,
                std::cmp::Ordering::Equal => within,
                std::cmp::Ordering::Greater => 0,
            }
    }
}

impl Layout for Chunks {
    fn place(&self, lba: u64) -> PartOffset {
        let (chunk, within) = (lba / self.chunk, lba % self.chunk);
        PartOffset {
            part: (chunk % self.parts) as usize,
            lba: chunk / self.parts * self.chunk + within,
            run: self.chunk - within,
        }
    }

    fn on(&self, part: usize, extent: Extent) -> Extent {
        let start = self.before(part as u64, extent.lba);
        let end = self.before(part as u64, extent.end());
        Extent::new(start, end - start)
    }

    fn back(&self, part: usize, lba: u64) -> u64 {
        let (round, within) = (lba / self.chunk, lba % self.chunk);
        (round * self.parts + part as u64) * self.chunk + within
    }

    fn boundary(&self) -> u64 {
        1 << self.chunk.trailing_zeros()
    }

    /// The part's own where that does not cross chunks, else whole rounds.
    fn granule(&self, of_part: u64) -> u64 {
        if self.chunk.is_multiple_of(of_part) {
            of_part
        } else {
            least_common_multiple(self.chunk, of_part).saturating_mul(self.parts)
        }
    }

    fn capacity(&self, parts: &mut dyn Iterator<Item = u64>) -> Option<u64> {
        let shortest = parts.min()?;
        (shortest / self.chunk * self.chunk).checked_mul(self.parts)
    }

    fn name(&self, block_size: u32) -> String {
        format!("stripe by {}", self.chunk * u64::from(block_size))
    }
}
