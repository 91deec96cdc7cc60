//! Room that a file gets behind its end, before it is sure that it grows.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FallocateFlags;

use super::open::{extend, len, not_extended};
use crate::error::VolumeError;

/// The room that was taken behind the end of a file.
///
/// It is given back by cutting the file off at its end: no other call does it on every file system.
/// The kernel does not compare the length with the one that was found a moment before, so a program
/// that makes the file longer just then finds it as long as before. Hosts must not, as they may
/// have written to what is new: while the file is cut off it does not become known that it is
/// longer, and one that has become longer since room was taken is not cut off at all.
#[derive(Debug, Default)]
pub(super) struct ReservedRoom(Mutex<Option<TakenRoom>>);

/// Behind which end room was taken.
#[derive(Debug)]
pub(super) struct TakenRoom {
    /// In bytes.
    end: u64,
}

impl ReservedRoom {
    /// While this is held no room is taken or given back.
    pub(super) fn hold(&self) -> MutexGuard<'_, Option<TakenRoom>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the room that a file of this many bytes has behind its end.
    pub(super) fn reserve(&self, file: &OwnedFd, bytes: u64) -> Result<(), VolumeError> {
        let mut taken = self.hold();
        let end = len(file)?;
        if bytes <= end {
            return Ok(());
        }
        // What fails may have taken some.
        *taken = Some(TakenRoom { end });
        let reserved = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes - end);
        reserved.map_err(|error| not_extended(error, end, bytes))
    }

    /// Makes a file that is shorter this long, durably.
    pub(super) fn extend(
        &self,
        file: &OwnedFd,
        bytes: u64,
        sparse: bool,
    ) -> Result<(), VolumeError> {
        let mut taken = self.hold();
        let found = len(file)?;
        if bytes <= found {
            return Ok(());
        }
        extend(file, found, bytes, sparse)?;
        *taken = None;
        rustix::fs::fsync(file).map_err(VolumeError::kernel("make it durable"))
    }

    /// Gives back what was taken. What cannot be given back is so when the file is cut off or goes.
    pub(super) fn release(&self, file: &OwnedFd) {
        let mut taken = self.hold();
        if let (Some(taken), Ok(found)) = (taken.take(), len(file))
            && taken.end == found
        {
            let _ = rustix::fs::ftruncate(file, found);
        }
    }
}

#[cfg(test)]
mod tests;
