//! Regions whose memory is taken and locked as a whole, and who is told when one goes.
//!
//! A device that knows a region's memory must have forgotten it before the memory goes: the same
//! addresses may be given to something else. The region tells it, whichever thread drops it last.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;

use super::granules::{GRANULE, Granules};
use super::limit::{MemoryLimit, NoSpace};
use super::region::Region;
use crate::limits::{memlock, memory_for_volumes};

/// Why memory is not taken and locked, with the way out.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Our own limit.
    #[error(
        "it takes {bytes} bytes at once, and the memory limit leaves {left}: make it smaller, or \
         raise the limit (--memory-limit; memory-limit of a daemon)"
    )]
    MemoryLimit {
        /// What it takes.
        bytes: u64,
        /// What is left of the limit.
        left: u64,
    },
    /// The machine, or a control group.
    #[error(
        "it takes {bytes} bytes at once, and {available} are available: make it smaller, or free \
         memory (free -m; MemoryMax= of a unit of systemd)"
    )]
    NoMemory {
        /// What it takes.
        bytes: u64,
        /// What could be taken.
        available: u64,
    },
    /// The kernel does not let so much be locked.
    #[error(
        "{bytes} bytes cannot be locked in memory beside what is locked already, as \
         RLIMIT_MEMLOCK is {limit} bytes: raise it (ulimit -l unlimited; LimitMEMLOCK=infinity in \
         a unit of systemd)"
    )]
    Memlock {
        /// What it takes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Everything else.
    #[error("cannot {what}: {cause}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl LockError {
    pub(super) fn kernel(what: &'static str, cause: io::Error) -> Self {
        Self::Kernel { what, cause }
    }

    /// Refuses more than the machine has: `bytes`, of which `taken` are taken. Where the kernel
    /// does not tell, it is tried.
    pub(super) fn check_available(bytes: u64, taken: u64) -> Result<(), Self> {
        let available = memory_for_volumes().map_or(u64::MAX, |left| left.saturating_add(taken));
        if available < bytes {
            return Err(Self::NoMemory { bytes, available });
        }
        Ok(())
    }

    /// What the kernel means that does not lock `len` bytes.
    pub(super) fn refused(len: usize, cause: io::Error) -> Self {
        match (Errno::from_io_error(&cause), memlock()) {
            (Some(Errno::NOMEM | Errno::PERM | Errno::AGAIN), Some(limit)) => Self::Memlock {
                bytes: len as u64,
                limit,
            },
            _ => Self::kernel("lock memory", cause),
        }
    }
}

impl MemoryLimit {
    /// Charges all of a region of `len` bytes at once, if the machine has that.
    pub(super) fn admit(&self, granules: &Granules, len: u64) -> Result<(), LockError> {
        let bytes = len.next_multiple_of(GRANULE);
        LockError::check_available(bytes, 0)?;
        let left = self.limit().saturating_sub(self.used());
        let charged = granules.charge_all();
        charged.map_err(|NoSpace| LockError::MemoryLimit { bytes, left })
    }

    /// The regions whose memory is locked, as far as they are in use.
    #[must_use]
    pub fn locked_regions(&self) -> Vec<Arc<Region>> {
        let regions = lock(&self.locked().0);
        regions.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The locked regions of a process.
#[derive(Debug, Default)]
pub(super) struct LockedRegions(Mutex<Vec<Weak<Region>>>);

impl LockedRegions {
    pub(super) fn add(&self, region: &Arc<Region>) {
        let mut regions = lock(&self.0);
        regions.retain(|one| one.strong_count() > 0);
        regions.push(Arc::downgrade(region));
    }
}

/// What has to forget the addresses of a region before its memory goes, such as a device.
pub(crate) trait RegionUser: Send + Sync {
    /// The region that begins there goes. No buffer of it is left.
    fn forget(&self, start: NonNull<u8>);
}

/// What has to forget one region.
#[derive(Default)]
pub(crate) struct RegionUsers(Mutex<Vec<Weak<dyn RegionUser>>>);

impl RegionUsers {
    /// Adds one, which is to be told.
    pub(crate) fn add(&self, user: Weak<dyn RegionUser>) {
        let mut users = lock(&self.0);
        users.retain(|one| one.strong_count() > 0);
        users.push(user);
    }

    /// Tells those that there still are.
    pub(super) fn tell(&mut self, start: NonNull<u8>) {
        let users = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let users = users.drain(..).filter_map(|user| user.upgrade());
        users.for_each(|user| user.forget(start));
    }
}

impl std::fmt::Debug for RegionUsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegionUsers({})", lock(&self.0).len())
    }
}

/// Also after a panic of whoever had it: what these hold is whole between any two calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
