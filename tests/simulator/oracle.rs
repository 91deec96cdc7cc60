//! What disks may hold and reads may return, by what was asked for and what was answered.
//!
//! Every write has a stamp of its own, which is in each 16 bytes of each of its blocks together
//! with the LBA, so that every block tells which write it is of, and whether it is the right block
//! and all of it. A read between two instants may return a write when that had begun before the
//! second, unless another one was acknowledged before the first that had begun after the end of
//! the former.
//!
//! Fencing is about the medium: a write that is known to be over may not appear there any more. It
//! is over when it was answered in whatever way, aborted, or its nexus was ended by something that
//! was answered. Whoever asks the medium after each step sees every write that comes too late.

use scsi::medium::Extent;
use sim::{Disk, DiskKind};

#[cfg(test)]
mod tests;

/// An instant: the number of things that were noted before.
pub(crate) type Tick = u64;

/// A write, by its number; 0 is what disks hold at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(pub u32);

/// What a write puts into its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// To each its own: the stamp and the LBA.
    Each,
    /// To all the same (WRITE SAME): the stamp and the first LBA.
    Same,
    /// Zeros (UNMAP).
    Zeros,
}

/// What the oracle has seen that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub String);

/// The book of all writes.
#[derive(Debug)]
pub(crate) struct Oracle {
    tick: Tick,
    writes: Vec<Write>,
    units: Vec<Unit>,
}

#[derive(Debug)]
struct Unit {
    block_size: usize,
    /// A block that is being written is whatever has come.
    mixes: bool,
    /// The writes of each block, in the order in which they began.
    blocks: Vec<Vec<Stamp>>,
}

#[derive(Clone, Debug)]
struct Write {
    unit: usize,
    extent: Extent,
    pattern: Pattern,
    begun: Tick,
    /// When it was acknowledged.
    good: Option<Tick>,
    /// When it was known to be over.
    over: Option<Tick>,
    /// It was answered in a way that says that nothing of it was done.
    refused: bool,
    /// Something of it was seen on the medium.
    landed: bool,
}

/// A block: its unit and its LBA.
type Place = (usize, u64);

impl Oracle {
    /// A book for disks, which hold zeros.
    #[must_use]
    pub(crate) fn new(disks: &[Disk]) -> Self {
        let units = disks.iter().map(|disk| {
            let traits = disk.traits();
            let block_size = traits.block_size as usize;
            (block_size, traits.blocks, disk.kind() == DiskKind::Memory)
        });
        Self::of(units)
    }

    /// A book for units of zeros: bytes in a block, blocks, and whether a block that is being
    /// written is whatever has come.
    #[must_use]
    pub(crate) fn of(units: impl Iterator<Item = (usize, u64, bool)>) -> Self {
        let unit = |(block_size, blocks, mixes)| Unit {
            block_size,
            mixes,
            blocks: vec![vec![Stamp(0)]; blocks as usize],
        };
        let zeros = Write {
            unit: 0,
            extent: Extent::new(0, u64::MAX),
            pattern: Pattern::Zeros,
            begun: 0,
            good: Some(0),
            over: Some(0),
            refused: false,
            landed: true,
        };
        Self {
            tick: 1,
            writes: vec![zeros],
            units: units.map(unit).collect(),
        }
    }

    /// The instant that it is; the next one is later.
    pub(crate) fn now(&mut self) -> Tick {
        self.tick += 1;
        self.tick
    }

    /// A write begins.
    pub(crate) fn begin(&mut self, unit: usize, extent: Extent, pattern: Pattern) -> Stamp {
        let stamp = Stamp(self.writes.len() as u32);
        let begun = self.now();
        self.writes.push(Write {
            unit,
            extent,
            pattern,
            begun,
            good: None,
            over: None,
            refused: false,
            landed: false,
        });
        for lba in extent.lba..extent.end() {
            self.units[unit].blocks[lba as usize].push(stamp);
        }
        stamp
    }

