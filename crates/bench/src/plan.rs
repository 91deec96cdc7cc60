//! The words of a load, fio's where fio has them, and what they come to on a volume.

#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

use address::Size;
use fastrand::Rng;
use scsi::medium::{Extent, SEGMENT_BYTES, Traits};

use crate::load_threads::RunTimes;
use crate::outcome::{AccessOrder, DataDirection, Load};

/// `--rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// Which way data goes.
    pub direction: DataDirection,
    /// How addresses follow one another.
    pub order: AccessOrder,
}

/// fio's words, the first six as it prints them.
const RW: [(&str, Rw); 7] = {
    use AccessOrder::{Random, Sequential};
    use DataDirection::{Mixed, Read, Write};
    [
        ("read", Rw::new(Read, Sequential)),
        ("write", Rw::new(Write, Sequential)),
        ("rw", Rw::new(Mixed, Sequential)),
        ("randread", Rw::new(Read, Random)),
        ("randwrite", Rw::new(Write, Random)),
        ("randrw", Rw::new(Mixed, Random)),
        ("readwrite", Rw::new(Mixed, Sequential)),
    ]
};

impl Rw {
    const fn new(direction: DataDirection, order: AccessOrder) -> Self {
        Self { direction, order }
    }
}

impl FromStr for Rw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = RW.iter().find(|(word, _)| *word == text);
        found.map(|(_, rw)| *rw).ok_or_else(|| {
            let known = RW.map(|(word, _)| word);
            format!("choose from {}", known.join(", "))
        })
    }
}

/// `--bs`: one size, or several with commas between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes(pub Vec<u32>);

impl FromStr for BlockSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(block_size)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn block_size(text: &str) -> Result<u32, String> {
    let Size(bytes) = text
        .parse()
        .map_err(|error: address::ParseError| error.one_line())?;
    if !(512..=SEGMENT_BYTES).contains(&bytes) {
        return Err("the size of an I/O must be from 512 bytes to 256k".to_owned());
    }
    Ok(bytes as u32)
}

/// Words that go together under a name.
#[derive(Debug)]
pub struct Preset {
    /// What it is called.
    pub name: &'static str,
    rws: &'static [&'static str],
    block_sizes: &'static [u32],
    depth: u32,
    jobs: u32,
}

/// The block sizes of a sweep.
const SWEEP: &[u32] = &[512, 1024, 2048, 4096, 8192, 16_384, 32_768];
const SWEEP_RW: &[&str] = &["randread", "randwrite", "randrw"];

/// What holds where nothing is said: as with fio, one thread that reads one block after the other.
const PLAIN: Preset = Preset {
    name: "",
    rws: &["read"],
    block_sizes: &[4096],
    depth: 1,
    jobs: 1,
};

/// `--sweep`.
const PLAIN_SWEEP: Preset = Preset {
    name: "sweep",
    rws: SWEEP_RW,
    block_sizes: SWEEP,
    depth: 32,
    jobs: 1,
};

/// `--preset`.
pub const PRESETS: [Preset; 2] = [
    // disktest -K4 -B 64k -pl, once reading and once writing.
    Preset {
        name: "disktest",
        rws: &["read", "write"],
        block_sizes: &[65_536],
        depth: 1,
        jobs: 4,
    },
    // iometer with 8 workers and 50 outstanding I/Os: --sweep with more in flight.
    Preset {
        name: "iometer",
        rws: SWEEP_RW,
        block_sizes: SWEEP,
        depth: 50,
        jobs: 8,
    },
];

/// What is to be done to volumes.
#[derive(Clone, Debug)]
pub struct FioOptions {
    /// Each with each of [`Self::block_sizes`] is a row.
    pub rws: Vec<Rw>,
    /// Bytes an I/O.
    pub block_sizes: Vec<u32>,
    /// Whether block sizes that a volume cannot do are left out.
    pub sweep: bool,
    /// Queue depth: I/Os that each job keeps in flight.
    pub depth: u32,
    /// Threads for each volume.
    pub jobs: u32,
    /// Of 100 I/Os, how many read, where both are done.
    pub read_percent: u32,
    /// How long each row is measured.
    pub runtime: Duration,
    /// How long it runs before.
    pub ramp: Duration,
    /// Where on the volume it begins, in bytes.
    pub offset: u64,
    /// How much of it is used; else all that follows.
    pub size: Option<u64>,
    /// I/Os a second that each job does at the most.
    pub rate_iops: Option<u64>,
    /// Whether data is checked.
    pub verify: bool,
    /// What places and contents are drawn from.
    pub seed: u64,
}

