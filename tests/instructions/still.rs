//! A ring without a kernel: what arrives was laid there, and what is sent stays.

use std::collections::VecDeque;
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use ::io::ring::{
    FileOp, FileRing, Ring, RingEvent, SendBatch, SocketId, SocketRing, Token, Waker,
};

/// The most bytes that a ring receives at once.
const RECEIVED_MAX: usize = 256 << 10;

/// A ring without a kernel, for one connection at a time.
#[derive(Default)]
pub(crate) struct Still {
    socket: Option<OwnedFd>,
    /// A connection that comes in, at most one.
    accepted: Option<RingEvent<Lent>>,
    arrived: VecDeque<Lent>,
    receiving: Option<Token>,
    sending: Option<(Token, Box<SendBatch>)>,
    /// What is being sent was looked at. Word of it comes in a later turn than it was sent in.
    is_seen: bool,
}

/// Bytes that came in; giving them back costs next to nothing, as with a real ring.
pub(crate) struct Lent(Rc<[u8]>);

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Still {
    /// A connection comes in.
    pub(crate) fn connect(&mut self, socket: OwnedFd, token: Token) {
        self.accepted = Some(RingEvent::Accepted {
            token,
            socket,
            peer: ([127, 0, 0, 1], 40_000).into(),
        });
    }

    /// Bytes arrive, in as few pieces as they would at best.
    pub(crate) fn arrive(&mut self, bytes: &[u8]) {
        let pieces = bytes.chunks(RECEIVED_MAX);
        self.arrived.extend(pieces.map(|piece| Lent(piece.into())));
    }

    /// What was sent since the last turn; word of that comes with the next one.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        let is_new = !std::mem::replace(&mut self.is_seen, true);
        let sent = self.sending.as_ref().filter(|_| is_new);
        sent.map_or_else(Vec::new, |(_, batch)| batch.to_vec())
    }

    /// Whether there is an event.
    pub(crate) fn is_ready(&self) -> bool {
        let arrives = self.receiving.is_some() && !self.arrived.is_empty();
        self.accepted.is_some() || self.sending.is_some() || arrives
    }
}

impl Ring for Still {
    type Received = Lent;

    fn listen(&mut self, _listener: OwnedFd, _token: Token) -> io::Result<()> {
        Ok(())
    }

    fn stop_listening_to(&mut self, _: Token) {}

    fn stop_listening(&mut self) {}

    fn release(&mut self, _socket: SocketId) -> OwnedFd {
        self.socket.take().expect("an adopted socket")
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn next_event(&mut self) -> Option<RingEvent<Lent>> {
        if let Some((token, mut batch)) = self.sending.take_if(|_| self.is_seen) {
            batch.clear();
            return Some(RingEvent::Sent {
                token,
                batch,
                result: Ok(()),
            });
        }
        if self.accepted.is_some() {
            return self.accepted.take();
        }
        let bytes = if self.arrived.is_empty() {
            return None;
        } else {
            (self.receiving.take()?, self.arrived.pop_front()?)
        };
        Some(RingEvent::Received {
            token: bytes.0,
            bytes: Ok(bytes.1),
        })
    }

    fn waker(&self) -> Waker {
        Waker::detached().expect("a descriptor")
    }
}

impl SocketRing for Still {
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<SocketId> {
        self.socket = Some(socket);
        Ok(SocketId(0))
    }

    fn receive(&mut self, _socket: SocketId, token: Token) {
        self.receiving = Some(token);
    }

    fn send(&mut self, _socket: SocketId, token: Token, batch: Box<SendBatch>) {
        self.sending = Some((token, batch));
        self.is_seen = false;
    }

    fn close(&mut self, _socket: SocketId) {
        self.socket = None;
        self.receiving = None;
    }
}

impl FileRing for Still {
    fn file(&mut self, _token: Token, _op: FileOp) {
        unreachable!("a RAM disk needs no file");
    }
}
