//! Sockets that a thread which spins receives from by itself.
//!
//! An armed receive costs the kernel a wait queue, a piece of work for our thread when bytes come,
//! and another entry for it to be done. While the thread spins, a plain `recv` that finds nothing
//! is cheaper than that, if there are few sockets. Before it sleeps the kernel gets them all.

use std::time::Duration;

use super::UringRing;

/// A ring with more sockets leaves all of them to the kernel: each would be asked at every turn,
/// and those that are asked here would be heard before the others.
pub(super) const HOT_MAX: usize = 4;

pub(super) struct HotSockets {
    /// Those whose receive the kernel does not have.
    keys: Vec<u32>,
    spins: bool,
}

impl HotSockets {
    pub(super) fn new() -> Self {
        Self {
            keys: Vec::with_capacity(HOT_MAX),
            spins: false,
        }
    }

    /// Whether the thread spins, with few sockets.
    pub(super) const fn spins(&self) -> bool {
        self.spins
    }

    /// Takes a socket that is to be received from; `false` if the kernel is to have it.
    pub(super) fn take(&mut self, key: u32) -> bool {
        if self.spins {
            self.keys.push(key);
        }
        self.spins
    }

    /// The ring, which has `sockets`, is about to wait for `timeout`. `has_buffers` tells whether
    /// the kernel has left any to receive in.
    pub(super) fn before_wait(
        &mut self,
        timeout: Option<Duration>,
        sockets: usize,
        has_buffers: bool,
    ) {
        self.spins = timeout == Some(Duration::ZERO) && sockets <= HOT_MAX && has_buffers;
    }

    /// The next one that the kernel is to have now.
    pub(super) fn next_cold(&mut self) -> Option<u32> {
        if self.spins { None } else { self.keys.pop() }
    }

    /// Tries each of them, and lets go of those that `is_over` tells to be over.
    pub(super) fn try_each(&mut self, mut is_over: impl FnMut(u32) -> bool) {
        self.keys.retain(|key| !is_over(*key));
    }

    /// Lets go of a socket. Returns whether it was there.
    pub(super) fn forget(&mut self, key: u32) -> bool {
        let before = self.keys.len();
        self.keys.retain(|one| *one != key);
        self.keys.len() < before
    }
}

impl UringRing {
    /// Receives what is there, if this thread spins.
    pub(super) fn receive_hot(&mut self) {
        let (sockets, buffers, events) = (&mut self.sockets, &self.buffers, &mut self.events);
        self.hot.try_each(|key| {
            let event = sockets
                .get_mut(key as usize)
                .and_then(|socket| socket.received_now(buffers));
            let is_over = event.is_some();
            events.extend(event);
            is_over
        });
    }
    /// Begins the send that a socket was asked for, and carries it out if this thread spins.
    pub(super) fn send_copied(&mut self, key: u32) {
        if self.hot.spins()
            && let Some(socket) = self.sockets.get_mut(key as usize)
            && let Some(sent) = socket.sent_now()
        {
            return self.events.push_back(sent);
        }
        self.submit_send(key);
    }
}
