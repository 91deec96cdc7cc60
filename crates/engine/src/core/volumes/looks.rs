//! What threads look at, one volume after the other, and what they have seen.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use block::volume::Volume;
use scsi::statistics::UnitStatistics;
use scsi::unit::UnitId;

/// A volume that is to be looked at.
#[derive(Debug)]
pub(super) struct DueLook {
    pub(super) unit: UnitId,
    pub(super) volume: Arc<dyn Volume>,
    pub(super) statistics: Arc<UnitStatistics>,
}

/// What a look has seen.
#[derive(Debug)]
pub(super) struct LookResult {
    pub(super) unit: UnitId,
    /// The unit may have another one by now.
    pub(super) volume: Arc<dyn Volume>,
    /// Whether the volume has changed.
    pub(super) has_changed: io::Result<bool>,
}

/// What the core shares with the threads that look. No lock is held during a look.
#[derive(Debug, Default)]
pub(super) struct LookQueue {
    due: Mutex<VecDeque<DueLook>>,
    seen: Mutex<Vec<LookResult>>,
}

impl LookQueue {
    pub(super) fn add(&self, looks: impl IntoIterator<Item = DueLook>) {
        lock(&self.due).extend(looks);
    }

    pub(super) fn is_any_due(&self) -> bool {
        !lock(&self.due).is_empty()
    }

    /// Looks at all that is due and that no other thread looks at.
    pub(super) fn work(&self) {
        while let Some(look) = self.next() {
            look.statistics.look();
            let seen = LookResult {
                unit: look.unit,
                has_changed: look.volume.refresh(),
                volume: look.volume,
            };
            lock(&self.seen).push(seen);
        }
    }

    fn next(&self) -> Option<DueLook> {
        lock(&self.due).pop_front()
    }

    pub(super) fn take_seen(&self) -> Vec<LookResult> {
        mem::take(&mut *lock(&self.seen))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
