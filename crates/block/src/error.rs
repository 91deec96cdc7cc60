//! Why volumes cannot be opened, and how errors of the kernel become errors of the medium.

use std::io;
use std::path::{Path, PathBuf};

use ::io::memory::LockError;
use rustix::fs::Access;
use rustix::io::Errno;
use scsi::medium::MediumError;

use crate::file::FileHolder;

/// Why a volume cannot be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// There is no such file, and no size to create it with.
    #[error("no such file; check its name, or give ?size=10G to create it")]
    NoFile,
    /// No such file; it was to be opened read-only.
    #[error("no such file; check its name")]
    NothingToRead,
    /// No such file; `?size=` does not create one for reading only.
    #[error("no such file, and none is created for reading only; check its name")]
    Missing,
    /// It has less than its address says, and is not extended to be read.
    #[error(
        "it has {found} bytes, fewer than the {size} of ?size=, and it is not extended for reading \
         only; omit ?size="
    )]
    Shorter {
        /// What it has.
        found: u64,
        /// What the address says.
        size: u64,
    },
    /// A symbolic link to nothing, through which no file is made.
    #[error("it is a dangling symbolic link; name an existing file")]
    Dangling,
    /// There is no such directory.
    #[error("no such directory to create the file in")]
    NoDirectory,
    /// There is no such device node.
    #[error("no such device")]
    NoDevice,
    /// A file without content.
    #[error("the file is empty; give ?size=10G to extend it")]
    Empty,
    /// A file without content that is not extended to be read.
    #[error("the file is empty, and it is not extended for reading only; check its name")]
    NothingInIt,
    /// A device without a medium.
    #[error("the device has no capacity (no medium, or a loop device without a file)")]
    NoMedium,
    /// Less than a block.
    #[error("its size of {bytes} B is less than one block of {block_size} B")]
    TooSmall {
        /// What there is.
        bytes: u64,
        /// What a block takes.
        block_size: u32,
    },
    /// Not a block size that is served.
    #[error("a block size of {bytes} bytes is not supported; only 512 and 4096 are")]
    BlockSize {
        /// What was asked for, or what the device has.
        bytes: u32,
    },
    /// The blocks would be smaller than what can be read and written at once.
    #[error(
        "blocks of {asked} bytes are not possible, because its I/O is in units of {least}; give \
         --block-size {least}"
    )]
    Granularity {
        /// What was asked for.
        asked: u32,
        /// What the medium works by.
        least: u32,
    },
    /// A write cache is to come or to go while hosts use the file. Linux looks for one when it
    /// finds a disk, and not again when it is told of a change: it would flush too little.
    #[error(
        "sync cannot be changed while hosts use it, as they would not notice in time: take the \
         volume and its LUNs out, and add them again"
    )]
    CacheInUse,
    /// A block device where a file was expected.
    #[error("this is a block device; write block: instead of file:")]
    IsDevice,
    /// A file where a block device was expected.
    #[error("this is a file; write file: instead of block:")]
    IsFile,
    /// A directory, socket, pipe or the like.
    #[error("this is neither a file nor a block device; name one that is")]
    Neither,
    /// It is one of the files of this program, or lies among them.
    #[error(
        "it lies in {}, where the daemon keeps files of its own (configuration, tokens, secrets), \
         which no host may have; name one in another folder",
        .0.display()
    )]
    Reserved(PathBuf),
    /// Another program, or this one by another address, has it.
    #[error("{0}")]
    Locked(FileHolder),
    /// The device is mounted, or part of a RAID, LVM, dm or swap.
    #[error("the device is in use: mounted, part of RAID or LVM, or open exclusively elsewhere")]
    Held,
    /// Permission is lacking.
    #[error("permission denied; grant this user access, or run as another user")]
    Denied,
    /// Permission to write is lacking, and that to read is not.
    #[error("it can be read but not written; grant this user write permission, or give ?readonly")]
    DeniedToWrite,
    /// Permission to create it is lacking.
    #[error(
        "it cannot be created: permission denied; grant this user write permission in its \
         directory"
    )]
    DeniedToCreate,
    /// A file system that cannot be written.
    #[error("it cannot be created: the file system is mounted read-only; choose another path")]
    NoneCreated,
    /// Our own limit.
    #[error(
        "too many files are open; raise the limit (ulimit -n): each core opens two for each \
         volume"
    )]
    TooManyFiles,
    /// A medium that cannot be written.
    #[error("it cannot be written; give ?readonly to open it for reading only")]
    Unwritable,
    /// No O_DIRECT.
    #[error("the file system does not support direct I/O; omit ?direct")]
    NoDirect,
    /// Space cannot be reserved.
    #[error("the file system cannot reserve space; give ?sparse to create it without")]
    NoReservation,
    /// The file system is full.
    #[error("no space for {bytes} bytes; make room, or give ?sparse to allocate it on demand")]
    NoSpace {
        /// What was to be reserved.
        bytes: u64,
    },
    /// Longer than files can be there.
    #[error(
        "its file system, or the limit of file sizes (ulimit -f), does not allow {bytes} bytes"
    )]
    TooLong {
        /// What was asked for.
        bytes: u64,
    },
    /// Memory that was to be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Parts whose blocks cannot stand for blocks of one volume.
    #[error(
        "{one} has blocks of {one_bytes} bytes, but {other} of {other_bytes}; lunar serve \
         --block-size {larger} sets blocks of {larger} bytes for volumes without a block size of \
         their own"
    )]
    PartBlockSizes {
        /// A part.
        one: String,
        /// The bytes of its blocks.
        one_bytes: u32,
        /// Another part.
        other: String,
        /// The bytes of its blocks.
        other_bytes: u32,
        /// The larger of the two.
        larger: u32,
    },
    /// A chunk that would cut blocks.
    #[error("chunks of {chunk} bytes would cut blocks of {block_size}; give a multiple of that")]
    Chunk {
        /// Its bytes.
        chunk: u64,
        /// What a block takes.
        block_size: u32,
    },
    /// A part of a stripe without a whole chunk.
    #[error("{name} is shorter than a chunk of {chunk} bytes; give a smaller chunk")]
    PartTooShort {
        /// Which part.
        name: String,
        /// Bytes in a chunk.
        chunk: u64,
    },
    /// A capacity without bounds.
    #[error("together the volumes have more bytes than 64 bits can count")]
    PartsTooLong,
    /// Everything else.
    #[error("cannot {what}: {cause}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl VolumeError {
    /// The error of a step of opening that has no more to say.
    pub(crate) fn kernel(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |cause| match cause {
            Errno::MFILE => Self::TooManyFiles,
            cause => Self::Kernel {
                what,
                cause: cause.into(),
            },
        }
    }

    /// Permission is lacking for what is at this path.
    pub(crate) fn denied(path: &Path, read_only: bool) -> Self {
        let can_be_read = || rustix::fs::access(path, Access::READ_OK).is_ok();
        if !read_only && can_be_read() {
            Self::DeniedToWrite
        } else {
            Self::Denied
        }
    }
}

/// What a failed read means.
pub(crate) fn read_error(error: &io::Error) -> MediumError {
    match Errno::from_io_error(error) {
        Some(Errno::NODEV | Errno::NXIO | Errno::STALE | Errno::NOMEDIUM) => MediumError::Gone,
        _ => MediumError::Read,
    }
}

/// What a failed write, flush or change of allocation means.
pub(crate) fn write_error(error: &io::Error) -> MediumError {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => MediumError::NoSpace,
        Some(Errno::ROFS | Errno::PERM | Errno::ACCESS) => MediumError::ReadOnly,
        Some(Errno::NODEV | Errno::NXIO | Errno::STALE | Errno::NOMEDIUM) => MediumError::Gone,
        Some(Errno::OPNOTSUPP) => MediumError::Unsupported,
        _ => MediumError::Write,
    }
}

/// Whether the kernel or the file system does not know how.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV)
    )
}
