//! Deadlines of connections, of volumes, and of the core itself.
//!
//! A connection's deadline moves with nearly every PDU, so it is not looked up again each time:
//! the heap keeps one instant for each connection, and only when that has come the connection is
//! asked whether it still means it. An idle session costs one look each NOP interval.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ::io::ring::Ring;
use scsi::medium::Now;

use super::Core;
use super::connection::{ConnectionPhase, CoreConnection};
use super::event_key::SlotKey;
use crate::mailbox::Mailer;

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Now = Now::from_millis(1);

/// Deadlines of sessions are kept to the next multiple of this: all are long, and what many idle
/// ones ask their peers then leaves together, for one wake-up instead of hundreds.
const TOGETHER_MS: u64 = 250;

/// Whose instant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A connection may have a deadline.
    Connection(SlotKey),
    /// A Fibre Channel port, by number, may have a deadline.
    FcPort(u32),
    /// The same of a part of a port of another core.
    FcBranch(u32),
    /// A volume, by number, wants to be called.
    Volume(u32),
    /// Volumes are to be attached.
    Prepare,
    /// A change waits for locks.
    Change,
    /// Volumes that go have had their time.
    Retire,
    /// Initiators have had their time to log out.
    Stop,
    /// Volumes that are still being flushed at the end are to be named.
    Flush,
    /// Volumes have had their time to end what they have with others.
    Leave,
    /// Volumes that can grow are to be looked after.
    Watch,
    /// What the journal has not told is to be written.
    Sweep,
    /// Buffers may have been idle.
    Trim,
}

/// The instant for which something is in the heap, if it is: the earliest one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArmedTimer(Option<Now>);

impl ArmedTimer {
    /// Whether the instant that has come is the one that counts, which is over then.
    pub(super) fn is_over(&mut self, at: Now) -> bool {
        self.0.take_if(|set| *set == at).is_some()
    }
}

#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Now, Timer)>>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Now, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    pub(super) fn next(&self) -> Option<Now> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Has something called when its deadline comes, or earlier.
    #[inline]
    pub(super) fn arm_by(
        &mut self,
        now: Now,
        armed: &mut ArmedTimer,
        deadline: Option<Now>,
        timer: Timer,
    ) {
        let Some(at) = deadline.map(|at| at.max(now + SHORTEST)) else {
            return;
        };
        if armed.0.is_none_or(|set| at < set) {
            armed.0 = Some(at);
            self.set(at, timer);
        }
    }

    /// The same of a connection.
    pub(super) fn arm(&mut self, now: Now, connection: &mut CoreConnection) {
        let deadline = connection.closing.or(match &connection.phase {
            ConnectionPhase::Login(login) | ConnectionPhase::Moving(login) => {
                login.login.next_deadline()
            }
            ConnectionPhase::Session { session, .. } => session.next_deadline().map(coalesced),
            ConnectionPhase::Ending { .. } => None,
        });
        let timer = Timer::Connection(connection.key);
        self.arm_by(now, &mut connection.timer, deadline, timer);
    }

    fn pop(&mut self, now: Now) -> Option<(Now, Timer)> {
        let &Reverse((at, _)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(first)| first)
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Does whatever was to be done by now.
    pub(super) fn expire(&mut self, now: Now) {
        while let Some((at, timer)) = self.timers.pop(now) {
            match timer {
                Timer::Connection(key) => self.connection_expired(now, at, key),
                Timer::FcPort(fc_port) => self.fc_port_expired(now, at, fc_port),
                Timer::FcBranch(branch) => self.fc_branch_expired(now, at, branch),
                Timer::Volume(volume) => self.volume_expired(now, volume),
                Timer::Prepare => self.prepare_on(now),
                Timer::Change => self.change_expired(now),
                Timer::Retire => self.close_volumes(now),
                Timer::Stop => self.stop_expired(),
                Timer::Flush => self.flush_expired(),
                Timer::Leave => self.leave_expired(),
                Timer::Watch => self.watch_expired(now),
                Timer::Sweep => self.sweep(now),
                Timer::Trim => self.trim(),
            }
        }
    }

    fn connection_expired(&mut self, now: Now, at: Now, key: SlotKey) {
        let connection = self.connections.get(key);
        if !connection.is_some_and(|one| one.timer.is_over(at)) {
            return;
        }
        self.call(now, key);
        self.mark_dirty(key.slot);
        self.arm(now, key);
    }

    /// Runs the timers of a connection that have expired, if any.
    fn call(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        if connection.closing.is_some_and(|at| at <= now) {
            return self.hang_up(key);
        }
        match &mut connection.phase {
            ConnectionPhase::Login(login) | ConnectionPhase::Moving(login) => {
                login.login.timeout(now);
                self.login_events(now, key);
            }
            ConnectionPhase::Session { session, .. } => {
                if session.next_deadline().is_some_and(|at| at <= now) {
                    session.timeout(now);
                    self.session_events(now, key);
                }
            }
            ConnectionPhase::Ending { .. } => {}
        }
    }

    /// Sees to it that the connection is called when its deadline comes, or earlier.
    pub(super) fn arm(&mut self, now: Now, key: SlotKey) {
        if let Some(connection) = self.connections.get(key) {
            self.timers.arm(now, connection);
        }
    }
}

/// The next multiple of [`TOGETHER_MS`], in 64 bits: with 128 each division is a call.
fn coalesced(at: Now) -> Now {
    let whole = at.as_secs().saturating_mul(1000);
    let millis = whole.saturating_add(u64::from(at.subsec_millis()));
    Now::from_millis((millis / TOGETHER_MS + 1).saturating_mul(TOGETHER_MS))
}
