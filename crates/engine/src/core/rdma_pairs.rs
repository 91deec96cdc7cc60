//! Queue pairs of RDMA devices on a core: how they sleep, wake, and take their part in a turn.
//!
//! A pair that is *awake* is polled each turn, which is no system call. Before the core sleeps each
//! of them is armed, and polled once more; those of which nothing came sleep too, until the one
//! descriptor that the core waits for tells of them. On a core that never sleeps, a pair with
//! nothing to tell goes to sleep by itself: polling it for ever would cost all others.

use std::time::Duration;

use ::io::rdma::{RdmaDeviceEvents, RdmaListener, RdmaMemory, RdmaPair, RdmaWatch};
use ::io::ring::Ring;
use scsi::medium::Now;
use scsi::nexus::NexusId;

use super::Core;
use super::connection::CoreConnection;
use super::event_key::{EventKey, SlotKey};
use crate::mailbox::Mailer;

/// What a core has for RDMA devices.
#[derive(Default)]
pub(super) struct CoreRdma {
    /// What its pairs move data from and to.
    pub(super) memory: RdmaMemory,
    /// On core 0: the portals that devices listen on, by their numbers.
    pub(super) listeners: Vec<(u32, RdmaListener)>,
    /// On core 0: the devices that have taken connections.
    pub(super) devices: Vec<RdmaDeviceEvents>,
    /// When it was told last that a connection was refused.
    pub(super) told_refusal: Option<Now>,
    /// What wakes it, once there was something to wait for.
    watch: Option<RdmaWatch>,
    /// The ring waits for that.
    is_watched: bool,
    awake: Vec<AwakePair>,
}

/// A pair that is polled each turn.
#[derive(Clone, Copy)]
struct AwakePair {
    key: SlotKey,
    /// For so many turns nothing has come.
    idle: u32,
}

/// What a watch calls a listener; pairs are called by their slots.
const LISTENER: u64 = 1 << 63;

/// What a watch calls any device.
pub(super) const DEVICE: u64 = LISTENER | 1 << 62;

/// Turns without anything after which a pair sleeps, though its core does not. A turn takes some
/// 20 us then, and to wake a pair costs two system calls.
const IDLE_TURNS: u32 = 64;

/// How often a pair is asked within a turn, a command each time: for all of the widest window. What
/// comes then waits for the next turn, as its peer may send faster than it is answered.
const ROUNDS_MAX: usize = 128;

impl CoreRdma {
    /// A pair goes to another core.
    pub(super) fn forget(&self, pair: &RdmaPair) {
        if let Some(watch) = &self.watch {
            watch.remove(pair);
        }
    }

