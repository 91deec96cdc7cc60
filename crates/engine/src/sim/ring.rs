//! A ring whose kernel is the simulator: wires that split, stall and break, files that take their
//! time.
//!
//! Nothing moves by itself. The world picks one thing that could happen (see [`Pending`]) and
//! lets it happen; the ring then has an event.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use ::io::ring::{Event, FileOp, FileRing, Ring, SendBatch, SocketId, Token, Waker};

/// The simulated kernel of one core. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Kernel {
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    listeners: Vec<Token>,
    sockets: BTreeMap<u32, Socket>,
    next_socket: u32,
    files: Vec<(Token, FileOp)>,
    events: VecDeque<Event<Vec<u8>>>,
}

struct Socket {
    fd: OwnedFd,
    wire: Wire,
    receiving: Option<Token>,
    sending: Option<Sending>,
    closed: bool,
}

struct Sending {
    token: Token,
    batch: Box<SendBatch>,
    octets: Vec<u8>,
    sent: usize,
}

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
}

/// One thing that could happen next in a core's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// Octets could arrive at a socket that waits for them, so many at the most (0: the end).
    Arrive(SocketId, usize),
    /// Octets could leave a socket, so many at the most (0: an error, as the wire is cut).
    Leave(SocketId, usize),
    /// A file operation could end: the one of that number in the list.
    File(usize),
}

impl Wire {
    /// The initiator sends.
    pub fn put(&self, octets: &[u8]) {
        let mut wire = self.inner.borrow_mut();
        if !wire.cut {
            wire.to_target.extend(octets);
        }
    }

    /// The initiator takes what has arrived, so many octets at the most.
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

    /// Whether nothing passes any more.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.inner.borrow().cut
    }

    /// How much the target can receive: `Some(0)` is the end of the stream.
    fn receivable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        match wire.to_target.len() {
            0 if wire.cut || wire.finished => Some(0),
            0 => None,
            len => Some(len),
        }
    }

    /// How much the target can send: `Some(0)` is an error, `None` a peer that does not read.
    fn sendable(&self) -> Option<usize> {
        let wire = self.inner.borrow();
        if wire.cut {
            return Some(0);
        }
        Some(WINDOW.saturating_sub(wire.to_initiator.len())).filter(|room| *room > 0)
    }
}

/// How many octets a peer lets arrive before it reads.
const WINDOW: usize = 64 << 10;

impl Kernel {
    /// A connection comes in, over this wire.
    pub(super) fn connect(&self, wire: &Wire, peer: SocketAddr) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        let Some(token) = state.listeners.first().copied() else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        // Nobody reads from or writes to it: it stands for the wire by its number alone.
        let socket: OwnedFd = File::open("/dev/null")?.into();
        WIRES.with_borrow_mut(|wires| wires.insert(socket.as_raw_fd(), wire.clone()));
        state.events.push_back(Event::Accepted {
            token,
            socket,
            peer,
        });
        Ok(())
    }

    /// Everything that could happen.
    #[must_use]
    pub(super) fn pending(&self) -> Vec<Pending> {
        let state = self.state.borrow();
        let mut pending: Vec<_> = (0..state.files.len()).map(Pending::File).collect();
        for (id, socket) in &state.sockets {
            let id = SocketId(*id);
            let arrive = socket.receiving.and_then(|_| socket.wire.receivable());
            pending.extend(arrive.map(|most| Pending::Arrive(id, most)));
            let room = socket.sending.as_ref().and_then(|sending| {
                let left = sending.octets.len() - sending.sent;
                socket.wire.sendable().map(|room| room.min(left))
            });
            pending.extend(room.map(|most| Pending::Leave(id, most)));
        }
        pending
    }

    /// Lets octets arrive, or the stream end.
    pub(super) fn arrive(&self, id: SocketId, len: usize) {
        let mut state = self.state.borrow_mut();
        let Some(socket) = state.sockets.get_mut(&id.0) else {
            return;
        };
        let Some(token) = socket.receiving.take() else {
            return;
        };
        let octets: Vec<u8> = socket
            .wire
            .inner
            .borrow_mut()
            .to_target
            .drain(..len)
            .collect();
        state.events.push_back(Event::Received {
            token,
            octets: Ok(octets),
        });
    }

    /// Lets octets leave; `None`: the send fails.
    pub(super) fn leave(&self, id: SocketId, len: Option<usize>) {
        let mut state = self.state.borrow_mut();
        let Some(socket) = state.sockets.get_mut(&id.0) else {
            return;
        };
        let Some(mut sending) = socket.sending.take() else {
            return;
        };
        let end = sending.sent + len.unwrap_or(0);
        socket
            .wire
            .inner
            .borrow_mut()
            .to_initiator
            .extend(&sending.octets[sending.sent..end]);
        sending.sent = end;
        if len.is_some() && end < sending.octets.len() {
            socket.sending = Some(sending);
            return;
        }
        let result = len
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::ConnectionReset.into());
        state.events.push_back(sending.end(result));
        state.reap(id);
    }

    /// Ends a file operation, well or with an error.
    pub(super) fn end_file(&self, number: usize, error: Option<io::Error>) {
        let (token, op) = self.state.borrow_mut().files.remove(number);
        let event = match (op, error) {
            (FileOp::Blocking(act), None) => Event::File {
                token,
                result: act(),
                buffer: None,
            },
            (FileOp::Read { buffer, .. } | FileOp::Write { buffer, .. }, error) => {
                let result = error.map_or(Ok(buffer.len() as u64), Err);
                Event::File {
                    token,
                    result,
                    buffer: Some(buffer),
                }
            }
            (_, error) => Event::File {
                token,
                result: error.map_or(Ok(0), Err),
                buffer: None,
            },
        };
        self.state.borrow_mut().events.push_back(event);
    }

    /// Tells the core that it has mail.
    pub(super) fn wake(&self) {
        self.state.borrow_mut().events.push_back(Event::Woken);
    }
}

