//! Allocation: holes and zeros. Everything here blocks.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::error::is_unsupported;
use crate::size::BlockSize;

/// A way to make a range read as zeros without writing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeroing {
    /// Gives the space back.
    Punch,
    /// Keeps the space.
    Range,
}

/// Gives the space of a range back; it reads as zeros afterwards.
///
/// On a block device this is what discards only where the device then reads as zeros.
pub(crate) fn punch(file: &OwnedFd, range: Range<u64>) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    allocate(file, flags, range)
}

/// Ways to make zeros that were found not to work on a backing.
///
/// A device may tell of that late: the kernel offers what the driver says until the first request
/// fails. A loop device on tmpfs, for one, cannot keep the space; once that was tried, it does not
/// give it back either.
#[derive(Debug, Default)]
pub(super) struct Unsupported(AtomicU8);

impl Unsupported {
    /// Whether this way was not found to be unsupported.
    pub(super) fn allows(&self, way: Zeroing) -> bool {
        self.0.load(Relaxed) & way.bit() == 0
    }

    /// Whether one of these ways may work.
    pub(super) fn leaves(&self, ways: &[Zeroing]) -> bool {
        ways.iter().any(|way| self.allows(*way))
    }

    /// Makes a range read as zeros by the first way that works. One that does not is not tried
    /// again.
    pub(super) fn zero(
        &self,
        file: &OwnedFd,
        range: &Range<u64>,
        ways: &[Zeroing],
    ) -> io::Result<()> {
        for way in ways.iter().filter(|way| self.allows(**way)) {
            match way.zero(file, range.clone()) {
                Err(error) if is_unsupported(&error) => self.0.fetch_or(way.bit(), Relaxed),
                result => return result,
            };
        }
        Err(Errno::OPNOTSUPP.into())
    }
}

impl Zeroing {
    fn bit(self) -> u8 {
        match self {
            Self::Punch => 1,
            Self::Range => 2,
        }
    }

    fn zero(self, file: &OwnedFd, range: Range<u64>) -> io::Result<()> {
        match self {
            Self::Punch => punch(file, range),
            Self::Range => {
                let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
                allocate(file, flags, range)
            }
        }
    }
}

fn allocate(file: &OwnedFd, flags: FallocateFlags, range: Range<u64>) -> io::Result<()> {
    let len = range.end - range.start;
    loop {
        match rustix::fs::fallocate(file, flags, range.start, len) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Whether the first block of a range has storage, and for how many blocks that holds.
pub(super) fn status(
    file: &OwnedFd,
    range: &Range<u64>,
    block_size: BlockSize,
) -> io::Result<(bool, u64)> {
    let size = u64::from(block_size.bytes());
    let blocks = (range.end - range.start) / size;
    let data = match seek(file, SeekFrom::Data(range.start))? {
        Some(data) => data,
        // The rest is a hole up to the end of the file; data that was truncated is not a hole.
        None => end(file)?.max(range.start),
    };
    let hole_blocks = (data.min(range.end) - range.start) / size;
    if hole_blocks > 0 {
        return Ok((false, hole_blocks));
    }
    // Data begins within the first block.
    let hole = seek(file, SeekFrom::Hole(data))?.unwrap_or(range.end);
    let data_blocks = hole.saturating_sub(range.start).div_ceil(size);
    Ok((true, data_blocks.clamp(1, blocks.max(1))))
}

fn end(file: &OwnedFd) -> io::Result<u64> {
    let stat = rustix::fs::fstat(file)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// `None` behind the last data.
fn seek(file: &OwnedFd, to: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, to) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Asks the kernel to read ahead.
pub(super) fn prefetch(file: &OwnedFd, range: &Range<u64>) -> io::Result<()> {
    let len = std::num::NonZeroU64::new(range.end - range.start);
    Ok(rustix::fs::fadvise(
        file,
        range.start,
        len,
        Advice::WillNeed,
    )?)
}
