//! A ring whose kernel is the simulator: wires that split, stall and break, files that take their
//! time.
//!
//! Nothing moves by itself. The world picks one thing that could happen (see [`PendingEvent`]) and
//! lets it happen; the ring then has an event.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use super::wire::{self, SimWire};
use ::io::ring::{
    FileOp, FileRing, Ring, RingEvent, SendBatch, SocketId, SocketRing, Token, Waker,
};

/// The simulated kernel of one core. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Kernel {
    state: Rc<RefCell<SimRingState>>,
}

#[derive(Default)]
struct SimRingState {
    listeners: Vec<Token>,
    sockets: BTreeMap<u32, SimSocket>,
    next_socket: u32,
    files: Vec<(Token, FileOp)>,
    /// Batches that have left, and are read still: sent without a copy.
    #[expect(clippy::vec_box, reason = "as senders have them")]
    lent: Vec<Box<SendBatch>>,
    /// Batches that have left.
    sent: usize,
    events: VecDeque<RingEvent<Vec<u8>>>,
}

struct SimSocket {
    fd: OwnedFd,
    /// The other end of `fd`.
    end: UnixStream,
    wire: SimWire,
    receiving: Option<Token>,
    sending: Option<PendingSend>,
    closed: bool,
}

struct PendingSend {
    token: Token,
    batch: Box<SendBatch>,
    sent: usize,
}

/// One thing that could happen next in a core's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingEvent {
    /// Bytes could arrive at a socket that waits for them, this many at the most (0: the end).
    Arrive(SocketId, usize),
    /// Bytes could leave a socket, this many at the most (0: an error, as the wire is cut).
    Leave(SocketId, usize),
    /// A file operation could end: the one of that number in the list.
    File(usize),
    /// A batch that has left, of that number in the list, could be let go.
    LetGo(usize),
}

/// As many batches are read at the most after they have left.
const LENT_MAX: usize = 4;

impl Kernel {
    /// A connection comes in, over this wire.
    pub(super) fn connect(&self, wire: &SimWire, peer: SocketAddr) -> io::Result<()> {
        let first = self.state.borrow().listeners.first().copied();
        let token = first.ok_or(io::ErrorKind::ConnectionRefused)?;
        self.connect_at(token, wire, peer)
    }

    /// The same at one of several listeners.
    pub(super) fn connect_at(
        &self,
        token: Token,
        wire: &SimWire,
        peer: SocketAddr,
    ) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if !state.listeners.contains(&token) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let socket = wire::socket(wire)?;
        state.events.push_back(RingEvent::Accepted {
            token,
            socket,
            peer,
        });
        Ok(())
    }

    /// Everything that could happen.
    pub(super) fn pending(&self) -> Vec<PendingEvent> {
        let state = self.state.borrow();
        let mut pending: Vec<_> = (0..state.files.len()).map(PendingEvent::File).collect();
        pending.extend((0..state.lent.len()).map(PendingEvent::LetGo));
        for (id, socket) in &state.sockets {
            let id = SocketId(*id);
            let arrive = socket.receiving.and_then(|_| socket.wire.receivable());
            pending.extend(arrive.map(|most| PendingEvent::Arrive(id, most)));
            let room = socket.sending.as_ref().and_then(|sending| {
                let left = sending.batch.len() - sending.sent;
                socket.wire.sendable().map(|room| room.min(left))
            });
            pending.extend(room.map(|most| PendingEvent::Leave(id, most)));
        }
        pending
    }

    /// The socket that a wire leads to, if it leads here.
    pub(super) fn socket(&self, wire: &SimWire) -> Option<SocketId> {
        let state = self.state.borrow();
        let mut sockets = state.sockets.iter();
        let (id, _) = sockets.find(|(_, socket)| socket.wire.is(wire) && !socket.closed)?;
        Some(SocketId(*id))
    }

    /// What a core holds of its kernel: sockets, and operations on files.
    pub(super) fn held(&self) -> (usize, usize) {
        let state = self.state.borrow();
        (state.sockets.len(), state.files.len())
    }

    /// Lets bytes arrive, or the stream end.
    pub(super) fn arrive(&self, id: SocketId, len: usize) {
        let mut state = self.state.borrow_mut();
        let Some(socket) = state.sockets.get_mut(&id.0) else {
            return;
        };
        let Some(token) = socket.receiving.take() else {
            return;
        };
        let bytes = socket.wire.arrive(len);
        state.events.push_back(RingEvent::Received {
            token,
            bytes: Ok(bytes),
        });
    }

    /// Lets bytes leave; `None`: the send fails.
    pub(super) fn leave(&self, id: SocketId, len: Option<usize>) {
        let mut state = self.state.borrow_mut();
        let Some(socket) = state.sockets.get_mut(&id.0) else {
            return;
        };
        let Some(mut sending) = socket.sending.take() else {
            return;
        };
        let end = sending.sent + len.unwrap_or(0);
        // Memory that is lent may change until then.
        let bytes = sending.batch.to_vec();
        socket.wire.leave(&bytes[sending.sent..end]);
        sending.sent = end;
        if len.is_some() && end < bytes.len() {
            socket.sending = Some(sending);
            return;
        }
        let result = len
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::ConnectionReset.into());
        state.lend_some(&mut sending.batch);
        state.events.push_back(sending.end(result));
        state.reap(id);
    }

    /// A batch that has left is not read any more.
    pub(super) fn let_go(&self, number: usize) {
        self.state.borrow_mut().lent.swap_remove(number);
    }

    /// Ends a file operation, well or with an error.
    pub(super) fn end_file(&self, number: usize, error: Option<io::Error>) {
        let (token, op) = self.state.borrow_mut().files.remove(number);
        let event = match (op, error) {
            (FileOp::Blocking(act) | FileOp::Apart { call: act, .. }, None) => RingEvent::File {
                token,
                result: act(),
                buffer: None,
            },
            (FileOp::Read { buffer, .. } | FileOp::Write { buffer, .. }, error) => {
                let result = error.map_or(Ok(buffer.len() as u64), Err);
                RingEvent::File {
                    token,
                    result,
                    buffer: Some(buffer),
                }
            }
            (_, error) => RingEvent::File {
                token,
                result: error.map_or(Ok(0), Err),
                buffer: None,
            },
        };
        self.state.borrow_mut().events.push_back(event);
    }

    /// Tells the core that it has mail.
    pub(super) fn wake(&self) {
        self.state.borrow_mut().events.push_back(RingEvent::Woken);
    }
}