    /// The write was acknowledged.
    ///
    /// # Errors
    /// When it was fenced before it began, so that it could not be.
    pub(crate) fn good(&mut self, stamp: Stamp) -> Result<(), Wrong> {
        let now = self.now();
        let write = &mut self.writes[stamp.0 as usize];
        if write.refused {
            return Err(Wrong(format!("{stamp:?} was acknowledged behind a fence")));
        }
        write.good = Some(now);
        write.over.get_or_insert(now);
        Ok(())
    }

    /// Nothing of the write appears any more that is not there now.
    pub(crate) fn over(&mut self, stamp: Stamp) {
        let now = self.now();
        self.writes[stamp.0 as usize].over.get_or_insert(now);
    }

    /// The write was answered in a way that says that nothing was done, or is begun behind a fence.
    ///
    /// # Errors
    /// When something of it was done.
    pub(crate) fn refused(&mut self, stamp: Stamp) -> Result<(), Wrong> {
        self.over(stamp);
        let write = &mut self.writes[stamp.0 as usize];
        write.refused = true;
        if write.landed {
            return Err(Wrong(format!(
                "{stamp:?} was refused, yet is on the medium"
            )));
        }
        Ok(())
    }

    /// What the write puts into a block.
    #[must_use]
    pub(crate) fn content(&self, stamp: Stamp, lba: u64) -> Vec<u8> {
        let write = &self.writes[stamp.0 as usize];
        let size = self.units[write.unit].block_size;
        let lba = match write.pattern {
            Pattern::Each => lba,
            Pattern::Same => write.extent.lba,
            Pattern::Zeros => return vec![0; size],
        };
        content(stamp, lba, size)
    }

    /// The Data-Out of the write.
    #[must_use]
    pub(crate) fn data(&self, stamp: Stamp) -> Vec<u8> {
        let write = &self.writes[stamp.0 as usize];
        let lbas = match write.pattern {
            Pattern::Each => write.extent.lba..write.extent.end(),
            Pattern::Same => write.extent.lba..write.extent.lba + 1,
            Pattern::Zeros => 0..0,
        };
        let blocks: Vec<_> = lbas.map(|lba| self.content(stamp, lba)).collect();
        blocks.concat()
    }

    /// A read that began at `begun` has ended now with this data.
    ///
    /// # Errors
    /// When a block is not what it can have been in between.
    pub(crate) fn read(
        &mut self,
        begun: Tick,
        unit: usize,
        extent: Extent,
        data: &[u8],
    ) -> Result<(), Wrong> {
        let ended = self.now();
        let size = self.units[unit].block_size;
        if data.len() != extent.blocks as usize * size {
            let len = data.len();
            return Err(Wrong(format!("{len} bytes read of {extent:?}")));
        }
        for (lba, block) in (extent.lba..).zip(data.chunks(size)) {
            self.may_be((begun, ended), (unit, lba), block)?;
        }
        Ok(())
    }

    /// What is on the medium now, while nothing is under way, is what a read could return.
    ///
    /// # Errors
    /// As for a read.
    pub(crate) fn holds(&mut self, unit: usize, lba: u64, block: &[u8]) -> Result<(), Wrong> {
        let now = self.now();
        self.may_be((now, now), (unit, lba), block)
    }

    /// The writes of a block, in the order in which they began.
    fn writes_of(&self, (unit, lba): Place) -> impl Iterator<Item = (Stamp, &Write)> {
        let stamps = self.units[unit].blocks[lba as usize].iter();
        stamps.map(|stamp| (*stamp, &self.writes[stamp.0 as usize]))
    }

    fn may_be(&self, between: (Tick, Tick), place: Place, block: &[u8]) -> Result<(), Wrong> {
        let possible = self.writes_of(place);
        let possible = possible.filter(|(_, write)| self.is_possible(write, between, place));
        let possible: Vec<_> = possible.collect();
        if self.is_of(&possible, place, None, block) {
            return Ok(());
        }
        let found = self.name(block);
        let possible: Vec<_> = possible.into_iter().map(|(_, write)| write).collect();
        let ((begun, ended), (unit, lba)) = (between, place);
        Err(Wrong(format!(
            "unit {unit}, LBA {lba} between {begun} and {ended}: {found}; it can be {possible:?}"
        )))
    }

