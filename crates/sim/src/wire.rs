//! TCP connections between simulated initiators and simulated cores.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// A TCP connection: what is on its way in each direction.
#[derive(Clone, Default)]
pub struct SimWire {
    inner: Rc<RefCell<Directions>>,
    /// Whose end it is for a ring that has it.
    end: WireEnd,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WireEnd {
    #[default]
    Target,
    Initiator,
}

#[derive(Default)]
struct Directions {
    to_target: VecDeque<u8>,
    to_initiator: VecDeque<u8>,
    /// No byte passes any more.
    cut: bool,
    /// The initiator has closed its end; what is on its way still arrives.
    finished: bool,
    /// The target has closed its end; what is on its way still arrives.
    closed: bool,
    /// The initiator believes that the connection is gone; what is on its way still arrives.
    reset: bool,
    /// Nothing moves, but may later.
    stalled: bool,
    /// What each end receives ends a piece there, after so many bytes more.
    to_target_split: Option<usize>,
    to_initiator_split: Option<usize>,
    /// Pieces that have ended for that.
    splits: usize,
    /// Bytes that have arrived at a ring's end: the target's, the initiator's.
    arrived: [usize; 2],
    /// What the target sends goes through this.
    between: Option<InTransit>,
    /// What an initiator that has a ring sends goes through this.
    to_target_between: Option<InTransit>,
    /// The address that the initiator has connected to, if that matters.
    portal: Option<SocketAddr>,
}

/// What becomes of bytes.
type InTransit = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

/// How many bytes a peer lets arrive before it reads.
const WINDOW: usize = 64 << 10;

impl SimWire {
    /// A connection to this address.
    pub(super) fn to(portal: SocketAddr) -> Self {
        let wire = Self::default();
        wire.inner.borrow_mut().portal = Some(portal);
        wire
    }

    /// The initiator sends.
    pub fn put(&self, bytes: &[u8]) {
        let mut wire = self.inner.borrow_mut();
        if !wire.cut && !wire.closed {
            wire.to_target.extend(bytes);
        }
    }

    /// The initiator takes what has arrived, this many bytes at the most.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<u8> {
        let mut wire = self.inner.borrow_mut();
        let len = most.min(wire.to_initiator.len());
        take_front(&mut wire.to_initiator, len)
    }

    /// Bytes that wait for the initiator.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.inner.borrow().to_initiator.len()
    }

    /// Bytes on their way to the target.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.inner.borrow().to_target.len()
    }

    /// The network drops it: what is on its way is lost.
    pub fn cut(&self) {
        let mut wire = self.inner.borrow_mut();
        wire.cut = true;
        wire.to_target.clear();
        wire.to_initiator.clear();
    }

    /// The initiator loses it, and the target does not know.
    pub fn reset(&self) {
        self.inner.borrow_mut().reset = true;
    }

    /// Nothing moves on it, from now on or no longer.
    pub fn stall(&self, stalled: bool) {
        self.inner.borrow_mut().stalled = stalled;
    }

    /// Damages something that is on its way to the initiator, if there is anything.
    pub fn damage(&self, at: usize, by: u8) {
        let mut wire = self.inner.borrow_mut();
        let len = wire.to_initiator.len().max(1);
        if let Some(byte) = wire.to_initiator.get_mut(at % len) {
            *byte ^= by;
        }
    }

    /// What an initiator that has a ring receives ends a piece after so many bytes more.
    pub fn split(&self, after: usize) {
        self.inner.borrow_mut().to_initiator_split = Some(after);
    }

    /// The same for what the target receives.
    pub fn split_to_target(&self, after: usize) {
        self.inner.borrow_mut().to_target_split = Some(after);
    }

    /// How often a piece has ended as [`Self::split`] and [`Self::split_to_target`] asked.
    #[must_use]
    pub fn splits(&self) -> usize {
        self.inner.borrow().splits
    }

    /// Bytes that the target and an initiator that has a ring have received.
    #[must_use]
    pub fn received(&self) -> [usize; 2] {
        self.inner.borrow().arrived
    }

    /// What the target sends from now on comes to the initiator as `between` makes it.
    pub fn through(&self, between: impl FnMut(&[u8]) -> Vec<u8> + 'static) {
        self.inner.borrow_mut().between = Some(Box::new(between));
    }

    /// The same for what an initiator that has a ring sends.
    pub fn to_target_through(&self, between: impl FnMut(&[u8]) -> Vec<u8> + 'static) {
        self.inner.borrow_mut().to_target_between = Some(Box::new(between));
    }

    /// The end of an initiator that has a ring.
    pub(super) fn of_initiator(&self) -> Self {
        let end = WireEnd::Initiator;
        Self {
            end,
            ..self.clone()
        }
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
        match self.end {
            WireEnd::Target => {
                wire.closed = true;
                wire.to_target.clear();
            }
            WireEnd::Initiator => {
                wire.finished = true;
                wire.to_initiator.clear();
            }
        }
    }

    pub(super) fn arrive(&self, len: usize) -> Vec<u8> {
        let wire = &mut *self.inner.borrow_mut();
        let (bytes, split) = match self.end {
            WireEnd::Target => (&mut wire.to_target, &mut wire.to_target_split),
            WireEnd::Initiator => (&mut wire.to_initiator, &mut wire.to_initiator_split),
        };
        wire.splits += usize::from(*split == Some(len));
        *split = split.and_then(|after| after.checked_sub(len));
        wire.arrived[self.end as usize] += len;
        take_front(bytes, len)
    }

    pub(super) fn leave(&self, bytes: &[u8]) {
        match self.end {
            WireEnd::Target => {
                let wire = &mut *self.inner.borrow_mut();
                match &mut wire.between {
                    Some(between) => wire.to_initiator.extend(between(bytes)),
                    None => wire.to_initiator.extend(bytes),
                }
            }
            WireEnd::Initiator => {
                // Taken out, as `put` borrows.
                let between = self.inner.borrow_mut().to_target_between.take();
                let Some(mut between) = between else {
                    return self.put(bytes);
                };
                self.put(&between(bytes));
                self.inner.borrow_mut().to_target_between = Some(between);
            }
        }
    }

    /// How much the ring's end can receive: `Some(0)` is the end of the stream.
    pub(super) fn receivable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        let (len, over) = match self.end {
            WireEnd::Target => (wire.to_target.len(), wire.finished),
            WireEnd::Initiator if wire.reset => (0, true),
            WireEnd::Initiator => (wire.to_initiator.len(), wire.closed),
        };
        let knows = wire.cut || wire.reset && self.end == WireEnd::Initiator;
        match len {
            _ if wire.stalled && !knows => None,
            0 if wire.cut || over => Some(0),
            0 => None,
            len => Some(wire.piece(self.end).map_or(len, |most| most.min(len))),
        }
    }

    /// How much the ring's end can send: `Some(0)` is an error, `None` a peer that does not read.
    pub(super) fn sendable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        let waiting = match self.end {
            WireEnd::Target => wire.to_initiator.len(),
            WireEnd::Initiator if wire.reset || wire.closed => return Some(0),
            WireEnd::Initiator => wire.to_target.len(),
        };
        if wire.cut {
            return Some(0);
        }
        Some(WINDOW.saturating_sub(waiting)).filter(|room| *room > 0 && !wire.stalled)
    }
}

