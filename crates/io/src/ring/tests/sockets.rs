//! Sending and receiving.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread::JoinHandle;

use super::*;

super::on_every_ring! {
    bytes_that_are_there_are_received
    bytes_that_come_later_are_received
    a_receive_takes_all_that_is_there_up_to_a_buffer
    who_waits_behind_many_is_heard_to_the_end
    a_peer_that_closes_is_seen_behind_its_last_bytes
    a_peer_that_resets_is_an_error_for_both_ways
    small_bytes_and_buffers_arrive_in_order
    an_empty_batch_is_sent
    what_a_socket_takes_leaves_at_once
    what_a_socket_does_not_take_at_once_follows
    what_cannot_leave_at_once_is_told_later
    a_batch_of_thousands_of_pieces_is_sent_whole
    a_slow_reader_holds_up_the_batch_but_nobody_else
    a_send_holds_its_buffers_until_it_is_over
    a_busy_socket_receives_again_and_again
    a_receive_waits_while_all_buffers_are_kept
    closing_ends_what_is_under_way
    closing_sends_what_was_sent_before
    a_closed_sockets_number_serves_another
    a_released_socket_goes_on_in_another_ring
    a_released_socket_keeps_what_was_not_received
    a_ring_is_dropped_with_operations_under_way
    a_thousand_sockets_echo
}

/// The peer receives these bytes next.
#[track_caller]
fn hears(peer: &mut TcpStream, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(got, expected);
}

/// A thread in which the peer receives so many bytes.
fn reads(mut peer: TcpStream, len: usize) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut got = vec![0; len];
        peer.read_exact(&mut got).unwrap();
        got
    })
}

fn bytes_that_are_there_are_received(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    peer.write_all(b"hello").unwrap();
    std::thread::sleep(SHORT);
    ring.receive(socket, Token(1));
    assert_eq!(received(ring, 1), b"hello");
    quiet(ring);
}

fn bytes_that_come_later_are_received(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    ring.receive(socket, Token(1));
    quiet(ring);
    peer.write_all(b"one").unwrap();
    assert_eq!(received(ring, 1), b"one");
    peer.write_all(b"two").unwrap();
    quiet(ring);
    ring.receive(socket, Token(2));
    assert_eq!(received(ring, 2), b"two");
}

fn a_receive_takes_all_that_is_there_up_to_a_buffer(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    let bytes = pattern(3 << 20);
    let expected = bytes.clone();
    let writer = std::thread::spawn(move || peer.write_all(&bytes).unwrap());
    let mut got = Vec::new();
    let mut receives = 0;
    while got.len() < expected.len() {
        ring.receive(socket, Token(1));
        let part = received(ring, 1);
        assert!((1..=256 << 10).contains(&part.len()));
        got.extend(part);
        receives += 1;
    }
    writer.join().unwrap();
    assert_eq!(got, expected);
    assert!(receives >= 12);
    ring.receive(socket, Token(2));
    assert_eq!(received(ring, 2), b"");
}

/// The last of twenty to be heard has said more by then.
fn who_waits_behind_many_is_heard_to_the_end(ring: &mut AnyRing) {
    let mut pairs: Vec<_> = (0..20).map(|_| connect(ring)).collect();
    for (at, (socket, peer)) in pairs.iter_mut().enumerate() {
        ring.receive(*socket, Token(at as u64));
        peer.write_all(b"one ").unwrap();
    }
    std::thread::sleep(SHORT);
    ring.wait(Some(Duration::ZERO)).unwrap();
    for (_, peer) in &mut pairs {
        peer.write_all(b"two").unwrap();
    }
    for _ in 0..pairs.len() {
        match next(ring) {
            Seen::Received(_, Ok(bytes)) => assert_eq!(bytes, b"one two"),
            other => panic!("{other:?}"),
        }
    }
    quiet(ring);
}

fn a_peer_that_closes_is_seen_behind_its_last_bytes(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    ring.receive(socket, Token(1));
    ring.wait(Some(Duration::ZERO)).unwrap();
    peer.write_all(b"last").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(received(ring, 1), b"last");
    for _ in 0..2 {
        ring.receive(socket, Token(2));
        assert_eq!(received(ring, 2), b"");
    }
    ring.send(socket, Token(3), batch_of(b"bye"));
    sent(ring, 3);
    hears(&mut peer, b"bye");
}