    /// Whether a read may return the write, though others came after it.
    fn is_possible(&self, write: &Write, (begun, ended): (Tick, Tick), place: Place) -> bool {
        if write.begun > ended || write.refused {
            return false;
        }
        let Some(over) = write.over else { return true };
        let hides = |other: &Write| other.begun > over && other.good.is_some_and(|at| at < begun);
        !self.writes_of(place).any(|(_, other)| hides(other))
    }

    /// Whether a block is of one of the writes, or, where there can be one, a mixture of them and
    /// of what was there before.
    fn is_of(
        &self,
        writes: &[(Stamp, &Write)],
        (unit, lba): Place,
        before: Option<&[u8]>,
        block: &[u8],
    ) -> bool {
        let contents = writes.iter().map(|(stamp, _)| match stamp {
            Stamp(0) => vec![0; block.len()],
            _ => self.content(*stamp, lba),
        });
        let contents: Vec<_> = contents.collect();
        let is_old = |at: usize| before.is_some_and(|before| before[at] == block[at]);
        let is_new = |at: usize| contents.iter().any(|content| content[at] == block[at]);
        let is_mixture = || (0..block.len()).all(|at| is_old(at) || is_new(at));
        contents.iter().any(|content| content == block) || self.units[unit].mixes && is_mixture()
    }

    /// The medium has changed: a block was `before` and is `block` now.
    ///
    /// # Errors
    /// When it is of no write that may still appear.
    pub(crate) fn landed(
        &mut self,
        unit: usize,
        lba: u64,
        before: &[u8],
        block: &[u8],
    ) -> Result<(), Wrong> {
        if let Some(stamp) = self.stamp(block) {
            return self.stamp_landed(stamp, (unit, lba), block);
        }
        let open = self.writes_of((unit, lba));
        let open: Vec<_> = open.filter(|(_, write)| write.over.is_none()).collect();
        if self.is_of(&open, (unit, lba), Some(before), block) {
            return Ok(());
        }
        let found = self.name(block);
        Err(Wrong(format!(
            "unit {unit}, LBA {lba}: {found} has appeared, and nothing that is under way is so"
        )))
    }

    fn stamp_landed(
        &mut self,
        stamp: Stamp,
        (unit, lba): Place,
        block: &[u8],
    ) -> Result<(), Wrong> {
        let write = &self.writes[stamp.0 as usize];
        let inside = (write.extent.lba..write.extent.end()).contains(&lba);
        let wrong = if write.unit != unit || !inside || self.content(stamp, lba) != block {
            "in the wrong place"
        } else if write.refused {
            "though it was refused"
        } else if write.over.is_some() {
            "after it was over"
        } else {
            self.writes[stamp.0 as usize].landed = true;
            return Ok(());
        };
        Err(Wrong(format!(
            "unit {unit}, LBA {lba}: {stamp:?} has appeared {wrong}: {write:?}"
        )))
    }

    /// The write that a whole block is of.
    fn stamp(&self, block: &[u8]) -> Option<Stamp> {
        let stamp = Stamp(u32::from_be_bytes(*block.first_chunk()?));
        let lba = u32::from_be_bytes(*block[4..].first_chunk()?);
        let known = stamp.0 > 0 && (stamp.0 as usize) < self.writes.len();
        (known && content(stamp, lba.into(), block.len()) == block).then_some(stamp)
    }

    fn name(&self, block: &[u8]) -> String {
        match self.stamp(block) {
            Some(stamp) => format!("{stamp:?}, {:?}", self.writes[stamp.0 as usize]),
            None if block.iter().all(|byte| *byte == 0) => "zeros".to_owned(),
            None => format!("{:02x?}…", &block[..32]),
        }
    }
}

/// Sixteen bytes: stamp, LBA, where in the block, and a sum of these.
fn content(stamp: Stamp, lba: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (at, part) in (0..).zip(bytes.chunks_exact_mut(16)) {
        let words = [stamp.0, lba as u32, at];
        let sum = words.iter().fold(0x9e37_79b9_u32, |sum, word| {
            (sum ^ word).wrapping_mul(0x85eb_ca6b).rotate_left(13)
        });
        let [stamp, lba, at] = words.map(u128::from);
        let value = stamp << 96 | lba << 64 | at << 32 | u128::from(sum);
        part.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}
