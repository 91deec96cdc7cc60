//! Listening sockets.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::net::{SocketAddrAny, SocketFlags};
use slab::Slab;

use super::{ReadinessSource, key};
use crate::ring::lend::Received;
use crate::ring::{ACCEPT_PAUSE, RingEvent, Token};

/// Connections taken from one listening socket before others have their turn.
const ACCEPTS_MAX: u32 = 64;

/// Listening sockets, registered level-triggered.
#[derive(Default)]
pub(super) struct EpollListeners {
    listeners: Slab<EpollListener>,
    /// Those that have connections, with how many may still be taken.
    ready: VecDeque<(u32, u32)>,
    /// When those that are paused are tried again.
    paused_until: Option<Instant>,
}

struct EpollListener {
    fd: OwnedFd,
    token: Token,
    paused: bool,
}

impl EpollListeners {
    pub(super) fn add(&mut self, epoll: &OwnedFd, fd: OwnedFd, token: Token) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        let entry = self.listeners.vacant_entry();
        let data = ReadinessSource::Listener(key(entry.key())).data();
        epoll::add(epoll, &fd, data, epoll::EventFlags::IN)?;
        entry.insert(EpollListener {
            fd,
            token,
            paused: false,
        });
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.listeners.clear();
        self.ready.clear();
        self.paused_until = None;
    }

    pub(super) fn remove(&mut self, token: Token) {
        self.listeners.retain(|_, listener| listener.token != token);
        let listeners = &self.listeners;
        self.ready
            .retain(|(key, _)| listeners.contains(*key as usize));
    }

    pub(super) fn note(&mut self, key: u32) {
        if self.ready.iter().all(|(ready, _)| *ready != key) {
            self.ready.push_back((key, ACCEPTS_MAX));
        }
    }

    /// How long accepting is still paused, if it is.
    pub(super) fn pause_left(&self) -> Option<Duration> {
        let until = self.paused_until?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Tries those again that were paused for long enough.
    pub(super) fn resume(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        if self.pause_left() != Some(Duration::ZERO) {
            return Ok(());
        }
        self.paused_until = None;
        for (at, listener) in &mut self.listeners {
            if std::mem::take(&mut listener.paused) {
                let data = ReadinessSource::Listener(key(at)).data();
                epoll::modify(epoll, &listener.fd, data, epoll::EventFlags::IN)?;
            }
        }
        Ok(())
    }

    /// The next connection.
    pub(super) fn accept(&mut self, epoll: &OwnedFd) -> Option<RingEvent<Received>> {
        while let Some((key, left)) = self.ready.pop_front() {
            let Some(listener) = self.listeners.get_mut(key as usize) else {
                continue;
            };
            let accepted = rustix::net::acceptfrom_with(&listener.fd, SocketFlags::CLOEXEC);
            if left > 1 && !matches!(&accepted, Err(error) if !is_passing(*error)) {
                self.ready.push_front((key, left - 1));
            }
            match accepted {
                Ok((socket, peer)) => {
                    return Some(RingEvent::Accepted {
                        token: listener.token,
                        socket,
                        peer: address(peer),
                    });
                }
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) if is_passing(error) => {}
                Err(cause) => {
                    self.pause(epoll, key);
                    let cause = cause.into();
                    return Some(RingEvent::NotAccepted { cause });
                }
            }
        }
        None
    }

    /// There are no descriptors, or no memory: looking again at once would be a busy loop, as the
    /// connection stays in the queue.
    fn pause(&mut self, epoll: &OwnedFd, at: u32) {
        let Some(listener) = self.listeners.get_mut(at as usize) else {
            return;
        };
        let data = ReadinessSource::Listener(at).data();
        listener.paused =
            epoll::modify(epoll, &listener.fd, data, epoll::EventFlags::empty()).is_ok();
        self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
    }
}

/// Whether an error is about the one connection only.
fn is_passing(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(error, Errno::INTR | Errno::CONNABORTED | Errno::PROTO)
}

/// The address of a peer; one that is not of IP (in tests) becomes 0.0.0.0:0.
fn address(peer: Option<SocketAddrAny>) -> SocketAddr {
    let address = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
    address.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
}
