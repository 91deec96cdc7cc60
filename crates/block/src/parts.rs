//! Volumes whose blocks lie on several others: [`crate::stripe`], [`crate::concat`].
//!
//! # What they promise
//!
//! No more than all of their parts keep. They cannot be written if one part cannot, have a write
//! cache if one has, and unmap, anchor and sanitize only by what every part can. An atomic write
//! lies on one part: its length and alignment are the largest power of two that no boundary between
//! parts cuts and that all parts keep. A flush goes to every part that its extent lies on, and ends
//! when the last one has.
//!
//! An operation on several parts that fails on one is carried out on the others all the same, and
//! ends with the first error when all have ended, as it does on a disk of which a part is bad.
//!
//! # Growth
//!
//! Blocks never change places while a volume is open. A stripe grows when its shortest part does,
//! a concatenation with its last part. Another part that grows is not used beyond what it had when
//! it was opened; as a concatenation that is opened again would have its later blocks elsewhere,
//! that is told in the log.

mod handle;
mod traits;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use scsi::medium::{Extent, Traits};
use scsi::statistics::SpaceUsage;

use crate::child::Child;
use crate::error::VolumeError;
use crate::identity::Details;
use crate::size::BlockSize;
use crate::volume::{CoreContext, Handle, Volume};
pub(crate) use traits::least_common_multiple;

/// One of several volumes that make another.
#[derive(Clone, Debug)]
pub struct NamedPart {
    /// How errors call it: its address.
    pub name: String,
    /// The volume itself.
    pub volume: Arc<dyn Volume>,
}

/// Where the blocks of a volume lie. It never changes: growth only adds blocks.
pub(crate) trait Layout: fmt::Debug + Send + Sync {
    /// Where a block lies.
    fn place(&self, lba: u64) -> PartOffset;

    /// What of an extent lies on a part: consecutive blocks there, as layouts keep the order.
    /// Without blocks when there is nothing.
    fn on(&self, part: usize, extent: Extent) -> Extent;

    /// The block that lies at `lba` of a part.
    fn back(&self, part: usize, lba: u64) -> u64;

    /// The largest power of two of blocks that divides every place where one part ends and another
    /// one begins.
    fn boundary(&self) -> u64;

    /// The granule of the whole, in blocks, within which all that lies on a part is a multiple of
    /// the part's own granule.
    fn granule(&self, of_part: u64) -> u64;

    /// The capacity in blocks, with parts of this many; `None` when 64 bits do not hold it.
    fn capacity(&self, parts: &mut dyn Iterator<Item = u64>) -> Option<u64>;

    /// What it is, in bytes: the same parts under the same name hold the same data.
    fn name(&self, block_size: u32) -> String;

    /// Looks at what has become of the parts that could not grow into anything.
    fn look_at_growth(&self, parts: &[NamedPart]) {
        let _ = parts;
    }
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartOffset {
    pub(crate) part: usize,
    pub(crate) lba: u64,
    /// How many blocks from this one on follow each other there.
    pub(crate) run: u64,
}

/// A volume whose blocks lie on several others.
#[derive(Debug)]
pub struct PartsVolume {
    parts: Vec<NamedPart>,
    layout: Arc<dyn Layout>,
    blocks: AtomicU64,
}

impl PartsVolume {
    /// Blocks of `parts`, of which there is one at least, whose block sizes have been compared.
    pub(crate) fn new(parts: Vec<NamedPart>, layout: Arc<dyn Layout>) -> Result<Self, VolumeError> {
        let blocks = capacity(&*layout, &parts).ok_or(VolumeError::PartsTooLong)?;
        Ok(Self {
            parts,
            layout,
            blocks: AtomicU64::new(blocks),
        })
    }
}

impl Volume for PartsVolume {
    fn traits(&self) -> Traits {
        let parts = self.parts.iter().map(|part| part.volume.traits());
        let blocks = self.blocks.load(SeqCst);
        traits::combine(&*self.layout, blocks, &parts.collect::<Vec<_>>())
    }

