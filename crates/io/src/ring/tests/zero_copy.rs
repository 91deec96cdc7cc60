//! Large sends that the kernel makes without a copy. Over loopback it copies when the peer has
//! room, and tells then; what tests pretend is that it has not.

use std::io::Read;

use super::*;
use crate::memory::Pool;

/// More than a peer takes that does not read, less than a socket does.
const LARGE: usize = 256 << 10;

fn ring(is_far: bool, is_uncopied: bool) -> AnyRing {
    let mut ring = open(RingKind::Uring);
    if let AnyRing::Uring(ring) = &mut ring {
        ring.pretend(is_far, is_uncopied);
    }
    ring
}

/// A connection whose peer has little room.
fn crowded(ring: &mut AnyRing) -> (SocketId, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    peer.set_recv_buffer_size(8 << 10).unwrap();
    peer.connect(&listener.local_addr().unwrap().into())
        .unwrap();
    let ours = socket2::Socket::from(listener.accept().unwrap().0);
    ours.set_send_buffer_size(4 << 20).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    let socket = ring.adopt(ours.into()).unwrap();
    ring.lend_sends(socket);
    (socket, peer.into())
}

/// A header of four bytes, and data in a buffer.
fn data(pool: &Pool, number: u8) -> Box<SendBatch> {
    let mut batch = batch_of(&[number; 4]);
    let buffer = pool.buffer(LARGE).unwrap();
    buffer.copy_in(0, &pattern(LARGE)[..]);
    buffer.copy_in(0, &[number]);
    batch.buffer(buffer);
    batch
}

/// The peer receives what [`data`] has made.
#[track_caller]
fn reads(peer: &mut TcpStream, number: u8) {
    let mut got = vec![0; 4 + LARGE];
    peer.read_exact(&mut got).unwrap();
    let mut expected = pattern(LARGE);
    expected[0] = number;
    assert!(got[..4] == [number; 4] && got[4..] == expected);
}

/// Waits until nothing is lent; no event may come with that.
#[track_caller]
fn comes_back(ring: &mut AnyRing, pool: &Pool) {
    let deadline = Instant::now() + LONG;
    while pool.in_use() > 0 {
        assert!(Instant::now() < deadline, "still lent");
        ring.wait(Some(LONG)).unwrap();
        assert!(ring.next_event().is_none());
    }
}

#[test]
fn memory_is_lent_until_the_peer_has_it_but_the_next_send_follows() {
    let (mut ring, pool) = (ring(true, true), Pool::new(8 << 20).unwrap());
    let (socket, mut peer) = crowded(&mut ring);
    // As long as the first has not told, others are copied.
    ring.send(socket, Token(1), data(&pool, 0));
    sent(&mut ring, 1);
    reads(&mut peer, 0);
    comes_back(&mut ring, &pool);
    for number in 1..4 {
        // Spinning or not.
        ring.wait(Some(Duration::ZERO)).unwrap();
        let batch = data(&pool, number);
        let left = match number % 2 {
            0 => ring.send_now(socket, Token(1), batch),
            _ => {
                ring.send(socket, Token(1), batch);
                None
            }
        };
        assert!(left.is_none());
        let reader = (number > 1).then(|| {
            let mut peer = peer.try_clone().unwrap();
            std::thread::spawn(move || reads(&mut peer, number - 1))
        });
        assert!(sent(&mut ring, 1).is_empty());
        reader.into_iter().for_each(|one| one.join().unwrap());
    }
    assert!(pool.in_use() >= LARGE);
    reads(&mut peer, 3);
    comes_back(&mut ring, &pool);
    assert_eq!(ring.uncopied(), 4 * (4 + LARGE as u64));
    quiet(&mut ring);
}

#[test]
fn small_sends_and_copied_bytes_are_not_lent() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, mut peer) = connect(&mut ring);
    let mut batch = batch_of(&pattern(LARGE));
    batch.buffer(pool.buffer(31 << 10).unwrap());
    ring.send(socket, Token(1), batch);
    let reader = std::thread::spawn(move || peer.read_exact(&mut vec![0; LARGE + (31 << 10)]));
    sent(&mut ring, 1);
    reader.join().unwrap().unwrap();
    assert_eq!((pool.in_use(), ring.uncopied()), (0, 0));
}