    pub(super) fn watch(&mut self) -> std::io::Result<&RdmaWatch> {
        match &mut self.watch {
            Some(watch) => Ok(watch),
            none => Ok(none.insert(RdmaWatch::new()?)),
        }
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// A connection over a device is here from now on. It is closed if nothing can wait for it.
    pub(super) fn add_pair(&mut self, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let Some(pair) = connection.pair() else {
            return;
        };
        let added = self.rdma.watch();
        let added = added.and_then(|watch| watch.add(pair, number_of(key)));
        if let Err(cause) = added {
            tracing::error!("cannot wait for an RDMA connection: {cause}; see ulimit -n");
            return self.hang_up(key);
        }
        self.keep_awake(key);
        self.watch_rdma();
    }

    /// Waits for a listener, on core 0.
    pub(super) fn add_rdma_listener(&mut self, number: u32, listener: RdmaListener) {
        let watch = self.rdma.watch();
        let name = LISTENER | u64::from(number);
        match watch.and_then(|watch| watch.add_listener(&listener, name)) {
            Ok(()) => self.rdma.listeners.push((number, listener)),
            Err(cause) => {
                let portal = listener.portal();
                tracing::error!("cannot listen for RDMA on {portal}: {cause}; see ulimit -n");
                self.tell_device_vanished(number);
            }
        }
        self.watch_rdma();
    }

    /// Has the ring wait for whatever sleeps.
    fn watch_rdma(&mut self) {
        let Some(watch) = self.rdma.watch.as_ref().filter(|_| !self.rdma.is_watched) else {
            return;
        };
        let token = EventKey::Rdma.token();
        match self.ring.watch(watch.descriptor(), token) {
            Ok(()) => self.rdma.is_watched = true,
            Err(cause) => tracing::error!("cannot wait for RDMA devices: {cause}"),
        }
    }

    /// Something of what sleeps has something to tell.
    pub(super) fn rdma_ready(&mut self, now: Now) {
        self.rdma.is_watched = false;
        let Some(watch) = &mut self.rdma.watch else {
            return;
        };
        let ready: Vec<_> = watch.ready().collect();
        for number in ready {
            if number == DEVICE {
                self.rdma.tell_of_devices();
            } else if number & LISTENER != 0 {
                self.rdma_requests(now, number as u32);
            } else {
                self.wake_pair(key_of(number));
            }
        }
        self.watch_rdma();
    }

    fn wake_pair(&mut self, key: SlotKey) {
        let connection = self.connections.get(key);
        if let Some(mut device) = connection.and_then(CoreConnection::device) {
            device.wake();
            self.keep_awake(key);
        }
    }

    /// Has a pair polled each turn.
    pub(super) fn keep_awake(&mut self, key: SlotKey) {
        if let Some(connection) = self.connections.get(key)
            && !std::mem::replace(&mut connection.is_awake, true)
        {
            self.rdma.awake.push(AwakePair { key, idle: 0 });
        }
    }

    /// Hears all pairs that are awake; returns whether anything has come.
    #[inline]
    pub(super) fn hear_pairs(&mut self, now: Now) -> bool {
        !self.rdma.awake.is_empty() && self.hear_awake(now)
    }

    #[cold]
    fn hear_awake(&mut self, now: Now) -> bool {
        let (mut any, mut at) = (false, 0);
        while let Some(&AwakePair { key, idle }) = self.rdma.awake.get(at) {
            let heard = self.hear_pair(now, key);
            any |= heard;
            let idle = if heard { 0 } else { idle + 1 };
            if idle < IDLE_TURNS || !self.falls_asleep(key) {
                self.rdma.awake[at].idle = idle;
                at += 1;
            } else {
                self.rdma.awake.swap_remove(at);
            }
        }
        any
    }

    /// Has a connection hear what came by its pair; returns whether anything has.
    fn hear_pair(&mut self, now: Now, key: SlotKey) -> bool {
        let mut any = false;
        for _ in 0..ROUNDS_MAX {
            let connection = self.connections.get(key);
            let Some(mut device) = connection.and_then(CoreConnection::device) else {
                return any;
            };
            let heard = device.hear(now);
            if device.is_gone() {
                self.hang_up(key);
                return true;
            }
            let progressed = self.events(now, key);
            self.run_until_quiet(now);
            if !heard && !progressed {
                break;
            }
            any = true;
        }
        if any {
            self.mark_dirty(key.slot);
            self.arm(now, key);
        }
        any
    }

    /// Arms a pair; returns whether it sleeps from now on, or is no more.
    fn falls_asleep(&mut self, key: SlotKey) -> bool {
        let Some(connection) = self.connections.get(key) else {
            return true;
        };
        let has_more = connection.device().is_some_and(|mut device| device.arm());
        connection.is_awake = has_more;
        !has_more
    }

    /// How long the ring may wait, of `timeout`: to be asked before it does. Pairs that are awake
    /// fall asleep with the core.
    #[inline]
    pub fn may_wait(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        self.spins = timeout == Some(Duration::ZERO);
        if self.rdma.awake.is_empty() || self.spins {
            return timeout;
        }
        self.fall_asleep(timeout)
    }

    #[cold]
    fn fall_asleep(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        let mut at = 0;
        while let Some(&AwakePair { key, .. }) = self.rdma.awake.get(at) {
            if self.falls_asleep(key) {
                self.rdma.awake.swap_remove(at);
            } else {
                at += 1;
            }
        }
        if self.rdma.awake.is_empty() {
            timeout
        } else {
            Some(Duration::ZERO)
        }
    }

    /// Has a connection over a device say what it has to say. What it waits for then is polled for.
    pub(super) fn post_by_pair(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key).filter(|one| !one.is_leaving()) else {
            return;
        };
        let Some(is_over) = connection.device().map(|mut device| device.post()) else {
            return;
        };
        if let Some(bytes) = connection.data_in_queued() {
            self.device.data_in_queued(NexusId(key.slot), bytes);
        }
        self.keep_awake(key);
        if is_over {
            self.all_sent(now, key);
        }
    }
}

fn number_of(key: SlotKey) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.slot)
}

fn key_of(number: u64) -> SlotKey {
    SlotKey {
        slot: number as u32,
        generation: (number >> 32) as u32,
    }
}
