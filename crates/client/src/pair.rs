//! Two volumes side by side: one is copied onto the other, or compared with it.
//!
//! `copy` and `verify` are machines without I/O: they say by [`PairMachine::poll`] what is to be
//! asked of which volume and are told what came of it. Both ask the first volume ahead where it has
//! holes (`spans`), work on pieces of [`CHUNK`] bytes, a fixed number at a time, and never hold
//! more than those. `run` is the loop around either. Offsets are in bytes, because the two volumes
//! may have blocks of different sizes; they are multiples of the larger one.

mod copy;
mod error;
mod open;
mod ranges;
mod record;
mod run;
mod spans;
mod verify;

use std::ops::Range;
use std::time::Duration;

use scsi::medium::{Extent, MediumError, MediumOp, MediumResult, Now, SEGMENT_BYTES, Traits};

pub use error::{PairError, VolumeMismatch};
pub use open::PairOptions;
pub use ranges::Ranges;
pub use run::{Copied, CopyOptions, Verified, copy, verify};
pub use verify::Differences;

/// What is read or written by one operation, at the most, in bytes.
pub const CHUNK: u64 = SEGMENT_BYTES;

/// The most pieces in flight: with each in two buffers they take 64 MiB.
pub const MOST_DEPTH: usize = 128;

/// Which of the two volumes, by its place on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSide {
    /// The first: what is copied from.
    A,
    /// The second.
    B,
}

/// What has been done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// All there is to do, in bytes.
    pub total: u64,
    /// Bytes done by an earlier run.
    pub before: u64,
    /// Bytes of data done.
    pub data: u64,
    /// Bytes that read zeros, done.
    pub holes: u64,
    /// Bytes that cannot be read and were skipped.
    pub unreadable: u64,
    /// Bytes of data that were done, lost by B, and are to be done again; not part of `data`.
    pub again: u64,
}

impl CopyProgress {
    /// Bytes done, by whom and how ever.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.before + self.data + self.holes + self.unreadable
    }
}

/// Why the work ended before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairFailure {
    /// Of which volume.
    pub side: PairSide,
    /// The byte from which on it was to work; `None` for a flush.
    pub at: Option<u64>,
    /// What was wrong.
    pub error: VolumeProblem,
}

/// What can be wrong with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeProblem {
    /// An operation failed.
    Medium(MediumError),
    /// Nothing has ended for so long.
    Stalled(Duration),
    /// Its address leads to another file now, or to none.
    Removed,
}

impl PairFailure {
    /// Which volume failed, where, and how, in a line; `a` and `b` are what they are called.
    #[must_use]
    pub fn line(&self, a: &str, b: &str) -> String {
        let volume = match self.side {
            PairSide::A => a,
            PairSide::B => b,
        };
        let error = match self.error {
            VolumeProblem::Medium(error) => error,
            VolumeProblem::Removed => {
                let what = "the file was removed, renamed or replaced meanwhile";
                return format!("{volume}: {what}");
            }
            VolumeProblem::Stalled(time) => {
                let (seconds, at) = (time.as_secs_f64(), self.at.unwrap_or_default());
                let way_out = "check the volume, or wait longer with --timeout";
                return format!("{volume}: no progress for {seconds} s at byte {at} ({way_out})");
            }
        };
        let way_out = way_out(error);
        match self.at {
            Some(at) => format!("{volume}: {error} at byte {at}{way_out}"),
            None => format!("{volume}: {error} during the flush{way_out}"),
        }
    }
}

/// What can be done about an error of a volume, in parentheses; empty where that says it.
#[must_use]
pub const fn way_out(error: MediumError) -> &'static str {
    match error {
        MediumError::NoSpace => " (make room there first)",
        MediumError::Gone => " (check the volume first)",
        MediumError::Unknown => {
            " (the write may or may not have taken effect, or may do so later: check the volume, \
             then write it again)"
        }
        _ => "",
    }
}

/// What is to be done for a machine.
#[derive(Debug)]
pub enum PairOrder<L> {
    /// Submit an operation, and tell its result with this number.
    Submit(PairSide, u64, MediumOp<L>),
    /// Everything before this byte is durable at B.
    Durable(u64),
    /// B has lost what it had cached: it goes back to what is durable.
    Back {
        /// Everything before this byte is.
        at: u64,
        /// Bytes of data that are copied again.
        bytes: u64,
    },
    /// Give up what is in flight at both volumes.
    Cancel,
    /// It is over, and nothing is in flight.
    End(Result<(), PairFailure>),
}

/// What has two volumes before it.
pub trait PairMachine<L> {
    /// What is to be done next; `None`: wait for results.
    fn poll(&mut self, now: Now) -> Option<PairOrder<L>>;

    /// An operation has ended.
    fn done(&mut self, id: u64, result: MediumResult<L>);

    /// Begin nothing more, and end when what is in flight has, or was cancelled.
    fn stop(&mut self);

    /// How far it is.
    fn progress(&self) -> CopyProgress;
}

/// What has to be known of a volume to work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeShape {
    /// Bytes in a block.
    pub block_size: u64,
    /// Capacity in bytes.
    pub bytes: u64,
    /// It can unmap.
    pub unmaps: bool,
}

impl VolumeShape {
    /// The shape of a volume with these traits.
    #[must_use]
    pub fn of(traits: &Traits) -> Self {
        let block_size = u64::from(traits.block_size);
        Self {
            block_size,
            bytes: block_size.saturating_mul(traits.blocks),
            unmaps: traits.unmap_granularity.is_some(),
        }
    }

    /// The blocks of a range of bytes, which begins and ends at blocks.
    const fn extent(&self, range: &Range<u64>) -> Extent {
        Extent::new(
            range.start / self.block_size,
            (range.end - range.start) / self.block_size,
        )
    }
}

#[cfg(test)]
mod tests;