fn a_peer_that_resets_is_an_error_for_both_ways(ring: &mut AnyRing) {
    let (socket, peer) = connect(ring);
    ring.receive(socket, Token(1));
    ring.wait(Some(Duration::ZERO)).unwrap();
    let peer = socket2::Socket::from(peer);
    peer.set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    match next(ring) {
        Seen::Received(Token(1), Err(error)) => assert!(is_reset(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    ring.send(socket, Token(2), batch_of(b"too late"));
    match next(ring) {
        Seen::Sent(Token(2), batch, Err(error)) => {
            assert!(batch.is_empty() && is_reset(&error), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

fn small_bytes_and_buffers_arrive_in_order(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    let mut batch = Box::<SendBatch>::default();
    batch.bytes(b"a");
    batch.bytes(b"b");
    batch.buffer(Buffer::from_vec(b"xcdx".to_vec()).slice(1, 2));
    let copy = batch.buffer_copied(&Buffer::from_vec(b"ef".to_vec()));
    assert_eq!(copy, b"ef");
    batch.bytes(b"g");
    batch.buffer(Buffer::zeros(2));
    batch.buffer(Buffer::from_vec(Vec::new()));
    batch.bytes(b"h");
    assert_eq!(batch.len(), 10);
    ring.send(socket, Token(1), batch);
    let mut batch = sent(ring, 1);
    hears(&mut peer, b"abcdefg\0\0h");
    assert!(batch.is_empty());
    batch.bytes(b"again");
    ring.send(socket, Token(2), batch);
    sent(ring, 2);
    hears(&mut peer, b"again");
}

fn what_a_socket_takes_leaves_at_once(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    let batch = ring.send_now(socket, Token(1), batch_of(b"early"));
    hears(&mut peer, b"early");
    let mut batch = batch.unwrap();
    assert!(batch.is_empty());
    quiet(ring);
    batch.bytes(b"later");
    ring.send(socket, Token(2), batch);
    sent(ring, 2);
    hears(&mut peer, b"later");
}

fn what_a_socket_does_not_take_at_once_follows(ring: &mut AnyRing) {
    let (socket, peer) = connect(ring);
    let bytes = pattern(8 << 20);
    assert!(ring.send_now(socket, Token(1), batch_of(&bytes)).is_none());
    let reader = reads(peer, 8 << 20);
    sent(ring, 1);
    assert_eq!(reader.join().unwrap(), bytes);
}

fn what_cannot_leave_at_once_is_told_later(ring: &mut AnyRing) {
    let (socket, peer) = connect(ring);
    let peer = socket2::Socket::from(peer);
    peer.set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    assert!(
        ring.send_now(socket, Token(1), batch_of(b"too late"))
            .is_none()
    );
    match next(ring) {
        Seen::Sent(Token(1), batch, Err(_)) => assert!(batch.is_empty()),
        other => panic!("{other:?}"),
    }
}

fn an_empty_batch_is_sent(ring: &mut AnyRing) {
    let (socket, _peer) = connect(ring);
    ring.send(socket, Token(1), Box::default());
    sent(ring, 1);
    quiet(ring);
}

fn a_batch_of_thousands_of_pieces_is_sent_whole(ring: &mut AnyRing) {
    let (socket, peer) = connect(ring);
    let bytes = pattern(5000 * 700);
    let whole = Buffer::from_vec(bytes.clone());
    let mut batch = Box::<SendBatch>::default();
    for piece in 0..5000 {
        batch.buffer(whole.slice(piece * 700, 700));
        assert_eq!(batch.is_full(), piece >= 511);
    }
    ring.send(socket, Token(1), batch);
    let reader = reads(peer, 5000 * 700);
    sent(ring, 1);
    assert!(reader.join().unwrap() == bytes);
}

fn a_slow_reader_holds_up_the_batch_but_nobody_else(ring: &mut AnyRing) {
    let (slow, mut slow_peer) = connect(ring);
    let (quick, mut quick_peer) = connect(ring);
    let bytes = pattern(16 << 20);
    ring.send(slow, Token(1), batch_of(&bytes));
    quiet(ring);
    ring.receive(slow, Token(2));
    ring.receive(quick, Token(3));
    quick_peer.write_all(b"now").unwrap();
    assert_eq!(received(ring, 3), b"now");
    slow_peer.write_all(b"still reading").unwrap();
    assert_eq!(received(ring, 2), b"still reading");
    let reader = reads(slow_peer, 16 << 20);
    sent(ring, 1);
    assert!(reader.join().unwrap() == bytes);
}

fn a_send_holds_its_buffers_until_it_is_over(ring: &mut AnyRing) {
    let pool = crate::memory::Pool::new(1 << 20).unwrap();
    let (socket, mut peer) = connect(ring);
    let mut batch = batch_of(&pattern(16 << 20));
    let buffer = pool.buffer(4096).unwrap();
    buffer.copy_in(0, &[5; 4096]);
    batch.buffer(buffer);
    ring.send(socket, Token(1), batch);
    quiet(ring);
    assert_eq!(pool.in_use(), 4096);
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; (16 << 20) + 4096];
        peer.read_exact(&mut got).unwrap();
        got.split_off(16 << 20)
    });
    sent(ring, 1);
    assert_eq!(pool.in_use(), 0);
    assert_eq!(reader.join().unwrap(), [5; 4096]);
}

fn a_busy_socket_receives_again_and_again(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    for round in 0..500u32 {
        ring.receive(socket, Token(1));
        peer.write_all(&round.to_be_bytes()).unwrap();
        assert_eq!(received(ring, 1), round.to_be_bytes());
        ring.send(socket, Token(2), batch_of(&round.to_le_bytes()));
        sent(ring, 2);
    }
    let mut answers = vec![0; 500 * 4];
    peer.read_exact(&mut answers).unwrap();
    assert_eq!(answers[499 * 4..], 499u32.to_le_bytes());
}

fn a_receive_waits_while_all_buffers_are_kept(ring: &mut AnyRing) {
    let mut connections: Vec<_> = (0..200).map(|_| connect(ring)).collect();
    for (at, (socket, peer)) in connections.iter_mut().enumerate() {
        ring.receive(*socket, Token(at as u64));
        peer.write_all(&[at as u8; 100]).unwrap();
    }
    let mut kept = Vec::new();
    let deadline = Instant::now() + SHORT * 3;
    while Instant::now() < deadline {
        ring.wait(Some(SHORT)).unwrap();
        while let Some(RingEvent::Received { token, bytes }) = ring.next_event() {
            kept.push((token, bytes.unwrap()));
        }
    }
    assert!((1..200).contains(&kept.len()), "{} kept", kept.len());
    let check = |token: Token, bytes: &[u8]| assert_eq!(bytes, [token.0 as u8; 100]);
    kept.iter().for_each(|(token, bytes)| check(*token, bytes));
    let mut count = kept.len();
    drop(kept);
    while count < 200 {
        match next(ring) {
            Seen::Received(token, bytes) => check(token, &bytes.unwrap()),
            other => panic!("{other:?}"),
        }
        count += 1;
    }
}

fn closing_ends_what_is_under_way(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    ring.receive(socket, Token(1));
    ring.send(socket, Token(2), batch_of(&pattern(16 << 20)));
    quiet(ring);
    ring.close(socket);
    let (mut receives, mut sends) = (0, 0);
    while receives + sends < 2 {
        match next(ring) {
            Seen::Received(Token(1), Err(error)) if is_canceled(&error) => receives += 1,
            Seen::Sent(Token(2), batch, Err(error)) if is_canceled(&error) => {
                assert!(batch.is_empty());
                sends += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((receives, sends), (1, 1));
    quiet(ring);
    let mut got = Vec::new();
    let _ = peer.read_to_end(&mut got);
    assert!(got.len() < 16 << 20);
}

fn closing_sends_what_was_sent_before(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    ring.receive(socket, Token(1));
    ring.send(socket, Token(2), batch_of(b"goodbye"));
    sent(ring, 2);
    ring.close(socket);
    match next(ring) {
        Seen::Received(Token(1), Err(error)) => assert!(is_canceled(&error)),
        other => panic!("{other:?}"),
    }
    let mut got = Vec::new();
    peer.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"goodbye");
}

fn a_closed_sockets_number_serves_another(ring: &mut AnyRing) {
    for round in 0..50 {
        let (socket, mut peer) = connect(ring);
        ring.receive(socket, Token(round));
        ring.wait(Some(Duration::ZERO)).unwrap();
        if round % 2 == 0 {
            peer.write_all(b"x").unwrap();
            assert_eq!(received(ring, round), b"x");
            ring.close(socket);
        } else {
            ring.close(socket);
            let ended = next(ring);
            assert!(matches!(ended, Seen::Received(Token(at), Err(_)) if at == round));
        }
    }
    quiet(ring);
}

fn a_released_socket_goes_on_in_another_ring(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    peer.write_all(b"first").unwrap();
    ring.receive(socket, Token(1));
    assert_eq!(received(ring, 1), b"first");
    let released = ring.release(socket);
    peer.write_all(b"second").unwrap();
    for kind in [RingKind::Epoll, RingKind::Uring] {
        let mut other = open(kind);
        let again = other.adopt(released.try_clone().unwrap()).unwrap();
        other.send(again, Token(2), batch_of(b"moved"));
        sent(&mut other, 2);
        hears(&mut peer, b"moved");
        other.release(again);
    }
    let socket = ring.adopt(released).unwrap();
    ring.receive(socket, Token(3));
    assert_eq!(received(ring, 3), b"second");
}

fn a_released_socket_keeps_what_was_not_received(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    let mut got = Vec::new();
    peer.write_all(&pattern(300 << 10)).unwrap();
    ring.receive(socket, Token(1));
    got.extend(received(ring, 1));
    let socket = ring.release(socket);
    let mut other = open(RingKind::Epoll);
    let socket = other.adopt(socket).unwrap();
    while got.len() < 300 << 10 {
        other.receive(socket, Token(2));
        got.extend(received(&mut other, 2));
    }
    assert!(got == pattern(300 << 10));
}

fn a_ring_is_dropped_with_operations_under_way(ring: &mut AnyRing) {
    let pool = crate::memory::Pool::new(1 << 20).unwrap();
    let mut dropped = open(ring.kind());
    let (socket, mut peer) = connect(&mut dropped);
    let mut batch = batch_of(&pattern(16 << 20));
    batch.buffer(pool.buffer(4096).unwrap());
    dropped.receive(socket, Token(1));
    dropped.send(socket, Token(2), batch);
    quiet(&mut dropped);
    drop(dropped);
    assert_eq!(pool.in_use(), 0);
    let mut got = Vec::new();
    let _ = peer.read_to_end(&mut got);
    assert!(got.len() < 16 << 20);
}

fn a_thousand_sockets_echo(ring: &mut AnyRing) {
    crate::limits::raise_open_files().unwrap();
    let connections: Vec<_> = (0..1000).map(|_| connect(ring)).collect();
    let (sockets, mut peers): (Vec<_>, Vec<_>) = connections.into_iter().unzip();
    for (at, socket) in sockets.iter().enumerate() {
        ring.receive(*socket, Token(at as u64));
    }
    let talk = std::thread::spawn(move || {
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&(at as u64).to_be_bytes()).unwrap();
        }
        for (at, peer) in peers.iter_mut().enumerate() {
            let mut answer = [0; 8];
            peer.read_exact(&mut answer).unwrap();
            assert_eq!(answer, (at as u64).to_be_bytes());
        }
    });
    let mut echoed = 0;
    while echoed < 1000 {
        match next(ring) {
            Seen::Received(Token(at), bytes) => {
                ring.send(sockets[at as usize], Token(at), batch_of(&bytes.unwrap()));
            }
            Seen::Sent(_, _, Ok(())) => echoed += 1,
            other => panic!("{other:?}"),
        }
    }
    talk.join().unwrap();
}

/// Were it allowed, the kernel would go on reading memory that is freed.
#[test]
#[should_panic(expected = "operations under way")]
fn a_socket_with_operations_under_way_is_not_released() {
    let ring = &mut open(RingKind::Auto);
    let (socket, _peer) = connect(ring);
    ring.send(socket, Token(1), batch_of(&pattern(16 << 20)));
    ring.wait(Some(Duration::ZERO)).unwrap();
    ring.release(socket);
}

#[test]
#[should_panic(expected = "two sends on a socket")]
fn a_second_send_does_not_take_the_place_of_the_first() {
    let ring = &mut open(RingKind::Auto);
    let (socket, _peer) = connect(ring);
    ring.send(socket, Token(1), batch_of(&pattern(16 << 20)));
    ring.wait(Some(Duration::ZERO)).unwrap();
    ring.send(socket, Token(2), batch_of(b"x"));
}