#[test]
fn nothing_is_lent_over_loopback() {
    let (mut ring, pool) = (ring(false, true), Pool::new(1 << 20).unwrap());
    let (socket, mut peer) = crowded(&mut ring);
    ring.send(socket, Token(1), data(&pool, 1));
    sent(&mut ring, 1);
    assert_eq!(pool.in_use(), 0);
    reads(&mut peer, 1);
    assert_eq!(ring.uncopied(), 0);
}

#[test]
fn a_kernel_that_copied_is_not_asked_again() {
    let (mut ring, pool) = (ring(true, false), Pool::new(1 << 20).unwrap());
    let (socket, mut peer) = crowded(&mut ring);
    ring.send(socket, Token(1), data(&pool, 1));
    sent(&mut ring, 1);
    assert!(pool.in_use() > 0);
    reads(&mut peer, 1);
    comes_back(&mut ring, &pool);
    ring.send(socket, Token(2), data(&pool, 2));
    sent(&mut ring, 2);
    assert_eq!((pool.in_use(), ring.uncopied()), (0, 0));
    reads(&mut peer, 2);
}

/// Its number serves another, which does not lend.
#[test]
fn a_closed_socket_sends_on_from_lent_memory() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, mut peer) = crowded(&mut ring);
    ring.send(socket, Token(1), data(&pool, 1));
    sent(&mut ring, 1);
    ring.close(socket);
    let (other, mut other_peer) = connect(&mut ring);
    assert_eq!(other, socket);
    ring.send(other, Token(2), batch_of(b"other"));
    sent(&mut ring, 2);
    assert!(pool.in_use() > 0);
    reads(&mut peer, 1);
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    comes_back(&mut ring, &pool);
    let mut got = [0; 5];
    other_peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"other");
}

#[test]
fn a_closed_sockets_peer_does_not_keep_memory_for_ever() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, _peer) = crowded(&mut ring);
    ring.send(socket, Token(1), data(&pool, 1));
    sent(&mut ring, 1);
    ring.close(socket);
    comes_back(&mut ring, &pool);
}

#[test]
fn a_socket_is_released_while_memory_is_lent() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, mut peer) = crowded(&mut ring);
    ring.send(socket, Token(1), data(&pool, 1));
    sent(&mut ring, 1);
    let socket = ring.release(socket);
    assert!(pool.in_use() > 0);
    reads(&mut peer, 1);
    comes_back(&mut ring, &pool);
    drop(socket);
}

/// What it was sent in part of is lent still, as what follows is copied.
#[test]
fn closing_ends_a_send_and_a_reset_what_it_has_lent() {
    let (mut ring, pool) = (ring(true, true), Pool::new(8 << 20).unwrap());
    let (socket, peer) = crowded(&mut ring);
    let mut batch = data(&pool, 1);
    for _ in 0..24 {
        batch.buffer(pool.buffer(LARGE).unwrap());
    }
    ring.send(socket, Token(1), batch);
    quiet(&mut ring);
    ring.close(socket);
    match next(&mut ring) {
        Seen::Sent(Token(1), batch, Err(error)) => assert!(batch.is_empty() && is_canceled(&error)),
        other => panic!("{other:?}"),
    }
    assert!(pool.in_use() > 0);
    let peer = socket2::Socket::from(peer);
    peer.set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    comes_back(&mut ring, &pool);
    assert!((1..25 * LARGE as u64).contains(&ring.uncopied()), "a part");
}

#[test]
fn a_peer_that_resets_is_an_error() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, peer) = crowded(&mut ring);
    let peer = socket2::Socket::from(peer);
    peer.set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    ring.send(socket, Token(1), data(&pool, 1));
    match next(&mut ring) {
        Seen::Sent(Token(1), batch, Err(error)) => assert!(batch.is_empty() && is_reset(&error)),
        other => panic!("{other:?}"),
    }
    comes_back(&mut ring, &pool);
}

#[test]
fn a_ring_is_dropped_with_memory_lent() {
    let (mut ring, pool) = (ring(true, true), Pool::new(1 << 20).unwrap());
    let (socket, _peer) = crowded(&mut ring);
    let (closed, _peer) = crowded(&mut ring);
    for socket in [socket, closed] {
        ring.send(socket, Token(1), data(&pool, 1));
        sent(&mut ring, 1);
    }
    ring.close(closed);
    assert!(pool.in_use() >= 2 * LARGE);
    drop(ring);
    assert_eq!(pool.in_use(), 0);
}
