//! The ring for kernels and containers that have no io_uring.
//!
//! A socket is registered once, edge-triggered, for both directions, and what is known of its
//! readiness is kept here, so that no I/O costs an `epoll_ctl`, and a receive is tried only when
//! something is there. Sends are tried at once in `wait`. Bytes are received when the event is
//! asked for, in a buffer that is still in the cache from the one before. Files are read and
//! written by threads; those that lie in memory in `wait`, and what is in the cache.

mod listen;
mod socket;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use slab::Slab;

use self::listen::EpollListeners;
use self::socket::EpollSocket;
use super::bell::{Bell, DONE, WOKEN};
use super::blocking::{Blocking, BlockingJob, ImmediateJobs};
use super::file::PendingFile;
use super::lend::{Lender, Received};
use super::{
    FileOp, FileRing, PAUSE, Ring, RingEvent, SendBatch, SocketId, SocketRing, Token, Waker,
    busy_poll,
};
use crate::memory::drain_stores;

/// Events taken from the kernel at a time.
const POLLED_MAX: usize = 256;

/// Buffers to receive in. One is in use; the others are for a user that keeps one for longer than
/// the contract says.
const BUFFERS: u16 = 4;

/// A [`Ring`] over epoll.
pub struct EpollRing {
    epoll: OwnedFd,
    bell: Arc<Bell>,
    lender: Rc<Lender>,
    sockets: Slab<EpollSocket>,
    listeners: EpollListeners,
    watched: Slab<(Arc<OwnedFd>, Token)>,
    /// When pauses end. All are equally long, so the first is over first.
    paused: VecDeque<(Instant, Token)>,
    /// Before `files`, so that its threads have ended when the buffers go.
    blocking: Blocking,
    files: Slab<PendingFile>,
    /// Started by the next `wait`.
    jobs: Vec<(usize, BlockingJob)>,
    /// Done by the next `wait`, and by those after it.
    at_once: ImmediateJobs,
    done: Vec<(usize, io::Result<u64>)>,
    polled: Vec<epoll::Event>,
    /// Sockets with a receive that was asked for since the last `wait`.
    asked: Vec<u32>,
    /// Sockets with something to be received.
    readable: VecDeque<u32>,
    /// Sockets with something to be sent now.
    sendable: Vec<u32>,
    events: VecDeque<RingEvent<Received>>,
}

