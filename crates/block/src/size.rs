//! Block sizes, and how extents become ranges of bytes.

use std::ops::Range;

use scsi::medium::Extent;

use crate::error::VolumeError;

/// The block size of volumes that have none of their own.
pub(crate) const DEFAULT_BLOCK_SIZE: u32 = 512;

/// What a 512-byte block is a part of: file systems and huge disks work on 4 KiB.
const PHYSICAL_BLOCK_SIZE: u32 = 4096;

/// Bytes in a logical block: 512 or 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSize(u32);

impl BlockSize {
    pub(crate) fn new(bytes: u32) -> Result<Self, VolumeError> {
        match bytes {
            512 | 4096 => Ok(Self(bytes)),
            _ => Err(VolumeError::BlockSize { bytes }),
        }
    }

    pub(crate) fn bytes(self) -> u32 {
        self.0
    }

    /// Logical blocks in a physical block of 4 KiB, as a power of two.
    pub(crate) fn physical_exponent(self) -> u8 {
        self.exponent_of(PHYSICAL_BLOCK_SIZE)
    }

    /// Logical blocks in this many bytes, as a power of two; 0 where a block is larger.
    pub(crate) fn exponent_of(self, bytes: u32) -> u8 {
        let ratio = (bytes / self.0).max(1);
        u8::try_from(ratio.ilog2()).unwrap_or(0)
    }

    /// The whole blocks in this many bytes; at least one.
    pub(crate) fn capacity(self, bytes: u64) -> Result<u64, VolumeError> {
        match bytes / u64::from(self.0) {
            0 => Err(VolumeError::TooSmall {
                bytes,
                block_size: self.0,
            }),
            blocks => Ok(blocks),
        }
    }

    /// Where an extent lies, in bytes. It was checked against the capacity, so nothing overflows.
    pub(crate) fn range(self, extent: Extent) -> Range<u64> {
        let size = u64::from(self.0);
        extent.lba * size..extent.end() * size
    }

    /// How long an extent is, in bytes; one of a segment at most.
    pub(crate) fn len(self, extent: Extent) -> usize {
        usize::try_from(extent.blocks * u64::from(self.0)).unwrap_or(usize::MAX)
    }
}