/// Part of a volume, in its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSpan {
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u64,
    /// Bytes in each.
    pub block_size: u32,
}

impl BlockSpan {
    /// Its length.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.blocks * self.block_size as u64
    }
}

/// Places of one length, side by side.
#[derive(Debug)]
pub(crate) struct IoRegion {
    first: u64,
    blocks: u64,
    count: u64,
    order: AccessOrder,
    next: u64,
}

impl IoRegion {
    /// Those of `blocks` blocks in part `number` of `parts` of a span.
    pub(crate) fn new(
        span: BlockSpan,
        blocks: u64,
        order: AccessOrder,
        number: u32,
        parts: u32,
    ) -> Self {
        let count = span.blocks / blocks / u64::from(parts);
        Self {
            first: span.first + u64::from(number) * count * blocks,
            blocks,
            count,
            order,
            next: 0,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The number of the next one.
    pub(crate) fn next(&mut self, random: &mut Rng) -> u64 {
        if self.order == AccessOrder::Random {
            return random.u64(..self.count);
        }
        let place = self.next;
        self.next = if place + 1 < self.count { place + 1 } else { 0 };
        place
    }

    pub(crate) fn extent(&self, place: u64) -> Extent {
        Extent::new(self.first + place * self.blocks, self.blocks)
    }
}

/// Words that contradict themselves: nothing was tried.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchMisuse {
    /// No time to measure in.
    #[error("--runtime is 0: give the measuring time of each row, such as 10s")]
    NoTime,
    /// Nothing to measure.
    #[error("--size is 0: give the size of the range to use, such as 1G")]
    NoSize,
    /// No such preset.
    #[error("unknown preset {0:?}: choose from {names}", names = names())]
    NoPreset(String),
}

/// Words that a volume cannot do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitForVolume {
    /// It cannot be written.
    #[error("it is read-only, but --rw {0} writes: give --rw read or randread")]
    ReadOnly(&'static str),
    /// Not whole blocks.
    #[error("--{word} {bytes} is not a multiple of its block size of {block_size} bytes")]
    NotBlocks {
        /// The option.
        word: &'static str,
        /// What it says.
        bytes: u64,
        /// What the volume has.
        block_size: u32,
    },
    /// Beyond its end.
    #[error(
        "--offset {offset}{end} beyond its {capacity} bytes: give a smaller value",
        end = .size.map_or(" is".to_owned(), |size| format!(" and --size {size} end"))
    )]
    TooLarge {
        /// Where it was to begin.
        offset: u64,
        /// How much was to be used, if that was said.
        size: Option<u64>,
        /// What there is.
        capacity: u64,
    },
    /// Less than one I/O for each job.
    #[error(
        "{bytes} bytes from --offset are too few for I/Os of {needed} bytes: give a smaller --bs \
         or a larger range"
    )]
    TooSmall {
        /// What there is.
        bytes: u64,
        /// What is needed.
        needed: u64,
    },
    /// Each job has a session of its own, and that needs a port.
    #[error("a cable has one port, but --numjobs {0} needs one for each job: give --numjobs 1")]
    Cable(u32),
    /// Nothing is left of a sweep.
    #[error("no block size is a multiple of its block size of {0} bytes: give others with --bs")]
    NoBlockSize(u32),
}

