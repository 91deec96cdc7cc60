//! `concat(A,B,…)`: one volume after the other.

use std::sync::Arc;

use scsi::medium::Extent;

use crate::error::VolumeError;
use crate::parts::{Layout, NamedPart, PartOffset, PartsVolume, common_block_size};

/// The volumes of `parts`, of which there are two or more, one after the other.
///
/// # Errors
///
/// When block sizes differ, or all of them together are too long.
pub fn open(parts: Vec<NamedPart>) -> Result<PartsVolume, VolumeError> {
    common_block_size(&parts)?;
    let mut starts = Vec::with_capacity(parts.len());
    let mut end = 0_u64;
    for part in &parts {
        starts.push(end);
        let longer = end.checked_add(part.volume.traits().blocks);
        end = longer.ok_or(VolumeError::PartsTooLong)?;
    }
    PartsVolume::new(parts, Arc::new(ConcatLayout { starts }))
}

/// Where each volume begins. Only the last one may become longer.
#[derive(Debug)]
pub(crate) struct ConcatLayout {
    pub(crate) starts: Vec<u64>,
}

impl ConcatLayout {
    /// Where the volume behind begins.
    fn end(&self, part: usize) -> u64 {
        self.starts.get(part + 1).copied().unwrap_or(u64::MAX)
    }
}

impl Layout for ConcatLayout {
    fn place(&self, lba: u64) -> PartOffset {
        let part = self.starts.partition_point(|start| *start <= lba) - 1;
        PartOffset {
            part,
            lba: lba - self.starts[part],
            run: self.end(part) - lba,
        }
    }

    fn on(&self, part: usize, extent: Extent) -> Extent {
        let (start, end) = (self.starts[part], self.end(part));
        let first = extent.lba.clamp(start, end);
        let behind = extent.end().clamp(start, end);
        Extent::new(first - start, behind - first)
    }

    fn back(&self, part: usize, lba: u64) -> u64 {
        self.starts[part] + lba
    }

    fn boundary(&self) -> u64 {
        let places = self.starts.iter().fold(0, |all, start| all | start);
        1 << places.trailing_zeros().min(63)
    }

    /// A part may begin within a granule, which cannot be told.
    fn granule(&self, of_part: u64) -> u64 {
        of_part
    }

    fn capacity(&self, parts: &mut dyn Iterator<Item = u64>) -> Option<u64> {
        self.starts.last()?.checked_add(parts.last()?)
    }

    /// The last part may have any length.
    fn name(&self, block_size: u32) -> String {
        let starts = self.starts.iter().skip(1);
        let starts = starts.map(|start| (start * u64::from(block_size)).to_string());
        format!("concat at {}", starts.collect::<Vec<_>>().join(", "))
    }

    fn look_at_growth(&self, parts: &[NamedPart]) {
        for (number, part) in parts.iter().enumerate().take(parts.len() - 1) {
            let blocks = part.volume.traits().blocks;
            if self.starts[number].saturating_add(blocks) > self.end(number) {
                tracing::warn!(
                    "{} has grown, but other volumes follow it: their blocks will move when the \
                     concatenation is opened again",
                    part.name
                );
            }
        }
    }
}
