//! Keeps other programs away from a file: Lunar by a lock on the whole file (flock), QEMU by locks
//! on single bytes, one for each permission (its block/file-posix.c).
//!
//! Byte 100 + n is locked by all that use permission n, byte 200 + n by all that do not share it.
//! All locks are shared ones, taken first and compared then: of two that come at once both may be
//! refused, and never both let in.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::holder::FileHolder;
use crate::error::VolumeError;

/// Locks a file against writers, and for writing against readers too.
pub(super) fn lock(file: &OwnedFd, read_only: bool) -> Result<(), VolumeError> {
    if try_lock(file, read_only)? {
        Ok(())
    } else {
        Err(VolumeError::Locked(FileHolder::of(file)))
    }
}

/// Returns whether nobody else has locked it in a way that excludes this.
fn try_lock(file: &OwnedFd, read_only: bool) -> Result<bool, VolumeError> {
    let how = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    match rustix::fs::flock(file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(false),
        Err(error) => return Err(VolumeError::kernel("lock it")(error)),
    }
    let used = if read_only {
        &[CONSISTENT_READ][..]
    } else {
        &[CONSISTENT_READ, WRITE, RESIZE]
    };
    match is_shared(file, used) {
        Ok(shared) => Ok(shared),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        // Lunar's own lock holds all the same.
        Err(error) => {
            tracing::debug!("no byte-range locks, so QEMU is not kept out: {error}");
            Ok(true)
        }
    }
}

/// How often a reader's lock is upgraded to a writer's now: all descriptors of one open file
/// description have one lock.
#[derive(Clone, Debug, Default)]
pub(super) struct WriterLocks(Arc<Mutex<usize>>);

/// A reader's lock that is upgraded to a writer's. Readers may outlive it: the lock is downgraded
/// when the last of these is dropped.
#[derive(Debug)]
pub(super) struct WriterLock {
    /// A duplicate of the descriptor that reads the file.
    reader: OwnedFd,
    all: WriterLocks,
}

impl WriterLocks {
    pub(super) fn upgrade(&self, reader: OwnedFd) -> Result<WriterLock, VolumeError> {
        let mut count = self.count();
        if *count == 0 {
            let locked = try_lock(&reader, false);
            if !matches!(locked, Ok(true)) {
                downgrade(&reader);
                locked?;
                return Err(VolumeError::Locked(FileHolder::beside_us(&reader)));
            }
        }
        *count += 1;
        let all = self.clone();
        Ok(WriterLock { reader, all })
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        let mut count = self.all.count();
        *count -= 1;
        if *count == 0 {
            downgrade(&self.reader);
        }
    }
}

/// Gives a reader its lock back, also after an upgrade that failed: flock gives the old lock up
/// before it tries for the new one.
fn downgrade(reader: &OwnedFd) {
    for permission in [WRITE, RESIZE] {
        let _ = ::io::files::release_byte(reader, USED + permission);
    }
    if let Err(error) = rustix::fs::flock(reader, FlockOperation::NonBlockingLockShared) {
        tracing::warn!("a file that is read is no longer locked against writers: {error}");
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
