//! Listening sockets.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::{cqueue, opcode, squeue, types};
use slab::Slab;

use super::socket::result_of;
use crate::ring::lend::Received;
use crate::ring::{ACCEPT_PAUSE, RingEvent, Token};

/// Listening sockets, each with one multishot accept.
#[derive(Default)]
pub(super) struct Listeners {
    listeners: Slab<Listener>,
    /// When those without an accept are tried again.
    paused_until: Option<Instant>,
}

struct Listener {
    fd: OwnedFd,
    token: Token,
    /// The kernel has an accept for it.
    armed: bool,
    /// Nothing is told of it any more; it goes when its accept is over.
    stopped: bool,
}

impl Listeners {
    /// Adds a socket, to be armed.
    pub(super) fn add(&mut self, fd: OwnedFd, token: Token) -> io::Result<u32> {
        // A non-blocking socket would make accept fail instead of wait.
        rustix::io::ioctl_fionbio(&fd, false)?;
        let listener = Listener {
            fd,
            token,
            armed: false,
            stopped: false,
        };
        Ok(self.listeners.insert(listener) as u32)
    }

    /// The entry for a listening socket's accept.
    pub(super) fn arm(&mut self, key: u32) -> Option<squeue::Entry> {
        let listener = self.listeners.get_mut(key as usize)?;
        listener.armed = true;
        let accept = opcode::AcceptMulti::new(types::Fd(listener.fd.as_raw_fd()));
        Some(accept.flags(libc::SOCK_CLOEXEC).build())
    }

    /// Forgets those with such a token. Returns those whose accept is to be canceled.
    pub(super) fn stop(&mut self, which: impl Fn(Token) -> bool) -> Vec<u32> {
        let goes = |listener: &Listener| which(listener.token);
        self.listeners.retain(|_, one| one.armed || !goes(one));
        if self.listeners.iter().all(|(_, one)| one.armed) {
            self.paused_until = None;
        }
        let listeners = self.listeners.iter_mut();
        let stopped = listeners.filter(|(_, one)| which(one.token) && !one.stopped);
        let stop = |(key, listener): (usize, &mut Listener)| {
            listener.stopped = true;
            key as u32
        };
        stopped.map(stop).collect()
    }

    /// How long accepting is still paused, if it is.
    pub(super) fn pause_left(&self) -> Option<Duration> {
        let until = self.paused_until?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Those that are to be armed again now.
    pub(super) fn resume(&mut self) -> Vec<u32> {
        if self.pause_left() != Some(Duration::ZERO) {
            return Vec::new();
        }
        self.paused_until = None;
        let idle = self
            .listeners
            .iter()
            .filter(|(_, listener)| !listener.armed);
        idle.map(|(key, _)| key as u32).collect()
    }

    /// Takes a completion. Returns an event, and whether the accept is to be armed again.
    pub(super) fn accepted(
        &mut self,
        key: u32,
        completion: &cqueue::Entry,
    ) -> (Option<RingEvent<Received>>, bool) {
        let socket = accepted_socket(completion);
        let Some(listener) = self.listeners.get_mut(key as usize) else {
            return (None, false);
        };
        listener.armed = cqueue::more(completion.flags());
        if listener.stopped {
            if !listener.armed {
                self.listeners.remove(key as usize);
            }
            return (None, false);
        }
        let again = !listener.armed;
        match socket {
            Ok(socket) => {
                // One that is gone already has no peer, and needs no handling.
                let peer = crate::tcp::peer_address(&socket).ok();
                let token = listener.token;
                let event = peer.map(|peer| RingEvent::Accepted {
                    token,
                    socket,
                    peer,
                });
                (event, again)
            }
            Err(error) if is_passing(&error) => (None, again),
            Err(cause) => {
                // There are no descriptors, or no memory: trying at once would be a busy loop.
                self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                (Some(RingEvent::NotAccepted { cause }), false)
            }
        }
    }
}

/// The socket that came with a completion.
pub(super) fn accepted_socket(completion: &cqueue::Entry) -> io::Result<OwnedFd> {
    let fd = result_of(completion)?;
    // SAFETY: a descriptor that accept has made, and that has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whether an error is about the one connection only.
fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EINTR, libc::ECONNABORTED, libc::EPROTO];
    error
        .raw_os_error()
        .is_some_and(|errno| passing.contains(&errno))
}
