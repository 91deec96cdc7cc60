//! TCP connections between simulated initiators and simulated cores.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// A TCP connection: what is on its way in each direction.
#[derive(Clone, Default)]
pub struct Wire {
    inner: Rc<RefCell<Directions>>,
}

#[derive(Default)]
struct Directions {
    to_target: VecDeque<u8>,
    to_initiator: VecDeque<u8>,
    /// No octet passes any more.
    cut: bool,
    /// The initiator has closed its end; what is on its way still arrives.
    finished: bool,
    /// The target has closed its end; what is on its way still arrives.
    closed: bool,
}

/// How many octets a peer lets arrive before it reads.
const WINDOW: usize = 64 << 10;

impl Wire {
    /// The initiator sends.
    pub fn put(&self, octets: &[u8]) {
        let mut wire = self.inner.borrow_mut();
        if !wire.cut && !wire.closed {
            wire.to_target.extend(octets);
        }
    }

    /// The initiator takes what has arrived, so many octets at the most.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<u8> {
        let mut wire = self.inner.borrow_mut();
        let len = most.min(wire.to_initiator.len());
        wire.to_initiator.drain(..len).collect()
    }

    /// Octets that wait for the initiator.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.inner.borrow().to_initiator.len()
    }

    /// Octets on their way to the target.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.inner.borrow().to_target.len()
    }

    /// The network drops it: what is on its way is lost.
    pub fn cut(&self) {
        let mut wire = self.inner.borrow_mut();
        wire.cut = true;
        wire.to_target.clear();
        wire.to_initiator.clear();
    }

    /// The initiator closes its end.
    pub fn finish(&self) {
        self.inner.borrow_mut().finished = true;
    }

    /// Whether the target will send no more: it has closed its end, or the network is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let wire = self.inner.borrow();
        wire.cut || wire.closed
    }

    /// Whether both are the same connection.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    pub(super) fn close(&self) {
        let mut wire = self.inner.borrow_mut();
        wire.closed = true;
        wire.to_target.clear();
    }

    pub(super) fn arrive(&self, len: usize) -> Vec<u8> {
        self.inner.borrow_mut().to_target.drain(..len).collect()
    }

    pub(super) fn leave(&self, octets: &[u8]) {
        self.inner.borrow_mut().to_initiator.extend(octets);
    }

    /// How much the target can receive: `Some(0)` is the end of the stream.
    pub(super) fn receivable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        match wire.to_target.len() {
            0 if wire.cut || wire.finished => Some(0),
            0 => None,
            len => Some(len),
        }
    }

    /// How much the target can send: `Some(0)` is an error, `None` a peer that does not read.
    pub(super) fn sendable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        if wire.cut {
            return Some(0);
        }
        Some(WINDOW.saturating_sub(wire.to_initiator.len())).filter(|room| *room > 0)
    }
}

thread_local! {
    /// The wires that no ring has adopted, by the descriptor that stands for each.
    static LOOSE: RefCell<BTreeMap<RawFd, (Wire, UnixStream)>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// A descriptor that stands for a wire. Nobody reads from or writes to it, but its other end tells
/// when it is dropped.
pub(super) fn socket(wire: &Wire) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    Ok(let_loose(ours.into(), wire.clone(), theirs))
}

/// Gives a wire out of a ring's hands.
pub(super) fn let_loose(socket: OwnedFd, wire: Wire, end: UnixStream) -> OwnedFd {
    LOOSE.with_borrow_mut(|loose| loose.insert(socket.as_raw_fd(), (wire, end)));
    socket
}

/// The wire that a descriptor stands for, with the other end of that.
pub(super) fn adopt(socket: &OwnedFd) -> io::Result<(Wire, UnixStream)> {
    let adopted = LOOSE.with_borrow_mut(|loose| loose.remove(&socket.as_raw_fd()));
    Ok(adopted.ok_or(io::ErrorKind::NotConnected)?)
}

/// Closes the wires whose descriptors were dropped, as the kernel would.
pub(super) fn close_dropped() {
    LOOSE.with_borrow_mut(|loose| {
        loose.retain(|_, (wire, end)| {
            let dropped = matches!(end.read(&mut [0]), Ok(0));
            if dropped {
                wire.close();
            }
            !dropped
        });
    });
}
