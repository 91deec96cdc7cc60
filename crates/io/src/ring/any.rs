//! The ring that a machine offers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{
    EpollRing, FileOp, FileRing, Received, Ring, RingEvent, SendBatch, SocketId, SocketRing, Token,
    UringRing, Waker,
};

/// Which ring is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingKind {
    /// io_uring where the kernel has it and lets us, else epoll.
    #[default]
    Auto,
    /// io_uring or nothing.
    Uring,
    /// epoll.
    Epoll,
}

/// A ring of either kind. It belongs to the thread that opened it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a core")]
pub enum AnyRing {
    /// Over io_uring.
    Uring(UringRing),
    /// Over epoll.
    Epoll(EpollRing),
}

macro_rules! either {
    ($self:ident, $ring:ident => $call:expr) => {
        match $self {
            Self::Uring($ring) => $call,
            Self::Epoll($ring) => $call,
        }
    };
}

impl AnyRing {
    /// Opens a ring on this thread. With it comes why it is not io_uring, if that was wanted.
    ///
    /// # Errors
    ///
    /// As of the ring's own `open`.
    pub fn open(kind: RingKind) -> io::Result<(Self, Option<io::Error>)> {
        match kind {
            RingKind::Uring => Ok((Self::Uring(UringRing::open()?), None)),
            RingKind::Epoll => Ok((Self::Epoll(EpollRing::open()?), None)),
            RingKind::Auto => match UringRing::open() {
                Ok(ring) => Ok((Self::Uring(ring), None)),
                Err(error) => Ok((Self::Epoll(EpollRing::open()?), Some(error))),
            },
        }
    }

    /// Has the kernel poll the network cards of its sockets, for `limit` at the most, before a
    /// [`Ring::wait`] would sleep.
    ///
    /// # Errors
    ///
    /// The kernel does not do that; the error says why.
    pub fn busy_poll(&self, limit: Duration) -> io::Result<()> {
        either!(self, ring => ring.busy_poll(limit))
    }

    /// Which ring it is: never [`RingKind::Auto`].
    #[must_use]
    pub fn kind(&self) -> RingKind {
        match self {
            Self::Uring(_) => RingKind::Uring,
            Self::Epoll(_) => RingKind::Epoll,
        }
    }
}

impl Ring for AnyRing {
    type Received = Received;

    fn listen(&mut self, listener: OwnedFd, token: Token) -> io::Result<()> {
        either!(self, ring => ring.listen(listener, token))
    }

    fn stop_listening(&mut self) {
        either!(self, ring => ring.stop_listening());
    }

    fn stop_listening_to(&mut self, token: Token) {
        either!(self, ring => ring.stop_listening_to(token));
    }

    fn release(&mut self, socket: SocketId) -> OwnedFd {
        either!(self, ring => ring.release(socket))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        either!(self, ring => ring.wait(timeout))
    }

    fn next_event(&mut self) -> Option<RingEvent<Received>> {
        either!(self, ring => ring.next_event())
    }

    fn pauses(&self) -> bool {
        either!(self, ring => ring.pauses())
    }

    fn has_idle(&self) -> bool {
        either!(self, ring => ring.has_idle())
    }

    fn trim(&mut self) {
        either!(self, ring => ring.trim());
    }

    fn refusal(&mut self) -> Option<io::Error> {
        either!(self, ring => ring.refusal())
    }

    fn uncopied(&self) -> u64 {
        either!(self, ring => ring.uncopied())
    }

    fn waker(&self) -> Waker {
        either!(self, ring => ring.waker())
    }
}

impl SocketRing for AnyRing {
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<SocketId> {
        either!(self, ring => ring.adopt(socket))
    }

    fn lend_sends(&mut self, socket: SocketId) {
        either!(self, ring => ring.lend_sends(socket));
    }

    fn receive(&mut self, socket: SocketId, token: Token) {
        either!(self, ring => ring.receive(socket, token));
    }

    fn send(&mut self, socket: SocketId, token: Token, batch: Box<SendBatch>) {
        either!(self, ring => ring.send(socket, token, batch));
    }

    fn send_now(
        &mut self,
        socket: SocketId,
        token: Token,
        batch: Box<SendBatch>,
    ) -> Option<Box<SendBatch>> {
        either!(self, ring => ring.send_now(socket, token, batch))
    }

    fn watch(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        either!(self, ring => ring.watch(fd, token))
    }

    fn watch_later(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        either!(self, ring => ring.watch_later(fd, token))
    }

    fn close(&mut self, socket: SocketId) {
        either!(self, ring => ring.close(socket));
    }
}

impl FileRing for AnyRing {
    fn file(&mut self, token: Token, op: FileOp) {
        either!(self, ring => ring.file(token, op));
    }
}
