//! Volumes that grow while they are served, or change in what else is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use ::io::ring::{BlockingLane, FileOp, Ring};
use scsi::medium::Now;
use scsi::owner::{Input, OwnerRequest, UnitChange};
use scsi::unit::UnitId;

use super::Core;
use super::event_key::EventKey;
use super::timers::Timer;
use crate::mailbox::Mailer;

/// How often they are looked at: a few system calls for each. What could tell of a change of a file
/// also tells of our own writes, so waking up for it would cost more than this; of block devices
/// nothing tells but events of the whole machine.
const INTERVAL: Now = Now::from_secs(1);

/// Looks at volumes, each known by the number of its unit.
#[derive(Debug, Default)]
pub(super) struct VolumeWatch {
    in_flight: BTreeSet<u32>,
    /// Why volumes cannot be looked at, as the log has told.
    failed: BTreeMap<u32, String>,
}

impl VolumeWatch {
    /// Returns false if one is already in progress.
    fn begin(&mut self, unit: u32) -> bool {
        self.in_flight.insert(unit)
    }

    /// Returns the cause if the look has failed, and the one before it had not for the same cause:
    /// there is one each second.
    fn end(&mut self, unit: u32, failed: Option<&io::Error>) -> Option<String> {
        self.in_flight.remove(&unit);
        let Some(cause) = failed.map(io::Error::to_string) else {
            self.failed.remove(&unit);
            return None;
        };
        let before = self.failed.insert(unit, cause.clone());
        (before.as_ref() != Some(&cause)).then_some(cause)
    }
}

/// No core's device server numbers its requests up to this, so no request waits for the answer.
const NOBODYS: u64 = u64::MAX;

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Begins to look after volumes that can grow, if there are any.
    pub(super) fn watch(&mut self, now: Now) {
        let Some(front) = &self.front else { return };
        if front.volumes.iter().any(|volume| volume.can_grow()) {
            self.timers.set(now + INTERVAL, Timer::Watch);
        }
    }

    /// Has threads look at the volumes, each when it has answered the last time: a file system
    /// whose server is away can take any time for it.
    pub(super) fn watch_expired(&mut self, now: Now) {
        let Some(front) = &mut self.front else { return };
        let units = (0..)
            .map(UnitId::first)
            .zip(&front.volumes)
            .zip(&front.owners);
        for ((unit, volume), owner) in units {
            if !volume.can_grow() || !front.looks.begin(unit.slot) {
                continue;
            }
            let volume = Arc::clone(volume);
            let statistics = Arc::clone(&owner.state().statistics);
            let look = move || {
                statistics.look();
                volume.refresh().map(u64::from)
            };
            let op = FileOp::Apart {
                lane: BlockingLane::Watch,
                call: Box::new(look),
            };
            self.ring.file(EventKey::Watch(unit).token(), op);
        }
        self.watch(now);
    }

    /// A volume was looked at: tells the owner of its unit if it has changed.
    pub(super) fn looked_at(&mut self, unit: UnitId, result: &io::Result<u64>) {
        let Some(front) = &mut self.front else { return };
        if let Some(cause) = front.looks.end(unit.slot, result.as_ref().err()) {
            let name = front.flushes.name(unit.index());
            tracing::warn!("{name}: cannot be watched for changes: {cause}");
        }
        let Some(volume) = front.volumes.get(unit.index()) else {
            return;
        };
        if matches!(result, Ok(changed) if *changed != 0) {
            let change = UnitChange::Medium(volume.traits());
            let request = OwnerRequest {
                core: self.id,
                id: NOBODYS,
                nexus: None,
                change,
            };
            self.owner(unit, Input::Request(request));
        }
    }
}

#[cfg(test)]
mod tests;
