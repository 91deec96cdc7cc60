//! What a reactor needs of the kernel, as operations that complete later.

mod any;
mod batch;
mod bell;
mod blocking;
mod busy_poll;
mod epoll;
mod file;
mod lend;
#[cfg(test)]
mod tests;
mod uring;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Buffer;

pub use any::{AnyRing, RingKind};
pub use batch::SendBatch;
pub use bell::Waker;
pub use epoll::EpollRing;
pub use file::RingFile;
pub use lend::Received;
pub use uring::UringRing;

/// Given with an operation, returned with its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// A socket that a ring has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);

/// The operations of a reactor's ring. But for [`SocketRing::send_now`] nothing happens before
/// [`Ring::wait`]; whatever was asked for until then goes to the kernel in one submission.
pub trait Ring: SocketRing {
    /// What the ring lends received bytes in.
    type Received: std::ops::Deref<Target = [u8]>;

    /// Accepts one connection after the other on a listening socket → [`RingEvent::Accepted`],
    /// until the ring is dropped or `stop_listening` is called. While there are no descriptors or
    /// no memory: [`RingEvent::NotAccepted`], again and again with pauses.
    fn listen(&mut self, listener: OwnedFd, token: Token) -> io::Result<()>;

    /// Closes every listening socket.
    fn stop_listening(&mut self);

    /// Closes the listening sockets with this token. What they have accepted may still be told.
    fn stop_listening_to(&mut self, token: Token);

    /// Gives a socket back, to be adopted by another ring.
    ///
    /// # Panics
    ///
    /// When there is no such socket, or something of it is in flight.
    fn release(&mut self, socket: SocketId) -> OwnedFd;

    /// Submits what was asked for, and waits for an event, for `timeout` at the most (`None`:
    /// for ever; zero: not at all).
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// The next event, of those that the last `wait` found.
    fn next_event(&mut self) -> Option<RingEvent<Self::Received>>;

    /// Whether it pauses for [`SocketRing::watch_later`]: spinning meanwhile gains nothing.
    fn pauses(&self) -> bool {
        false
    }

    /// Whether a [`Self::trim`], now or later, can give memory back.
    fn has_idle(&self) -> bool {
        false
    }

    /// Gives back the memory of receive buffers that were not needed since the last call, and what
    /// is pinned of pools and was not needed either: after the pool's own trim.
    fn trim(&mut self) {}

    /// Why the kernel has registered no more memory for files that are read and written past the
    /// page cache, which costs processor time and nothing else. It is told once.
    fn refusal(&mut self) -> Option<io::Error> {
        None
    }

    /// Bytes that were sent without the kernel copying them.
    fn uncopied(&self) -> u64 {
        0
    }

    /// Wakes `wait` from another thread.
    fn waker(&self) -> Waker;
}

/// The operations on connected sockets, apart so that volumes that are elsewhere can be written
/// against a trait object.
pub trait SocketRing: FileRing {
    /// Takes over a connected socket.
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<SocketId>;

    /// Lets large batches of a socket be sent without a copy. Whoever fills them leaves the memory
    /// of their buffers as it is until these are let go, whatever becomes of the send.
    fn lend_sends(&mut self, _: SocketId) {}

    /// Receives once, as much as is there → [`RingEvent::Received`]. One at a time for a socket.
    fn receive(&mut self, socket: SocketId, token: Token);

    /// Sends the whole batch → [`RingEvent::Sent`] with an empty one, to be filled next. One at a
    /// time for a socket. Buffers may be let go later, as a network card still reads them.
    fn send(&mut self, socket: SocketId, token: Token, batch: Box<SendBatch>);

    /// Sends a batch before anything else is done, as far as the socket takes it now: one that has
    /// left whole comes back at once, empty; of another the rest is sent as by [`Self::send`].
    fn send_now(
        &mut self,
        socket: SocketId,
        token: Token,
        batch: Box<SendBatch>,
    ) -> Option<Box<SendBatch>> {
        self.send(socket, token, batch);
        None
    }

    /// Waits until something can be read there, or is wrong with it → [`RingEvent::Ready`], once. A
    /// simulated ring has nothing to wait for.
    fn watch(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        let _ = (fd, token);
        Ok(())
    }

