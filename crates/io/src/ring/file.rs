//! Reading and writing files, whole buffers at a time.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{FileType, OFlags};

use super::blocking::BlockingJob;
use super::{FileOp, Token};
use crate::memory::Buffer;

/// A file or a block device, and how it is best reached.
#[derive(Debug)]
pub struct RingFile {
    fd: OwnedFd,
    in_memory: bool,
    direct: bool,
    /// Whether `RWF_NOWAIT` can be asked for, as far as is known.
    supports_nowait: AtomicBool,
}

impl RingFile {
    /// What is read and written by this descriptor.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        let in_memory = is_regular(&fd) && is_of_memory(&fd);
        let direct = is_direct(&fd);
        let supports_nowait = AtomicBool::new(!direct);
        Self {
            fd,
            in_memory,
            direct,
            supports_nowait,
        }
    }

    /// Whether it lies in memory: there is no device to wait for, only pages that were swapped out,
    /// and what else writes or unmaps the same file at that moment.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Whether it is read and written past the page cache (O_DIRECT).
    pub(super) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether a read can be tried that fails where it would wait (`RWF_NOWAIT`). With O_DIRECT it
    /// would wait for the device all the same, once it had begun.
    pub(super) fn supports_nowait(&self) -> bool {
        self.supports_nowait.load(Relaxed)
    }

    /// The kernel has told that it cannot.
    pub(super) fn lacks_nowait(&self) {
        self.supports_nowait.store(false, Relaxed);
    }
}

impl Deref for RingFile {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

fn is_direct(fd: &OwnedFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(fd);
    flags.is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}

/// Of a device the kernel tells the file system of its node, which is in memory as a rule.
fn is_regular(fd: &OwnedFd) -> bool {
    let stat = rustix::fs::fstat(fd);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn is_of_memory(fd: &OwnedFd) -> bool {
    let system = rustix::fs::fstatfs(fd);
    system.is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64)))
}

/// tmpfs and ramfs, as statfs(2) tells them.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// preadv2(2), since Linux 6.11.
const RWF_ATOMIC: i32 = 0x40;

/// A file operation that was asked for and is not over.
pub(super) struct PendingFile {
    pub(super) token: Token,
    /// Held until the operation is over.
    pub(super) buffer: Option<Buffer>,
}

/// Which way, and how.
#[derive(Clone, Copy)]
pub(super) enum TransferDirection {
    Read,
    Write { flags: i32 },
}

/// A read or write that may need several system calls.
pub(super) struct Transfer {
    pub(super) file: Arc<RingFile>,
    pub(super) direction: TransferDirection,
    offset: u64,
    memory: NonNull<u8>,
    len: usize,
    moved: usize,
}

// SAFETY: the memory is accessed by the kernel and by `raw` only, which may be done from any
// thread; it is held by a `PendingFile` until the transfer is over.
unsafe impl Send for Transfer {}

impl PendingFile {
    /// Takes an operation apart: what is kept, and what is to be done.
    pub(super) fn new(token: Token, op: FileOp) -> (Self, BlockingJob) {
        let (job, buffer) = match op {
            FileOp::Read {
                file,
                offset,
                buffer,
            } => {
                let memory = buffer.writable_address();
                let transfer =
                    Transfer::new(file, TransferDirection::Read, offset, memory, buffer.len());
                (BlockingJob::Transfer(transfer), Some(buffer))
            }
            FileOp::Write {
                file,
                offset,
                buffer,
                dsync,
                atomic,
            } => {
                let flags = if dsync { libc::RWF_DSYNC } else { 0 };
                let flags = flags | if atomic { RWF_ATOMIC } else { 0 };
                let way = TransferDirection::Write { flags };
                let transfer = Transfer::new(file, way, offset, buffer.address(), buffer.len());
                (BlockingJob::Transfer(transfer), Some(buffer))
            }
            FileOp::DataSync { file } => (BlockingJob::DataSync(file), None),
            FileOp::Blocking(call) => (BlockingJob::Call(call), None),
            FileOp::Apart { lane, call } => (BlockingJob::Apart(lane, call), None),
        };
        (Self { token, buffer }, job)
    }
}

impl Transfer {
    fn new(
        file: Arc<RingFile>,
        direction: TransferDirection,
        offset: u64,
        memory: NonNull<u8>,
        len: usize,
    ) -> Self {
        Self {
            file,
            direction,
            offset,
            memory,
            len,
            moved: 0,
        }
    }

    /// Where the rest is to be read to, or written from.
    pub(super) fn address(&self) -> *mut u8 {
        // SAFETY: `moved` is within the memory.
        unsafe { self.memory.add(self.moved).as_ptr() }
    }

    /// Bytes that were not moved yet.
    pub(super) fn remaining(&self) -> usize {
        self.len - self.moved
    }

    /// Where in the file the rest goes, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.moved as u64
    }

    /// Takes the result of a system call for the rest. Returns the result of the transfer when it
    /// is over.
    pub(super) fn advance(&mut self, moved: io::Result<usize>) -> Option<io::Result<u64>> {
        match (moved, self.direction) {
            (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => return None,
            (Err(_), TransferDirection::Read) if self.moved > 0 && self.is_past_end() => {
                return Some(ended());
            }
            (Err(error), _) => return Some(Err(error)),
            (Ok(0), TransferDirection::Read) if self.remaining() > 0 => return Some(ended()),
            (Ok(0), _) if self.remaining() > 0 => {
                return Some(Err(io::ErrorKind::WriteZero.into()));
            }
            (Ok(moved), _) => self.moved += moved.min(self.remaining()),
        }
        (self.moved == self.len).then_some(Ok(self.len as u64))
    }

    /// With O_DIRECT, a file that ends within a block is read up to its end, and the rest of the
    /// block then refused for its alignment instead of telling the end.
    fn is_past_end(&self) -> bool {
        let stat = rustix::fs::fstat(&**self.file);
        stat.is_ok_and(|stat| u64::try_from(stat.st_size).is_ok_and(|end| end <= self.position()))
    }
}

/// What a read comes to that goes past the end: nothing stands there, not even zeros.
fn ended() -> io::Result<u64> {
    Err(io::ErrorKind::UnexpectedEof.into())
}
