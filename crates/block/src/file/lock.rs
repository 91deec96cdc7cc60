//! Keeps other programs away from a file: Lunar by a lock on the whole file (flock), QEMU by locks
//! on single bytes, one for each permission (its block/file-posix.c).
//!
//! Byte 100 + n is locked by all that use permission n, byte 200 + n by all that do not share it.
//! All locks are shared ones, taken first and compared then: of two that come at once both may be
//! refused, and never both let in.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::holder::FileHolder;
use crate::error::VolumeError;

/// Locks a file against writers, and for writing against readers too.
pub(super) fn lock(file: &OwnedFd, read_only: bool) -> Result<(), VolumeError> {
    let how = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    match rustix::fs::flock(file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(VolumeError::Locked(FileHolder::of(file))),
        Err(error) => return Err(VolumeError::kernel("lock it")(error)),
    }
    let used = if read_only {
        &[CONSISTENT_READ][..]
    } else {
        &[CONSISTENT_READ, WRITE, RESIZE]
    };
    match is_shared(file, used) {
        Ok(true) => Ok(()),
        Ok(false) => Err(VolumeError::Locked(FileHolder::of(file))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(VolumeError::Locked(FileHolder::of(file)))
        }
        // Lunar's own lock holds all the same.
        Err(error) => {
            tracing::debug!("no byte-range locks, so QEMU is not kept out: {error}");
            Ok(())
        }
    }
}

/// The lock of a reader who writes as well, for as long as this is there: what reads the file may
/// be there longer.
#[derive(Debug)]
pub(super) struct WriterLock(OwnedFd);

impl WriterLock {
    /// Has a duplicate of the descriptor that has locked a file for reading, and so its lock.
    pub(super) fn of_reader(reader: OwnedFd) -> Result<Self, VolumeError> {
        let upgraded = Self(reader);
        match lock(&upgraded.0, false) {
            Ok(()) => Ok(upgraded),
            // That we have it is known; who else?
            Err(VolumeError::Locked(_)) => {
                Err(VolumeError::Locked(FileHolder::beside_us(&upgraded.0)))
            }
            Err(error) => Err(error),
        }
    }
}

/// An attempt that failed has left no lock at all: the kernel gives the old one up first.
impl Drop for WriterLock {
    fn drop(&mut self) {
        for permission in [WRITE, RESIZE] {
            let _ = ::io::files::release_byte(&self.0, USED + permission);
        }
        if let Err(error) = rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockShared) {
            tracing::warn!("a file that is read is no longer locked against writers: {error}");
        }
    }
}

/// Takes QEMU's locks for the use of these permissions, and tells whether others let us.
fn is_shared(file: impl AsFd, used: &[u64]) -> io::Result<bool> {
    for permission in used {
        ::io::files::share_byte(&file, USED + permission)?;
    }
    for permission in KEPT {
        ::io::files::share_byte(&file, KEPT_FROM_OTHERS + permission)?;
    }
    for permission in used {
        if ::io::files::is_byte_locked(&file, KEPT_FROM_OTHERS + permission)? {
            return Ok(false);
        }
    }
    for permission in KEPT {
        if ::io::files::is_byte_locked(&file, USED + permission)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// RAW_LOCK_PERM_BASE and RAW_LOCK_SHARED_BASE.
const USED: u64 = 100;
const KEPT_FROM_OTHERS: u64 = 200;
/// The numbers of the bits of BLK_PERM_CONSISTENT_READ, BLK_PERM_WRITE and BLK_PERM_RESIZE.
const CONSISTENT_READ: u64 = 0;
const WRITE: u64 = 1;
const RESIZE: u64 = 3;
/// What others must not do: initiators keep in mind what they have read.
const KEPT: [u64; 2] = [WRITE, RESIZE];