    fn prepare(&self, cores: u16) -> io::Result<()> {
        let mut parts = self.parts.iter();
        parts.try_for_each(|part| part.volume.prepare(cores))
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let attach = |part: &NamedPart| Child::attach(&*part.volume, core);
        let parts = self.parts.iter().map(attach).collect::<io::Result<_>>()?;
        let traits = self.traits();
        let block_size = BlockSize::new(traits.block_size).map_err(io::Error::other)?;
        let rules = handle::PartsRules {
            layout: Arc::clone(&self.layout),
            block_size,
            read_only: traits.read_only,
        };
        let pool = core.pool.clone();
        Ok(Box::new(handle::PartsHandle::new(parts, rules, pool)))
    }

    /// All of it would have to be the same as before to be the same volume.
    fn is_empty_at_start(&self) -> bool {
        self.parts
            .iter()
            .any(|part| part.volume.is_empty_at_start())
    }

    fn usage(&self) -> Option<SpaceUsage> {
        let parts = self.parts.iter().map(|part| part.volume.usage());
        parts.reduce(add).flatten()
    }

    /// Where the blocks of a part lie in the whole need not be known: none of it can be trusted.
    fn shortened_to(&self) -> Option<u64> {
        let mut parts = self.parts.iter();
        let shortened = parts.any(|part| part.volume.shortened_to().is_some());
        shortened.then_some(0)
    }

    fn is_removed(&self) -> bool {
        self.parts.iter().any(|part| part.volume.is_removed())
    }

    fn written(&self) -> Vec<(i64, u64)> {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.volume.written()).collect()
    }

    fn written_before(&self) -> Vec<(i64, u64)> {
        let parts = self.parts.iter();
        parts
            .flat_map(|part| part.volume.written_before())
            .collect()
    }

    /// Its identity depends on its parts, on their order, and on where its blocks lie on them.
    fn particulars(&self) -> Details {
        let parts = self.parts.iter().map(|part| part.volume.particulars());
        let parts: Vec<_> = parts.collect();
        let identities = parts.iter().map(|part| part.identity.as_deref());
        let identities: Option<Vec<_>> = identities.collect();
        let name = self.layout.name(block_size(&self.parts));
        let identity = identities.map(|all| format!("{name} of {}", all.join(", ")));
        Details {
            parts,
            ..Details::new(self.traits(), identity)
        }
    }

    fn gathered(&self) -> Vec<String> {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.volume.gathered()).collect()
    }

    fn can_grow(&self) -> bool {
        self.parts.iter().any(|part| part.volume.can_grow())
    }

    /// Looks at every part, even if one of them cannot be looked at.
    fn refresh(&self) -> io::Result<bool> {
        let mut failed = None;
        let before = self.traits();
        for part in &self.parts {
            match part.volume.refresh() {
                Ok(true) => self.layout.look_at_growth(&self.parts),
                Ok(false) => {}
                Err(cause) => failed = failed.or(Some(cause)),
            }
        }
        let blocks = capacity(&*self.layout, &self.parts).unwrap_or(0);
        self.blocks.fetch_max(blocks, SeqCst);
        let has_news = self.traits() != before;
        match failed {
            Some(cause) if !has_news => Err(cause),
            _ => Ok(has_news),
        }
    }
}

fn add(a: Option<SpaceUsage>, b: Option<SpaceUsage>) -> Option<SpaceUsage> {
    let (a, b) = (a?, b?);
    Some(SpaceUsage {
        used: a.used.saturating_add(b.used),
        available: a.available.saturating_add(b.available),
    })
}

/// In blocks, whose bytes 64 bits hold too.
fn capacity(layout: &dyn Layout, parts: &[NamedPart]) -> Option<u64> {
    let blocks = layout.capacity(&mut parts.iter().map(|part| part.volume.traits().blocks));
    blocks.filter(|blocks| blocks.checked_mul(block_size(parts).into()).is_some())
}

fn block_size(parts: &[NamedPart]) -> u32 {
    parts
        .first()
        .map_or(0, |part| part.volume.traits().block_size)
}

/// The block size that all parts have.
pub(crate) fn common_block_size(parts: &[NamedPart]) -> Result<u32, VolumeError> {
    let common = block_size(parts);
    let other = |part: &&NamedPart| part.volume.traits().block_size != common;
    match (parts.first(), parts.iter().find(other)) {
        (Some(one), Some(other)) => {
            let bytes = other.volume.traits().block_size;
            Err(VolumeError::PartBlockSizes {
                one: one.name.clone(),
                one_bytes: common,
                other: other.name.clone(),
                other_bytes: bytes,
                larger: common.max(bytes),
            })
        }
        _ => Ok(common),
    }
}
