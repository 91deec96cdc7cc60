//! Why two volumes cannot be worked on, in words that name which one and the way out.

use std::io;
use std::path::PathBuf;

use crate::open::OpenError;
use address::exact_size;

/// Why nothing was begun. The text names the cause and the way out.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// A volume cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// They do not go together.
    #[error(transparent)]
    Misfit(#[from] VolumeMismatch),
    /// A copy cannot be resumed.
    #[error("cannot resume: {0}")]
    Resume(&'static str),
    /// The record of a copy says nothing that can be understood.
    #[error(
        "cannot resume: the record of the copy, {}, is damaged or of another version; omit \
         --resume to start over",
        .0.display()
    )]
    Damaged(PathBuf),
    /// The record of a copy cannot be read.
    #[error(
        "cannot resume: the record of the copy, {}, cannot be read: {cause}; remove it, and omit \
         --resume to start over",
        path.display()
    )]
    Record {
        /// Where it is.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Two copies would undo each other's record, and write the same volume.
    #[error(
        "another lunar copy is running on these two volumes: nothing was done; wait until it ends"
    )]
    Busy,
    /// Our own machine.
    #[error("cannot {what}: {cause}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Why two volumes do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeMismatch {
    /// What is in A has no room in B.
    #[error(
        "{a} has {}, but {b} only {}: nothing was done; {}",
        exact_size(*a_bytes), exact_size(*b_bytes), room(extended.as_deref())
    )]
    Larger {
        /// The first volume.
        a: String,
        /// Its capacity.
        a_bytes: u64,
        /// The second volume.
        b: String,
        /// Its capacity.
        b_bytes: u64,
        /// Its address with the size that it lacks, where it is a file that can be extended.
        extended: Option<String>,
    },
    /// It cannot be written to.
    #[error(
        "{0} cannot be written: nothing was done; choose another volume, or make this one \
         writable at its server"
    )]
    ReadOnly(String),
    /// One volume twice.
    #[error("{a} and {b} are the same volume, or share one: nothing was done; choose another one")]
    Same {
        /// The first volume.
        a: String,
        /// The second volume.
        b: String,
    },
    /// Its end is no end of a block.
    #[error(
        "{volume} has {bytes} bytes, which is not a multiple of the block size {block_size}: \
         nothing was done; extend it to {} bytes first",
        bytes.next_multiple_of(*block_size)
    )]
    Uneven {
        /// Which volume.
        volume: String,
        /// Its length.
        bytes: u64,
        /// The larger of the two block sizes.
        block_size: u64,
    },
}

/// How B gets the room.
fn room(extended: Option<&str>) -> String {
    match extended {
        Some(address) => format!("choose a larger one, or extend it: {address}"),
        None => "choose a larger one".to_owned(),
    }
}