impl EpollRing {
    /// Opens a ring.
    ///
    /// # Errors
    ///
    /// No file descriptors, no memory.
    pub fn open() -> io::Result<Self> {
        // By as much as timers may be late otherwise, a pause would be twice as long.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = Bell::new()?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &*bell, ReadinessSource::Bell.data(), edge)?;
        Ok(Self {
            epoll,
            lender: Lender::new(BUFFERS)?,
            sockets: Slab::new(),
            listeners: EpollListeners::default(),
            watched: Slab::new(),
            paused: VecDeque::new(),
            files: Slab::new(),
            blocking: Blocking::new(&bell)?,
            bell,
            jobs: Vec::new(),
            at_once: ImmediateJobs::default(),
            done: Vec::new(),
            polled: Vec::with_capacity(POLLED_MAX),
            asked: Vec::new(),
            readable: VecDeque::new(),
            sendable: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// See [`AnyRing::busy_poll`](super::AnyRing::busy_poll).
    pub(super) fn busy_poll(&self, limit: Duration) -> io::Result<()> {
        busy_poll::of_epoll(&self.epoll, limit)
    }

    /// Waits for readiness and takes note of it.
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let now = Some(Duration::ZERO);
        let pauses = [self.listeners.pause_left(), self.rest_left()];
        let pauses = pauses.into_iter().flatten();
        let timeout = timeout.into_iter().chain(pauses).min();
        let timeout = if timeout == now || self.bell.sleep() {
            timeout
        } else {
            now
        };
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = if self.paused.is_empty() || timeout == Some(Timespec::default()) {
            timeout
        } else {
            self.rest(timeout)?
        };
        self.polled.clear();
        let polled = spare_capacity(&mut self.polled);
        match epoll::wait(&self.epoll, polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits as epoll would, which counts in milliseconds where Linux is older than 5.11. What came
    /// is then there at once.
    fn rest(&self, timeout: Option<Timespec>) -> io::Result<Option<Timespec>> {
        let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Some(Timespec::default())),
            Err(error) => Err(error.into()),
        }
    }

    /// How long the first pause goes on.
    fn rest_left(&self) -> Option<Duration> {
        let (end, _) = self.paused.front()?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    fn note_polled(&mut self) {
        for at in 0..self.polled.len() {
            let epoll::Event { flags, data } = self.polled[at];
            match ReadinessSource::of(data) {
                ReadinessSource::Bell => {}
                ReadinessSource::Listener(key) => self.listeners.note(key),
                ReadinessSource::Socket(key) => self.note_socket(key, flags),
                ReadinessSource::Watched(key) => self.note_watched(key),
            }
        }
    }

    fn note_socket(&mut self, key: u32, flags: epoll::EventFlags) {
        let Some(socket) = self.sockets.get_mut(key as usize) else {
            return;
        };
        socket.note(flags);
        if socket.may_receive() {
            self.readable.push_back(key);
        }
        if socket.may_send() {
            self.sendable.push(key);
        }
    }

    fn note_watched(&mut self, key: u32) {
        if let Some((fd, token)) = self.watched.try_remove(key as usize) {
            // It was registered, so it cannot fail.
            let _ = epoll::delete(&self.epoll, &fd);
            self.events.push_back(RingEvent::Ready { token });
        }
    }

    fn note_rested(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((_, token)) = self.paused.pop_front_if(|(end, _)| *end <= now) {
            self.events.push_back(RingEvent::Ready { token });
        }
    }

    /// Sends what can be sent.
    fn send_all(&mut self) {
        while let Some(key) = self.sendable.pop() {
            let sent = self
                .sockets
                .get_mut(key as usize)
                .and_then(EpollSocket::send);
            self.events.extend(sent);
        }
    }

    fn answer_bell(&mut self) {
        let rung = self.bell.answer();
        if rung & DONE != 0 {
            let mut done = std::mem::take(&mut self.done);
            self.blocking.done(&mut done);
            for (key, result) in done.drain(..) {
                self.file_over(key, result);
            }
            self.done = done;
        }
        if rung & WOKEN != 0 {
            self.events.push_back(RingEvent::Woken);
        }
    }

    fn do_at_once(&mut self) {
        while let Some((key, job)) = self.at_once.next() {
            match job.run_cached() {
                Ok(result) => self.file_over(key, result),
                Err(rest) => self.jobs.push((key, rest)),
            }
        }
    }

    fn file_over(&mut self, key: usize, result: io::Result<u64>) {
        let PendingFile { token, buffer } = self.files.remove(key);
        self.events.push_back(RingEvent::File {
            token,
            result,
            buffer,
        });
    }

    fn receive_next(&mut self) -> Option<RingEvent<Received>> {
        while let Some(key) = self.readable.pop_front() {
            let Some(socket) = self.sockets.get_mut(key as usize) else {
                continue;
            };
            if !socket.may_receive() {
                continue;
            }
            let Some(id) = self.lender.take() else {
                self.readable.push_front(key);
                return None;
            };
            match socket.receive(&self.lender, id) {
                None => self.lender.give_back(id),
                event => return event,
            }
        }
        None
    }
}

impl Ring for EpollRing {
    type Received = Received;

    fn listen(&mut self, listener: OwnedFd, token: Token) -> io::Result<()> {
        self.listeners.add(&self.epoll, listener, token)
    }

    fn stop_listening(&mut self) {
        self.listeners.clear();
        let accepted = |event: &RingEvent<_>| matches!(event, RingEvent::Accepted { .. });
        self.events.retain(|event| !accepted(event));
    }

    fn stop_listening_to(&mut self, token: Token) {
        self.listeners.remove(token);
    }

    fn release(&mut self, socket: SocketId) -> OwnedFd {
        let idle = self.sockets[socket.0 as usize].is_idle();
        assert!(idle, "a socket is released with operations under way");
        let socket = self.sockets.remove(socket.0 as usize).into_fd();
        // It was registered, so it cannot fail.
        let _ = epoll::delete(&self.epoll, &socket);
        socket
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        drain_stores();
        self.send_all();
        self.do_at_once();
        self.blocking.start(&mut self.jobs);
        let sockets = &self.sockets;
        let ready = |key: &u32| {
            sockets
                .get(*key as usize)
                .is_some_and(EpollSocket::may_receive)
        };
        self.readable.extend(self.asked.drain(..).filter(ready));
        let idle = self.events.is_empty() && self.readable.is_empty() && self.at_once.is_empty();
        self.listeners.resume(&self.epoll)?;
        self.poll(if idle { timeout } else { Some(Duration::ZERO) })?;
        self.note_polled();
        self.note_rested();
        self.send_all();
        self.answer_bell();
        Ok(())
    }

    fn next_event(&mut self) -> Option<RingEvent<Received>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.receive_next()
            .or_else(|| self.listeners.accept(&self.epoll))
    }

    fn pauses(&self) -> bool {
        !self.paused.is_empty()
    }

    fn has_idle(&self) -> bool {
        self.lender.has_idle()
    }

    fn trim(&mut self) {
        self.lender.trim();
    }

    fn waker(&self) -> Waker {
        Waker::new(&self.bell)
    }
}

impl SocketRing for EpollRing {
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<SocketId> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let entry = self.sockets.vacant_entry();
        let key = key(entry.key());
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        epoll::add(
            &self.epoll,
            &socket,
            ReadinessSource::Socket(key).data(),
            flags,
        )?;
        entry.insert(EpollSocket::new(socket));
        Ok(SocketId(key))
    }

    fn receive(&mut self, socket: SocketId, token: Token) {
        if let Some(entry) = self.sockets.get_mut(socket.0 as usize) {
            entry.ask_receive(token);
            self.asked.push(socket.0);
        }
    }

    fn send(&mut self, socket: SocketId, token: Token, batch: Box<SendBatch>) {
        if let Some(entry) = self.sockets.get_mut(socket.0 as usize) {
            entry.ask_send(token, batch);
            self.sendable.push(socket.0);
        }
    }

    fn send_now(
        &mut self,
        socket: SocketId,
        token: Token,
        batch: Box<SendBatch>,
    ) -> Option<Box<SendBatch>> {
        let entry = self.sockets.get_mut(socket.0 as usize)?;
        entry.ask_send(token, batch);
        match entry.send()? {
            RingEvent::Sent {
                batch,
                result: Ok(()),
                ..
            } => Some(batch),
            failed => {
                self.events.push_back(failed);
                None
            }
        }
    }

    fn watch(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        let entry = self.watched.vacant_entry();
        let data = ReadinessSource::Watched(key(entry.key())).data();
        epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)?;
        entry.insert((Arc::clone(fd), token));
        Ok(())
    }

