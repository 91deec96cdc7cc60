//! Deadlines of connections.
//!
//! A connection's deadline moves with nearly every PDU, so it is not looked up again each time:
//! the heap keeps one instant for each connection, and only when that has come the connection is
//! asked whether it still means it. An idle session costs one look each NOP interval.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ::io::ring::Ring;
use scsi::medium::Now;

use super::Core;
use super::connection::Phase;
use super::token::Key;
use crate::mail::Post;

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Now = Now::from_millis(1);

/// No connection has this slot: timers of the core itself.
const NOBODY: u32 = u32::MAX;

/// Nor this one: timers of volumes, by number.
const VOLUME: u32 = u32::MAX - 1;

pub(super) fn volume_timer(volume: u32) -> Key {
    Key {
        slot: VOLUME,
        generation: volume,
    }
}

/// Initiators have had their time to log out.
pub(super) const STOP: Key = Key {
    slot: NOBODY,
    generation: 0,
};
/// Volumes have had their time to end what they have with others.
pub(super) const LEAVE: Key = Key {
    slot: NOBODY,
    generation: 3,
};
/// Look after volumes that can grow.
pub(super) const WATCH: Key = Key {
    slot: NOBODY,
    generation: 1,
};
/// Write what the journal has not told.
pub(super) const SWEEP: Key = Key {
    slot: NOBODY,
    generation: 2,
};

#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Now, u32, u32)>>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Now, key: Key) {
        self.heap.push(Reverse((at, key.slot, key.generation)));
    }

    pub(super) fn next(&self) -> Option<Now> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    fn pop(&mut self, now: Now) -> Option<(Now, Key)> {
        let &Reverse((at, slot, generation)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, Key { slot, generation }))
    }
}

impl<R: Ring, P: Post> Core<R, P> {
    /// Calls every connection whose deadline has passed.
    pub(super) fn expire(&mut self, now: Now) {
        while let Some((at, key)) = self.timers.pop(now) {
            match key.slot {
                NOBODY => {
                    self.expired(now, key);
                    continue;
                }
                VOLUME => {
                    self.volume_expired(now, key.generation);
                    continue;
                }
                _ => {}
            }
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            if connection.timer != Some(at) {
                continue;
            }
            connection.timer = None;
            self.call(now, key);
            self.mark_dirty(key.slot);
            self.arm(now, key);
        }
    }

    fn expired(&mut self, now: Now, key: Key) {
        match key {
            STOP => self.stop_expired(),
            LEAVE => self.leave_expired(),
            WATCH => self.watch_expired(now),
            _ => self.sweep(now),
        }
    }

    /// Lets a connection whose deadline may have come do what is to be done then.
    fn call(&mut self, now: Now, key: Key) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        if connection.closing.is_some_and(|at| at <= now) {
            return self.hang_up(key);
        }
        match &mut connection.phase {
            Phase::Login(login) | Phase::Moving(login) => {
                login.timeout(now);
                self.login_events(now, key);
            }
            Phase::Session { session, .. } => {
                if session.next_deadline().is_some_and(|at| at <= now) {
                    session.timeout(now);
                    self.session_events(now, key);
                }
            }
            Phase::Ending { .. } => {}
        }
    }

    /// Sees to it that the connection is called when its deadline comes, or earlier.
    pub(super) fn arm(&mut self, now: Now, key: Key) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let deadline = connection.closing.or(match &connection.phase {
            Phase::Login(login) | Phase::Moving(login) => login.next_deadline(),
            Phase::Session { session, .. } => session.next_deadline(),
            Phase::Ending { .. } => None,
        });
        let Some(at) = deadline.map(|at| at.max(now + SHORTEST)) else {
            return;
        };
        if connection.timer.is_none_or(|set| at < set) {
            connection.timer = Some(at);
            self.timers.set(at, key);
        }
    }
}