impl FioOptions {
    /// What a preset says, or what holds without one.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn preset(name: Option<&str>, sweep: bool) -> Result<Self, BenchMisuse> {
        let preset = match name {
            Some(name) => {
                let known = PRESETS.iter().find(|preset| preset.name == name);
                known.ok_or_else(|| BenchMisuse::NoPreset(name.to_owned()))?
            }
            None if sweep => &PLAIN_SWEEP,
            None => &PLAIN,
        };
        Ok(Self {
            rws: preset.rws.iter().filter_map(|rw| rw.parse().ok()).collect(),
            block_sizes: preset.block_sizes.to_vec(),
            sweep: preset.block_sizes == SWEEP,
            depth: preset.depth,
            jobs: preset.jobs,
            read_percent: 50,
            runtime: Duration::from_secs(10),
            ramp: Duration::from_secs(1),
            offset: 0,
            size: None,
            rate_iops: None,
            verify: false,
            seed: 1,
        })
    }

    /// How long a row takes.
    #[must_use]
    pub fn times(&self) -> RunTimes {
        RunTimes {
            ramp: self.ramp,
            runtime: self.runtime,
        }
    }

    /// What the places and contents of a job are drawn from.
    pub(crate) fn random(&self, job: u32) -> Rng {
        Rng::with_seed(self.seed ^ u64::from(job).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Whether the next I/O writes.
    pub(crate) fn next_writes(&self, direction: DataDirection, random: &mut Rng) -> bool {
        match direction {
            DataDirection::Read => false,
            DataDirection::Write => true,
            DataDirection::Mixed => random.u32(..100) >= self.read_percent,
        }
    }

    /// Whether they can be meant.
    ///
    /// # Errors
    ///
    /// When they contradict themselves.
    pub fn check(&self) -> Result<(), BenchMisuse> {
        if self.runtime.is_zero() {
            return Err(BenchMisuse::NoTime);
        }
        if self.size == Some(0) {
            return Err(BenchMisuse::NoSize);
        }
        Ok(())
    }

    /// Whether anything both reads and writes.
    #[must_use]
    pub fn mixes(&self) -> bool {
        let mut rws = self.rws.iter();
        rws.any(|rw| rw.direction == DataDirection::Mixed)
    }

    /// The part of a volume that is used.
    ///
    /// # Errors
    ///
    /// When the volume cannot do what these words say.
    pub fn fit(&self, traits: &Traits) -> Result<BlockSpan, UnfitForVolume> {
        let mut rws = self.rws.iter();
        if let Some(rw) = rws.find(|rw| rw.direction != DataDirection::Read)
            && traits.read_only
        {
            return Err(UnfitForVolume::ReadOnly(self.load(*rw, 0).word()));
        }
        let block_size = traits.block_size;
        self.multiples(block_size)?;
        let capacity = traits.blocks * u64::from(block_size);
        let rest = capacity.saturating_sub(self.offset);
        let size = self.size.unwrap_or(rest);
        if size > rest || self.offset > capacity {
            return Err(UnfitForVolume::TooLarge {
                offset: self.offset,
                size: self.size,
                capacity,
            });
        }
        let largest = self.block_sizes.iter().max().copied().unwrap_or(0);
        // Each job that verifies has a part of its own.
        let parts = if self.verify { self.jobs } else { 1 };
        let needed = u64::from(largest) * u64::from(parts);
        if size < needed {
            return Err(UnfitForVolume::TooSmall {
                bytes: size,
                needed,
            });
        }
        let blocks = |bytes: u64| bytes / u64::from(block_size);
        Ok(BlockSpan {
            first: blocks(self.offset),
            blocks: blocks(size),
            block_size,
        })
    }

    fn multiples(&self, block_size: u32) -> Result<(), UnfitForVolume> {
        let odd = |bytes: u64| !bytes.is_multiple_of(u64::from(block_size));
        if self.sweep && self.block_sizes_for(block_size).next().is_none() {
            return Err(UnfitForVolume::NoBlockSize(block_size));
        }
        let sizes = self.block_sizes.iter().map(|&size| ("bs", u64::from(size)));
        let sizes = sizes.filter(|_| !self.sweep);
        let size = self.size.map(|size| ("size", size));
        let mut words = sizes.chain([("offset", self.offset)]).chain(size);
        match words.find(|(_, bytes)| odd(*bytes)) {
            Some((word, bytes)) => Err(UnfitForVolume::NotBlocks {
                word,
                bytes,
                block_size,
            }),
            None => Ok(()),
        }
    }

    /// The loads that these words come to where blocks have this size: each row.
    pub(crate) fn loads(&self, block_size: u32) -> impl Iterator<Item = Load> {
        let sizes = self.block_sizes_for(block_size);
        sizes.flat_map(move |size| self.rws.iter().map(move |rw| self.load(*rw, size)))
    }

    /// The block sizes that a volume with such blocks can do.
    pub fn block_sizes_for(&self, block_size: u32) -> impl Iterator<Item = u32> {
        let sizes = self.block_sizes.iter().copied();
        sizes.filter(move |size| size.is_multiple_of(block_size))
    }

    /// One row of it.
    #[must_use]
    pub fn load(&self, Rw { direction, order }: Rw, block_bytes: u32) -> Load {
        Load {
            direction,
            order,
            block_bytes,
            depth: self.depth,
            jobs: self.jobs,
        }
    }
}

fn names() -> String {
    PRESETS.map(|preset| preset.name).join(", ")
}