    fn watch_later(&mut self, _: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        self.paused.push_back((Instant::now() + PAUSE, token));
        Ok(())
    }

    fn close(&mut self, socket: SocketId) {
        if let Some(socket) = self.sockets.try_remove(socket.0 as usize) {
            // Both fail only when the peer was faster.
            let _ = rustix::net::shutdown(socket.as_fd(), rustix::net::Shutdown::Both);
            let _ = epoll::delete(&self.epoll, socket.as_fd());
            self.events.extend(socket.cancel().into_iter().flatten());
        }
    }
}

impl FileRing for EpollRing {
    fn file(&mut self, token: Token, op: FileOp) {
        let (pending, job) = PendingFile::new(token, op);
        let key = self.files.insert(pending);
        if job.never_waits() || job.may_be_cached() {
            self.at_once.push(key, job);
        } else {
            self.jobs.push((key, job));
        }
    }
}

impl std::fmt::Debug for EpollRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sockets = self.sockets.len();
        write!(f, "EpollRing({sockets} sockets)")
    }
}

/// What readiness is told of, and how epoll carries it.
#[derive(Clone, Copy)]
enum ReadinessSource {
    Bell,
    Listener(u32),
    Socket(u32),
    Watched(u32),
}

impl ReadinessSource {
    fn data(self) -> epoll::EventData {
        epoll::EventData::new_u64(match self {
            Self::Bell => 0,
            Self::Listener(key) => 1 << 32 | u64::from(key),
            Self::Socket(key) => 2 << 32 | u64::from(key),
            Self::Watched(key) => 3 << 32 | u64::from(key),
        })
    }

    fn of(data: epoll::EventData) -> Self {
        let data = data.u64();
        match data >> 32 {
            0 => Self::Bell,
            1 => Self::Listener(data as u32),
            2 => Self::Socket(data as u32),
            _ => Self::Watched(data as u32),
        }
    }
}

/// Slabs of file descriptors do not reach 2^32 entries.
fn key(key: usize) -> u32 {
    key as u32
}