    /// [`RingEvent::Ready`] once [`PAUSE`] has passed, whether something can be read there by then
    /// or not: for what comes in so fast that it is cheaper to be told less often. A simulated ring
    /// watches.
    fn watch_later(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        self.watch(fd, token)
    }

    /// Shuts a socket down both ways and closes it. Operations in flight end with their events
    /// first (with ECANCELED, unless they were over already); no event follows the last of them.
    fn close(&mut self, socket: SocketId);
}

/// The operations on files, apart so that volumes can be written against a trait object.
pub trait FileRing {
    /// Starts an operation → [`RingEvent::File`].
    fn file(&mut self, token: Token, op: FileOp);
}

/// What can be done to a file or a block device. The operation owns its buffer until it is over.
pub enum FileOp {
    /// Fill the buffer from `offset`.
    Read {
        /// Of which file.
        file: Arc<RingFile>,
        /// In bytes.
        offset: u64,
        /// To be filled whole.
        buffer: Buffer,
    },
    /// Write the buffer at `offset`.
    Write {
        /// Of which file.
        file: Arc<RingFile>,
        /// In bytes.
        offset: u64,
        /// Written whole.
        buffer: Buffer,
        /// With RWF_DSYNC.
        dsync: bool,
        /// With RWF_ATOMIC.
        atomic: bool,
    },
    /// fdatasync.
    DataSync {
        /// Of which file.
        file: Arc<RingFile>,
    },
    /// Anything that blocks for as long as a medium takes, on a thread of a bounded pool:
    /// fallocate, lseek, ioctl.
    Blocking(Box<dyn FnOnce() -> io::Result<u64> + Send>),
    /// The same for what neither waits for media nor has them wait.
    Apart {
        /// With what else it shares threads.
        lane: BlockingLane,
        /// What blocks.
        call: Box<dyn FnOnce() -> io::Result<u64> + Send>,
    },
}

/// Operations that block wait only for those in the same lane: an UNMAP of minutes delays no
/// reservation, and a host that does not answer no UNMAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingLane {
    /// What is written down for the case of a power cut, one after the other.
    Persist,
    /// What waits for another machine or for an interface.
    Connect,
    /// Looks at media that may have changed: those at one that is stuck keep no thread from the
    /// I/O of the others.
    Watch,
}

/// What happened.
#[derive(Debug)]
pub enum RingEvent<R> {
    /// A connection came in.
    Accepted {
        /// Of `listen`.
        token: Token,
        /// The socket, close-on-exec, to be adopted by any ring.
        socket: OwnedFd,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// No connection can be accepted for a while, as there are no descriptors or no memory. It is
    /// tried again.
    NotAccepted {
        /// What the kernel says.
        cause: io::Error,
    },
    /// Bytes came in; none at all means that the peer has closed. Dropping `bytes` gives the
    /// memory back to the ring: do so before the next event is asked for.
    Received {
        /// Of `receive`.
        token: Token,
        /// The bytes, or why there are none.
        bytes: io::Result<R>,
    },
    /// A batch has left, or could not.
    Sent {
        /// Of `send`.
        token: Token,
        /// The batch, or another one, empty.
        batch: Box<SendBatch>,
        /// Whether the kernel took all of it.
        result: io::Result<()>,
    },
    /// A file operation is over.
    File {
        /// Of `file`.
        token: Token,
        /// Its value; for reads and writes, the bytes moved: all of them, or an error. A read that
        /// goes past the end is an [`io::ErrorKind::UnexpectedEof`].
        result: io::Result<u64>,
        /// The buffer of a read or write.
        buffer: Option<Buffer>,
    },
    /// Something can be read, or a pause is over.
    Ready {
        /// Of `watch` or `watch_later`.
        token: Token,
    },
    /// Another thread called [`Waker::wake`].
    Woken,
}

/// How long [`SocketRing::watch_later`] pauses. At 1 GB/s that is 24 of the longest frames of
/// Fibre Channel: of what they cost, little is left to be saved by a longer one.
pub const PAUSE: Duration = Duration::from_micros(50);

/// How long accepting rests when there are no descriptors or no memory for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
