//! A disk in memory that knows its holes, and can lose what was not flushed.

use scsi::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning,
};

use crate::pair::VolumeShape;
use fastrand::Rng;

/// What is mapped or not as one; an UNMAP leaves alone what it does not cover whole.
pub(super) const GRANULE: usize = 16 << 10;

#[derive(Clone)]
pub(super) struct Disk {
    pub(super) shape: VolumeShape,
    pub(super) bytes: Vec<u8>,
    pub(super) mapped: Vec<bool>,
    /// It can tell what is mapped.
    pub(super) tells: bool,
    /// Reads and writes of this byte fail.
    pub(super) bad: Option<u64>,
    pub(super) writes: u64,
    /// What was cached is lost, which the next flush tells.
    lost: bool,
    flushing: Vec<u8>,
    durable: Vec<u8>,
}

impl Disk {
    /// A disk with data in some granules, zeros in others, and none in the rest.
    pub(super) fn random(bytes: usize, block_size: u64, rng: &mut Rng) -> Self {
        let mut disk = Self {
            shape: VolumeShape {
                block_size,
                bytes: bytes as u64,
                unmaps: true,
            },
            bytes: vec![0; bytes],
            mapped: vec![false; bytes.div_ceil(GRANULE)],
            tells: true,
            bad: None,
            writes: 0,
            lost: false,
            flushing: Vec::new(),
            durable: Vec::new(),
        };
        let mut kind = 0;
        for (granule, mapped) in disk.bytes.chunks_mut(GRANULE).zip(&mut disk.mapped) {
            if rng.usize(..8) == 0 {
                kind = rng.usize(..3);
            }
            *mapped = kind > 0;
            if kind == 2 {
                granule.fill_with(|| rng.u8(..));
            }
        }
        disk.durable.clone_from(&disk.bytes);
        disk
    }

    pub(super) fn empty(bytes: usize, block_size: u64) -> Self {
        let mut disk = Self::random(bytes, block_size, &mut Rng::with_seed(0));
        disk.bytes.fill(0);
        disk.mapped.fill(false);
        disk
    }

    pub(super) fn carry_out(&mut self, op: MediumOp<HeapLease>) -> MediumResult<HeapLease> {
        match op {
            MediumOp::Read { extent, .. } => {
                let range = self.check(extent).ok_or(MediumError::Read)?;
                let bytes = self.bytes[range].to_vec();
                return Ok(MediumOutcome::Lease(HeapLease::from_bytes(bytes)));
            }
            MediumOp::Write { extent, data, .. } => {
                let range = self.check(extent).ok_or(MediumError::Write)?;
                let mut bytes = vec![0; data.len()];
                data.copy_out(0, &mut bytes);
                self.write(range, &bytes);
            }
            MediumOp::WriteSame { extent, .. } => {
                let range = self.check(extent).ok_or(MediumError::Write)?;
                let zeros = vec![0; range.len()];
                self.write(range, &zeros);
            }
            MediumOp::Unmap { extent, .. } => self.unmap(extent),
            MediumOp::Status { extent } => return self.status(extent),
            MediumOp::Flush { .. } if std::mem::take(&mut self.lost) => {
                return Err(MediumError::Write);
            }
            MediumOp::Flush { .. } => self.durable = std::mem::take(&mut self.flushing),
            other => panic!("nobody asks for {other:?}"),
        }
        Ok(MediumOutcome::Done)
    }

    /// A flush makes durable what was written before it began.
    pub(super) fn begin_flush(&mut self) {
        self.flushing.clone_from(&self.bytes);
    }

    pub(super) fn power_cut(&mut self, rng: &mut Rng) {
        let block = self.shape.block_size as usize;
        let now = self.bytes.chunks_mut(block);
        for (now, durable) in now.zip(self.durable.chunks(block)) {
            if rng.usize(..2) == 0 {
                now.copy_from_slice(durable);
            }
        }
        // What came back has its room again.
        for (granule, mapped) in self.bytes.chunks(GRANULE).zip(&mut self.mapped) {
            *mapped |= granule.iter().any(|byte| *byte != 0);
        }
        self.durable.clone_from(&self.bytes);
    }

    /// As a power cut to a disk that is used by somebody who comes back.
    pub(super) fn restart(&mut self, rng: &mut Rng) {
        self.power_cut(rng);
        self.lost = true;
    }

    fn write(&mut self, range: std::ops::Range<usize>, bytes: &[u8]) {
        self.writes += 1;
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.mapped[range.start / GRANULE..range.end.div_ceil(GRANULE)].fill(true);
    }

    /// Whole granules become holes; in the others the blocks become zeros.
    fn unmap(&mut self, extent: Extent) {
        let range = self.range(extent);
        self.bytes[range.clone()].fill(0);
        let end = if range.end == self.bytes.len() {
            range.end.div_ceil(GRANULE)
        } else {
            range.end / GRANULE
        };
        for granule in range.start.div_ceil(GRANULE)..end {
            self.mapped[granule] = false;
        }
    }

    fn status(&self, extent: Extent) -> MediumResult<HeapLease> {
        if !self.tells {
            return Err(MediumError::Unsupported);
        }
        let range = self.range(extent);
        let state = self.mapped[range.start / GRANULE];
        let same = self.mapped[range.start / GRANULE..].iter();
        let granules = same.take_while(|mapped| **mapped == state).count();
        let end = (range.start / GRANULE + granules) * GRANULE;
        let blocks = (end.min(range.end) - range.start) as u64 / self.shape.block_size;
        let state = if state {
            Provisioning::Mapped
        } else {
            Provisioning::Deallocated
        };
        Ok(MediumOutcome::Provisioning { blocks, state })
    }

    fn range(&self, extent: Extent) -> std::ops::Range<usize> {
        let range = extent.lba * self.shape.block_size..extent.end() * self.shape.block_size;
        assert!(
            range.end <= self.shape.bytes && !range.is_empty(),
            "{extent:?}"
        );
        range.start as usize..range.end as usize
    }

    fn check(&self, extent: Extent) -> Option<std::ops::Range<usize>> {
        let range = self.range(extent);
        let bad = self.bad.is_some_and(|bad| range.contains(&(bad as usize)));
        (!bad).then_some(range)
    }
}
