//! What goes to the volumes of a core, and those that grow while they are served, or change in what
//! else is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use ::io::ring::{BlockingLane, FileOp, Ring};
use block::volume::{Context, Handle, HandleEvent, HandleId, Volume};
use block::volumes::SharedResources;
use rustix::io::Errno;
use scsi::medium::Now;
use scsi::owner::{Input, OwnerRequest, UnitChange};
use scsi::statistics::UnitStatistics;
use scsi::unit::UnitId;

use super::event_key::EventKey;
use super::timers::Timer;
use super::{ControlCore, ControlUnit, Core};
use crate::mailbox::Mailer;

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Lets a volume act.
    pub(super) fn submit(
        &mut self,
        now: Now,
        volume: u32,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        let mut around = SharedResources {
            ring: &mut self.ring,
            done: &mut self.done,
            now,
        };
        if let Some(at) = self.volumes.act(volume, &mut around, act) {
            self.timers.set(at, Timer::Volume(volume));
        }
    }

    /// Tells the volume of a node what has happened.
    pub(super) fn tell_volume(
        &mut self,
        now: Now,
        (node, slot): (HandleId, u32),
        event: HandleEvent<'_>,
    ) {
        if let Some(volume) = self.volumes.of_node(node) {
            self.submit(now, volume, |handle, cx| {
                handle.event(cx, node, slot, event);
            });
        }
    }

    /// An instant has come that was set for a volume.
    pub(super) fn volume_expired(&mut self, now: Now, volume: u32) {
        if self.volumes.expired(volume, now) {
            self.submit(now, volume, |handle, cx| handle.resume(cx));
        }
    }
}

/// How often they are looked at: a few system calls for each. What could tell of a change of a file
/// also tells of our own writes, so waking up for it would cost more than this; of block devices
/// nothing tells but events of the whole machine.
const INTERVAL: Now = Now::from_secs(1);

/// Looks at volumes, each known by its unit.
#[derive(Debug, Default)]
pub(super) struct VolumeWatch {
    in_flight: BTreeSet<UnitId>,
    /// Why volumes cannot be looked at, as the log has told.
    failed: BTreeMap<UnitId, String>,
    /// The timer is set.
    is_set: bool,
}

impl VolumeWatch {
    /// Returns false if one is already in progress.
    fn begin(&mut self, unit: UnitId) -> bool {
        self.in_flight.insert(unit)
    }

    /// Returns the cause if the look has failed, and the one before it had not for the same cause:
    /// there is one each second.
    fn end(&mut self, unit: UnitId, failed: Option<&io::Error>) -> Option<String> {
        self.in_flight.remove(&unit);
        let Some(cause) = failed.map(io::Error::to_string) else {
            self.failed.remove(&unit);
            return None;
        };
        let before = self.failed.insert(unit, cause.clone());
        (before.as_ref() != Some(&cause)).then_some(cause)
    }

    /// A unit is gone.
    pub(super) fn forget(&mut self, unit: UnitId) {
        self.failed.remove(&unit);
    }
}

/// No core's device server numbers its requests up to this, so no request waits for the answer.
const NOBODYS: u64 = u64::MAX;

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Begins to look after volumes that can grow, if there are any.
    pub(super) fn watch(&mut self, now: Now) {
        let Some(control) = &mut self.control else {
            return;
        };
        let can_grow = |unit: &ControlUnit| unit.volume.can_grow();
        if !control.looks.is_set && control.units().any(can_grow) {
            control.looks.is_set = true;
            self.timers.set(now + INTERVAL, Timer::Watch);
        }
    }

    /// Has threads look at the volumes, each when it has answered the last time: a file system
    /// whose server is away can take any time for it.
    pub(super) fn watch_expired(&mut self, now: Now) {
        let Some(control) = &mut self.control else {
            return;
        };
        control.looks.is_set = false;
        for (unit, volume, statistics) in control.growing() {
            if !control.looks.begin(unit) {
                continue;
            }
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
        let Some(control) = &mut self.control else {
            return;
        };
        if result.as_ref().is_err_and(is_gone) {
            (control.vanished)(unit);
        }
        if let Some(cause) = control.looks.end(unit, result.as_ref().err()) {
            let name = control.unit(unit).map_or("a volume", |unit| &unit.name);
            tracing::warn!("{name}: cannot be watched for changes: {cause}");
        }
        let Some(entry) = control.unit(unit) else {
            return;
        };
        if matches!(result, Ok(changed) if *changed != 0) {
            let change = UnitChange::Medium(entry.volume.traits());
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

/// Whether a device or the file system of a file is not there any more.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NODEV, Errno::NXIO, Errno::STALE, Errno::NOTCONN];
    Errno::from_io_error(error).is_some_and(|error| gone.contains(&error))
}

impl ControlCore {
    /// The units whose volumes can grow, and what counts for them.
    fn growing(&self) -> Vec<(UnitId, Arc<dyn Volume>, Arc<UnitStatistics>)> {
        let growing = self.units().filter(|unit| unit.volume.can_grow());
        let growing = growing.map(|unit| {
            let statistics = Arc::clone(&unit.owner.state().statistics);
            (unit.id, Arc::clone(&unit.volume), statistics)
        });
        growing.collect()
    }
}

#[cfg(test)]
mod tests;
