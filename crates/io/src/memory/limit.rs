//! How much memory the RAM volumes of a process may hold.

use std::sync::Arc;

use super::huge::Replacer;
use super::locked::LockedRegions;
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// The memory limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("memory limit reached")]
pub struct NoSpace;

/// What all regions of a process may hold together. Clones count against the same limit.
#[derive(Clone, Debug)]
pub struct MemoryLimit {
    account: Arc<MemoryAccount>,
}

#[derive(Debug)]
struct MemoryAccount {
    limit: u64,
    used: AtomicU64,
    replacer: Replacer,
    locked: LockedRegions,
}

impl MemoryLimit {
    /// A limit in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let used = AtomicU64::new(0);
        Self {
            account: Arc::new(MemoryAccount {
                limit,
                used,
                replacer: Replacer::default(),
                locked: LockedRegions::default(),
            }),
        }
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.account.limit
    }

    /// What is held now, in bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.account.used.load(Relaxed)
    }

    /// Starts the thread that gives regions huge pages. Else the first region does, and if a thread
    /// makes it that gives way to others, this one would too, while hosts wait for it.
    pub fn start(&self) {
        self.account.replacer.start();
    }

    /// The locked regions that are charged here.
    pub(super) fn locked(&self) -> &LockedRegions {
        &self.account.locked
    }

    /// What gives regions huge pages.
    pub(super) fn replacer(&self) -> &Replacer {
        &self.account.replacer
    }

    /// Counts `bytes` more, or none of them.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), NoSpace> {
        // Others may be above the limit: what takes nothing fits all the same.
        if bytes == 0 {
            return Ok(());
        }
        let fits = |used: u64| {
            let sum = used.checked_add(bytes)?;
            (sum <= self.account.limit).then_some(sum)
        };
        let charged = self.account.used.fetch_update(Relaxed, Relaxed, fits);
        charged.map(|_| ()).map_err(|_| NoSpace)
    }

    /// Counts `bytes` more, above the limit if need be.
    pub(super) fn charge_anyway(&self, bytes: u64) {
        self.account.used.fetch_add(bytes, Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        self.account.used.fetch_sub(bytes, Relaxed);
    }
}
