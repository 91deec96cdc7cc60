//! One suite for every ring.

mod busy_polling;
mod durable;
mod files;
mod fixed;
mod lent_files;
mod limits;
mod listening;
mod sockets;
mod spinning;
mod trims;
mod waiting;
mod zero_copy;

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::{AnyRing, Received, Ring, RingEvent, RingKind, SendBatch, SocketId, SocketRing, Token};
use crate::memory::Buffer;

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(30);

/// Makes a test of each story for each ring.
macro_rules! on_every_ring {
    ($($story:ident)*) => {
        mod epoll {
            $(#[test]
            fn $story() {
                super::$story(&mut crate::ring::tests::open(crate::ring::RingKind::Epoll));
            })*
        }
        mod uring {
            $(#[test]
            fn $story() {
                super::$story(&mut crate::ring::tests::open(crate::ring::RingKind::Uring));
            })*
        }
    };
}
use on_every_ring;

fn open(kind: RingKind) -> AnyRing {
    AnyRing::open(kind).unwrap().0
}

/// An event, with what it carries copied out of the ring.
#[derive(Debug)]
enum Seen {
    Accepted(Token, OwnedFd),
    NotAccepted,
    Received(Token, io::Result<Vec<u8>>),
    Sent(Token, Box<SendBatch>, io::Result<()>),
    File(Token, io::Result<u64>, Option<Buffer>),
    Ready(Token),
    Woken,
}

impl From<RingEvent<Received>> for Seen {
    fn from(event: RingEvent<Received>) -> Self {
        match event {
            RingEvent::Accepted { token, socket, .. } => Self::Accepted(token, socket),
            RingEvent::NotAccepted { .. } => Self::NotAccepted,
            RingEvent::Received { token, bytes } => {
                Self::Received(token, bytes.map(|bytes| bytes.to_vec()))
            }
            RingEvent::Sent {
                token,
                batch,
                result,
            } => Self::Sent(token, batch, result),
            RingEvent::File {
                token,
                result,
                buffer,
            } => Self::File(token, result, buffer),
            RingEvent::Ready { token } => Self::Ready(token),
            RingEvent::Woken => Self::Woken,
        }
    }
}

/// The next event, waited for.
fn next(ring: &mut AnyRing) -> Seen {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(event) = ring.next_event() {
            return event.into();
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "no event");
        ring.wait(Some(left)).unwrap();
    }
}

/// That another thread's wakes end waits, twenty times.
#[track_caller]
fn woken_by_a_thread(ring: &mut AnyRing) {
    for _ in 0..20 {
        let waker = ring.waker();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            waker.wake();
        });
        ring.wait(None).unwrap();
        assert!(matches!(next(ring), Seen::Woken));
        thread.join().unwrap();
    }
    quiet(ring);
}

/// That nothing happens.
#[track_caller]
fn quiet(ring: &mut AnyRing) {
    let deadline = Instant::now() + SHORT;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        ring.wait(Some(left)).unwrap();
        if let Some(event) = ring.next_event() {
            panic!("{event:?}");
        }
    }
}

#[track_caller]
fn received(ring: &mut AnyRing, token: u64) -> Vec<u8> {
    match next(ring) {
        Seen::Received(at, Ok(bytes)) if at == Token(token) => bytes,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn sent(ring: &mut AnyRing, token: u64) -> Box<SendBatch> {
    match next(ring) {
        Seen::Sent(at, batch, Ok(())) if at == Token(token) => batch,
        other => panic!("{other:?}"),
    }
}

/// A connection: our end is the ring's.
fn connect(ring: &mut AnyRing) -> (SocketId, TcpStream) {
    let (ours, theirs) = tcp_pair();
    (ring.adopt(ours.into()).unwrap(), theirs)
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    theirs.set_read_timeout(Some(LONG)).unwrap();
    theirs.set_nodelay(true).unwrap();
    (listener.accept().unwrap().0, theirs)
}

fn batch_of(bytes: &[u8]) -> Box<SendBatch> {
    let mut batch = Box::<SendBatch>::default();
    batch.bytes(bytes);
    batch
}

/// Bytes that tell where they come from.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn is_canceled(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ECANCELED)
}

fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}
