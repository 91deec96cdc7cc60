//! A volume that is nothing but what it says of itself.

use std::io;
use std::sync::Arc;

use ::io::memory::MemoryLimit;
use scsi::medium::Traits;
use scsi::statistics::SpaceUsage;

use crate::limit::{Limit, LimitRates};
use crate::parts::NamedPart;
use crate::ram::Ram;
use crate::volume::{CoreContext, Handle, Volume};

#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) traits: Traits,
    pub(super) usage: Option<SpaceUsage>,
}

/// A disk of so many blocks of 512 that cannot do anything but read and write.
pub(super) fn plain(blocks: u64) -> Sketch {
    Sketch {
        traits: Traits {
            block_size: 512,
            blocks,
            physical_exponent: 0,
            read_only: false,
            write_cache: false,
            unmap_granularity: None,
            anchor: false,
            atomic: None,
            sanitize: &[],
            solid_state: false,
            write_same_to_end: false,
            shared: false,
        },
        usage: None,
    }
}

impl Volume for Sketch {
    fn traits(&self) -> Traits {
        self.traits.clone()
    }

    fn attach(&self, _: &CoreContext) -> io::Result<Box<dyn Handle>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn usage(&self) -> Option<SpaceUsage> {
        self.usage
    }
}

/// Parts called `a`, `b`, ….
pub(super) fn parts(volumes: impl IntoIterator<Item = Arc<dyn Volume>>) -> Vec<NamedPart> {
    let names = ('a'..='z').map(String::from);
    let part = |(name, volume)| NamedPart { name, volume };
    names.zip(volumes).map(part).collect()
}

pub(super) fn sketches(volumes: &[Sketch]) -> Vec<NamedPart> {
    let volume = |volume: &Sketch| Arc::new(volume.clone()) as Arc<dyn Volume>;
    parts(volumes.iter().map(volume))
}

/// 1 MiB of RAM that does so many operations and bytes a second.
pub(super) fn limit(iops: Option<u64>, bytes: Option<u64>) -> Limit {
    let rates = LimitRates {
        iops,
        bytes,
        ..LimitRates::default()
    };
    Limit::new(ram(2048), rates)
}

/// A RAM disk of so many blocks of 512.
pub(super) fn ram(blocks: u64) -> Arc<dyn Volume> {
    let memory = MemoryLimit::new(64 << 20);
    Arc::new(Ram::new(blocks * 512, 512, &memory).unwrap())
}
