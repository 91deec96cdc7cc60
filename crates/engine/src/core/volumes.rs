//! What goes to the volumes of a core, and those that grow while they are served, or change in what
//! else is told of them.

mod looks;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use ::io::ring::{BlockingLane, FileOp, Ring};
use block::volume::{Context, Handle, HandleEvent, HandleId};
use block::volumes::SharedResources;
use rustix::io::Errno;
use scsi::medium::Now;
use scsi::owner::{Input, OwnerRequest, UnitChange};
use scsi::unit::UnitId;

use super::event_key::EventKey;
use super::timers::Timer;
use super::{ControlCore, ControlUnit, Core, Vanished};
use crate::mailbox::Mailer;
use looks::{DueLook, LookQueue, LookResult};

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Calls back what a volume has lent for reading.
    pub(super) fn recall(&mut self, unit: UnitId) {
        let volume = self.units.volume(unit);
        match volume.and_then(|volume| self.volumes.recall(volume)) {
            Some(recall) => self.recalls.push((unit, recall)),
            None => self.device.recalled(unit),
        }
    }

    /// Tells the device server what has come back; returns whether anything has.
    pub(super) fn look_at_recalls(&mut self) -> bool {
        if self.recalls.is_empty() {
            return false;
        }
        let before = self.recalls.len();
        let device = &mut self.device;
        self.recalls.retain(|(unit, recall)| {
            let over = recall.is_over();
            if over {
                device.recalled(*unit);
            }
            !over
        });
        self.recalls.len() < before
    }

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
/// nothing tells but events of the whole machine. However many they are, this core wakes up twice
/// for it, and a thread once: less than twice a second.
const INTERVAL: Now = Now::from_secs(2);

/// Threads that look at the same time, at the most: more would wait for room in their lane.
const THREADS: u32 = 4;

/// Looks at volumes, each known by its unit.
#[derive(Debug, Default)]
pub(super) struct VolumeWatch {
    /// Those that are to be looked at, or are, or were and have not been told of.
    in_flight: BTreeSet<UnitId>,
    /// Why volumes cannot be looked at, as the log has told.
    failed: BTreeMap<UnitId, String>,
    /// The timer is set.
    is_set: bool,
    /// What threads are to do.
    queue: Arc<LookQueue>,
    /// How many threads do it.
    threads: u32,
}

impl VolumeWatch {
    /// Returns the cause if the look has failed, and the one before it had not for the same cause:
    /// there is one every two seconds.
    fn end(&mut self, unit: UnitId, failed: Option<&io::Error>) -> Option<String> {
        self.in_flight.remove(&unit);
        let Some(cause) = failed.map(io::Error::to_string) else {
            self.failed.remove(&unit);
            return None;
        };
        let before = self.failed.insert(unit, cause.clone());
        (before.as_ref() != Some(&cause)).then_some(cause)
    }

    /// A unit is gone, or has another volume: a look at the one before tells nothing any more.
    pub(super) fn forget(&mut self, unit: UnitId) {
        self.in_flight.remove(&unit);
        self.failed.remove(&unit);
    }
}

/// No core's device server numbers its requests up to this, so no request waits for the answer.
const NOT_AWAITED: u64 = u64::MAX;

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

    /// Has a thread look at all volumes, each when it has answered the last time: a file system
    /// whose server is away can take any time for it. The next thread then does what it has left.
    pub(super) fn watch_expired(&mut self, now: Now) {
        // A thread that is stuck has left what it saw before.
        self.take_looks();
        let Some(control) = &mut self.control else {
            return;
        };
        control.looks.is_set = false;
        let due = control.growing();
        let looks = &mut control.looks;
        let due = due
            .into_iter()
            .filter(|look| looks.in_flight.insert(look.unit));
        looks.queue.add(due);
        if looks.threads < THREADS && looks.queue.is_any_due() {
            looks.threads += 1;
            let queue = Arc::clone(&looks.queue);
            let look = move || {
                queue.work();
                Ok(0)
            };
            let op = FileOp::Apart {
                lane: BlockingLane::Watch,
                call: Box::new(look),
            };
            self.ring.file(EventKey::Watch.token(), op);
        }
        self.watch(now);
    }

    /// A thread has nothing to look at any more.
    pub(super) fn look_ended(&mut self) {
        if let Some(control) = &mut self.control {
            control.looks.threads = control.looks.threads.saturating_sub(1);
        }
        self.take_looks();
    }

    /// Takes what threads have seen.
    fn take_looks(&mut self) {
        let control = self.control.as_ref();
        let seen = control.map(|control| control.looks.queue.take_seen());
        for seen in seen.into_iter().flatten() {
            self.looked_at(&seen);
        }
    }

    /// A volume was looked at: tells the owner of its unit if it has changed.
    fn looked_at(&mut self, seen: &LookResult) {
        let (unit, failed) = (seen.unit, seen.has_changed.as_ref().err());
        let Some(control) = &mut self.control else {
            return;
        };
        let Some(entry) = control.unit(unit) else {
            return;
        };
        if !Arc::ptr_eq(&entry.volume, &seen.volume) {
            return;
        }
        if failed.is_some_and(is_gone) {
            (control.vanished)(Vanished::Volume(unit));
        }
        if let Some(cause) = control.looks.end(unit, failed) {
            let name = control.unit(unit).map_or("a volume", |unit| &unit.name);
            tracing::warn!("{name}: cannot be watched for changes: {cause}");
        }
        if matches!(seen.has_changed, Ok(true)) {
            let change = UnitChange::Medium(seen.volume.traits());
            let request = OwnerRequest {
                core: self.id,
                id: NOT_AWAITED,
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
    fn growing(&self) -> Vec<DueLook> {
        let growing = self.units().filter(|unit| unit.volume.can_grow());
        let growing = growing.map(|unit| DueLook {
            unit: unit.id,
            volume: Arc::clone(&unit.volume),
            statistics: Arc::clone(&unit.owner.state().statistics),
        });
        growing.collect()
    }
}

#[cfg(test)]
mod tests;