impl Directions {
    /// How many bytes come before the end of a piece.
    fn piece(&self, end: WireEnd) -> Option<usize> {
        let split = match end {
            WireEnd::Target => self.to_target_split,
            WireEnd::Initiator => self.to_initiator_split,
        };
        split.filter(|after| *after > 0)
    }
}

thread_local! {
    /// Connections that initiators have made and that were not reported yet.
    static DIALED: RefCell<Vec<SimWire>> = const { RefCell::new(Vec::new()) };

    /// The wires that no ring has adopted, by the descriptor that stands for each.
    static LOOSE: RefCell<BTreeMap<RawFd, (SimWire, UnixStream)>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// A descriptor that stands for a wire. Nothing reads from or writes to it, but its other end tells
/// when it is dropped.
pub(super) fn socket(wire: &SimWire) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    Ok(let_loose(ours.into(), wire.clone(), theirs))
}

/// Connects, from the side of an initiator.
pub(super) fn dial() -> io::Result<OwnedFd> {
    let wire = SimWire::default();
    DIALED.with_borrow_mut(|dialed| dialed.push(wire.clone()));
    socket(&wire.of_initiator())
}

/// What was dialed since it was asked for last.
pub(super) fn take_dialed() -> Vec<SimWire> {
    DIALED.take()
}

/// Gives a wire out of a ring's hands.
pub(super) fn let_loose(socket: OwnedFd, wire: SimWire, end: UnixStream) -> OwnedFd {
    LOOSE.with_borrow_mut(|loose| loose.insert(socket.as_raw_fd(), (wire, end)));
    socket
}

/// The wire that a descriptor stands for, with the other end of that.
pub(super) fn adopt(socket: &OwnedFd) -> io::Result<(SimWire, UnixStream)> {
    let adopted = LOOSE.with_borrow_mut(|loose| loose.remove(&socket.as_raw_fd()));
    Ok(adopted.ok_or(io::ErrorKind::NotConnected)?)
}

/// Our own address of a connection that no ring has adopted.
pub(super) fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let portal = LOOSE.with_borrow(|loose| {
        let (wire, _) = loose.get(&socket.as_raw_fd())?;
        wire.inner.borrow().portal
    });
    Ok(portal.unwrap_or_else(|| ([127, 0, 0, 1], 3260).into()))
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

/// Takes that many bytes out, piece by piece of memory: one by one they take most of the time of a
/// story of long transfers.
fn take_front(queue: &mut VecDeque<u8>, len: usize) -> Vec<u8> {
    let (front, back) = queue.as_slices();
    let of_front = len.min(front.len());
    let bytes = [&front[..of_front], &back[..len - of_front]].concat();
    queue.drain(..len);
    bytes
}
