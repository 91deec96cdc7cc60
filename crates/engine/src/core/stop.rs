//! Graceful shutdown: initiators are asked to log out, then volumes are flushed, then they end
//! what they have with others.

use ::io::ring::Ring;
use block::lease::BlockLease;
use scsi::medium::{Extent, MediumOp, MediumResult, Now};
use scsi::unit::CoreId;

use super::Core;
use super::connection::ConnectionPhase;
use super::timers::Timer;
use crate::mailbox::{CoreMessage, Mailer};

/// How long initiators have to log out after they were asked to.
const GRACE_SECONDS: u16 = 5;

/// How long volumes are flushed at the end before those are named that are not done.
const FLUSH_TIME: Now = Now::from_secs(2);

/// How long the sessions of volumes have to end.
const LEAVE_TIME: Now = Now::from_secs(2);

/// Flushes at the end are told from the device server's operations by this bit.
const FLUSH: u64 = 1 << 63;

/// How far the end has come.
#[derive(Default)]
pub(super) struct CoreStop {
    stopping: bool,
    /// This core has told that it has no sessions any more.
    told: bool,
    /// On core 0: how many have told so.
    cores: u16,
    /// On core 0: volumes that are not flushed yet.
    flushing: usize,
    leave: CoreShutdown,
}

/// How far a core is with its volumes, once they are flushed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CoreShutdown {
    #[default]
    NotYet,
    /// They end what they have with others.
    Begun,
    /// They have had their time.
    Late,
}

impl CoreStop {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Asks every initiator to log out, and gives them some time.
    pub(super) fn stop(&mut self, now: Now) {
        self.stop.stopping = true;
        self.ring.stop_listening();
        self.rdma.listeners.clear();
        if let Some(control) = &mut self.control {
            control.registry.close();
        }
        for key in self.connections.keys() {
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            if let ConnectionPhase::Session { session, .. } = &mut connection.phase {
                session.request_logout(now, GRACE_SECONDS);
                self.session_events(now, key);
                self.mark_dirty(key.slot);
            } else {
                self.hang_up(key);
            }
        }
        self.leave_fc_ports(now);
        self.timers
            .set(now + Now::from_secs(u64::from(GRACE_SECONDS)), Timer::Stop);
        self.check_stopped();
    }

    /// Lets the volumes of this core end what they have with others.
    pub(super) fn leave(&mut self, now: Now) {
        self.stop.leave = CoreShutdown::Begun;
        for volume in self.volumes.keys() {
            self.submit(now, volume, |handle, cx| handle.leave(cx));
        }
        self.timers.set(now + LEAVE_TIME, Timer::Leave);
    }

    pub(super) fn leave_expired(&mut self) {
        self.stop.leave = CoreShutdown::Late;
    }

    /// Whether it is time to leave the loop.
    #[must_use]
    pub fn has_left(&self) -> bool {
        match self.stop.leave {
            CoreShutdown::NotYet => false,
            CoreShutdown::Begun => self.volumes.have_left() && self.have_fc_ports_left(),
            CoreShutdown::Late => true,
        }
    }

    /// The initiators that did not log out have had their time.
    pub(super) fn stop_expired(&mut self) {
        for key in self.connections.keys() {
            self.hang_up(key);
        }
    }

    /// Tells core 0 when the last connection of a core that stops has ended.
    pub(super) fn check_stopped(&mut self) {
        if self.stop.stopping && !self.stop.told && self.connections.is_empty() {
            self.stop.told = true;
            self.post(CoreId(0), CoreMessage::Stopped(self.id));
        }
    }

    /// A core has no sessions any more; after the last, the volumes are flushed.
    pub(super) fn stopped(&mut self, now: Now, _core: CoreId) {
        self.stop.cores += 1;
        if self.stop.cores < self.post.cores() {
            return;
        }
        let units = self.units.all();
        self.stop.flushing = units.len();
        self.timers.set(now + FLUSH_TIME, Timer::Flush);
        for (unit, volume) in units {
            let op = MediumOp::Flush {
                extent: Extent::new(0, 0),
            };
            self.submit(now, volume, |handle, cx| {
                handle.submit(cx, FLUSH | u64::from(unit.slot), op);
            });
        }
        self.leave_when_flushed();
    }

    /// Every core may leave once all volumes are flushed.
    fn leave_when_flushed(&mut self) {
        if self.stop.flushing == 0 {
            for core in 0..self.post.cores() {
                self.post(CoreId(core), CoreMessage::Leave);
            }
        }
    }

    /// Logs what the end waits for, and that a second signal shortens it.
    pub(super) fn flush_expired(&mut self) {
        let waiting = self
            .control
            .as_ref()
            .and_then(|control| control.flushes.waiting());
        if let Some(line) = waiting {
            tracing::warn!("{line}");
        }
    }

    /// Takes the result of a flush at the end; returns whether `id` is one.
    pub(super) fn flushed(&mut self, id: u64, result: &MediumResult<BlockLease>) -> bool {
        if id & FLUSH == 0 {
            return false;
        }
        let volume = (id & !FLUSH) as u32;
        if let Some(control) = &self.control {
            control
                .flushes
                .flushed(volume, result.as_ref().map(|_| ()).map_err(|error| *error));
        }
        self.stop.flushing -= 1;
        self.leave_when_flushed();
        true
    }
}
