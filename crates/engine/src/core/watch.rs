//! Volumes that grow while they are served, or change in what else is told of them.

use ::io::ring::Ring;
use scsi::medium::Now;
use scsi::owner::{Change, Input, Request};
use scsi::unit::UnitId;

use super::Core;
use super::timers::Timer;
use crate::mail::Post;

/// How often they are looked at: one system call for each. What could tell of a change of a file
/// also tells of our own writes, so waking up for it would cost more than this; of block devices
/// nothing tells but events of the whole machine.
const INTERVAL: Now = Now::from_secs(1);

/// No core's device server numbers its requests up to this, so the answer is nobody's.
const NOBODYS: u64 = u64::MAX;

impl<R: Ring, P: Post> Core<R, P> {
    /// Begins to look after volumes that can grow, if there are any.
    pub(super) fn watch(&mut self, now: Now) {
        let Some(front) = &self.front else { return };
        if front.volumes.iter().any(|volume| volume.can_grow()) {
            self.timers.set(now + INTERVAL, Timer::Watch);
        }
    }

    /// Tells the owners of units whose volumes have changed.
    pub(super) fn watch_expired(&mut self, now: Now) {
        let Some(front) = &self.front else { return };
        let volumes = front.volumes.clone();
        for (unit, volume) in (0..).map(UnitId).zip(&volumes) {
            match volume.refresh() {
                Ok(false) => {}
                Ok(true) => {
                    let change = Change::Medium(volume.traits());
                    let request = Request {
                        core: self.id,
                        id: NOBODYS,
                        nexus: None,
                        change,
                    };
                    self.owner(unit, Input::Request(request));
                }
                Err(cause) => tracing::warn!("cannot look after {volume:?}: {cause}"),
            }
        }
        self.watch(now);
    }
}