thread_local! {
    /// Which wire a file descriptor stands for, until a ring adopts it.
    static WIRES: RefCell<BTreeMap<RawFd, Wire>> = const { RefCell::new(BTreeMap::new()) };
}

impl Sending {
    fn end(mut self, result: io::Result<()>) -> Event<Vec<u8>> {
        self.batch.clear();
        Event::Sent {
            token: self.token,
            batch: self.batch,
            result,
        }
    }
}

impl State {
    /// Forgets a closed socket of which nothing is under way.
    fn reap(&mut self, id: SocketId) {
        let over = |socket: &Socket| {
            socket.closed && socket.receiving.is_none() && socket.sending.is_none()
        };
        if self.sockets.get(&id.0).is_some_and(over) {
            self.sockets.remove(&id.0);
        }
    }
}

impl Ring for Kernel {
    type Received = Vec<u8>;

    fn listen(&mut self, _listener: OwnedFd, token: Token) -> io::Result<()> {
        self.state.borrow_mut().listeners.push(token);
        Ok(())
    }

    fn stop_listening(&mut self) {
        self.state.borrow_mut().listeners.clear();
    }

    fn adopt(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        let wire = WIRES.with_borrow_mut(|wires| wires.remove(&fd.as_raw_fd()));
        let wire = wire.ok_or(io::ErrorKind::NotConnected)?;
        let mut state = self.state.borrow_mut();
        state.next_socket += 1;
        let id = state.next_socket;
        let socket = Socket {
            fd,
            wire,
            receiving: None,
            sending: None,
            closed: false,
        };
        state.sockets.insert(id, socket);
        Ok(SocketId(id))
    }

    fn release(&mut self, id: SocketId) -> OwnedFd {
        let socket = self
            .state
            .borrow_mut()
            .sockets
            .remove(&id.0)
            .expect("an adopted socket");
        assert!(
            socket.receiving.is_none() && socket.sending.is_none(),
            "released while in use"
        );
        WIRES.with_borrow_mut(|wires| wires.insert(socket.fd.as_raw_fd(), socket.wire));
        socket.fd
    }

    fn receive(&mut self, id: SocketId, token: Token) {
        let mut state = self.state.borrow_mut();
        let socket = state.sockets.get_mut(&id.0).expect("an adopted socket");
        assert!(
            socket.receiving.replace(token).is_none(),
            "received twice at once"
        );
    }

    fn send(&mut self, id: SocketId, token: Token, batch: Box<SendBatch>) {
        let mut state = self.state.borrow_mut();
        let socket = state.sockets.get_mut(&id.0).expect("an adopted socket");
        let sending = Sending {
            token,
            octets: batch.to_vec(),
            batch,
            sent: 0,
        };
        assert!(
            socket.sending.replace(sending).is_none(),
            "sent twice at once"
        );
    }

    fn close(&mut self, id: SocketId) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let Some(socket) = state.sockets.get_mut(&id.0) else {
            return;
        };
        socket.closed = true;
        socket.wire.cut();
        if let Some(token) = socket.receiving.take() {
            let octets = Err(io::ErrorKind::ConnectionAborted.into());
            state.events.push_back(Event::Received { token, octets });
        }
        if let Some(sending) = socket.sending.take() {
            let event = sending.end(Err(io::ErrorKind::ConnectionAborted.into()));
            state.events.push_back(event);
        }
        state.reap(id);
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event<Vec<u8>>> {
        self.state.borrow_mut().events.pop_front()
    }

    fn waker(&self) -> Waker {
        Waker::of_nobody().expect("a descriptor for an eventfd")
    }
}

impl FileRing for Kernel {
    fn file(&mut self, token: Token, op: FileOp) {
        self.state.borrow_mut().files.push((token, op));
    }
}