impl PendingSend {
    fn end(mut self, result: io::Result<()>) -> RingEvent<Vec<u8>> {
        self.batch.clear();
        RingEvent::Sent {
            token: self.token,
            batch: self.batch,
            result,
        }
    }
}

impl SimRingState {
    /// Keeps every other batch that has left, and puts another in its place.
    fn lend_some(&mut self, batch: &mut Box<SendBatch>) {
        self.sent += 1;
        if self.sent.is_multiple_of(2) && self.lent.len() < LENT_MAX {
            self.lent.push(std::mem::take(batch));
        }
    }

    /// Forgets a closed socket of which nothing is in flight.
    fn reap(&mut self, id: SocketId) {
        let over = |socket: &SimSocket| {
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

    fn stop_listening_to(&mut self, token: Token) {
        let mut state = self.state.borrow_mut();
        state.listeners.retain(|listener| *listener != token);
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
        wire::let_loose(socket.fd, socket.wire, socket.end)
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn next_event(&mut self) -> Option<RingEvent<Vec<u8>>> {
        self.state.borrow_mut().events.pop_front()
    }

    fn waker(&self) -> Waker {
        Waker::detached().expect("a descriptor for an eventfd")
    }
}

impl SocketRing for Kernel {
    fn adopt(&mut self, fd: OwnedFd) -> io::Result<SocketId> {
        let (wire, end) = wire::adopt(&fd)?;
        let mut state = self.state.borrow_mut();
        state.next_socket += 1;
        let id = state.next_socket;
        let socket = SimSocket {
            fd,
            end,
            wire,
            receiving: None,
            sending: None,
            closed: false,
        };
        state.sockets.insert(id, socket);
        Ok(SocketId(id))
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
        let sending = PendingSend {
            token,
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
        socket.wire.close();
        if let Some(token) = socket.receiving.take() {
            let bytes = Err(io::ErrorKind::ConnectionAborted.into());
            state.events.push_back(RingEvent::Received { token, bytes });
        }
        if let Some(sending) = socket.sending.take() {
            let event = sending.end(Err(io::ErrorKind::ConnectionAborted.into()));
            state.events.push_back(event);
        }
        state.reap(id);
    }
}

impl FileRing for Kernel {
    fn file(&mut self, token: Token, op: FileOp) {
        self.state.borrow_mut().files.push((token, op));
    }
}
