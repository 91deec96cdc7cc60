//! What a ring does whose thread spins.

use std::io::{Read, Write};

use super::*;

super::on_every_ring! {
    bytes_are_received
    as_many_sockets_as_there_are_are_heard
    a_receive_goes_on_when_the_ring_sleeps
    a_receive_goes_on_when_more_sockets_come_and_go
    a_peer_that_closes_is_seen
    a_peer_that_resets_is_an_error
    closing_ends_a_receive
    what_a_socket_takes_has_left
    what_a_socket_does_not_take_follows
}

/// More than are received from without the kernel's help.
const SOCKETS: usize = 9;

/// The ring spins from now on.
fn spin(ring: &mut AnyRing) {
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert!(ring.next_event().is_none());
}

/// The next event of a ring that never sleeps.
#[track_caller]
fn spun(ring: &mut AnyRing) -> Seen {
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        ring.wait(Some(Duration::ZERO)).unwrap();
        if let Some(event) = ring.next_event() {
            return event.into();
        }
    }
    panic!("no event");
}

#[track_caller]
fn heard(seen: Seen, token: u64, bytes: &[u8]) {
    match seen {
        Seen::Received(at, Ok(got)) if at == Token(token) => assert_eq!(got, bytes),
        other => panic!("{other:?}"),
    }
}

fn bytes_are_received(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    for round in 0..100 {
        ring.receive(socket, Token(round));
        spin(ring);
        peer.write_all(&[round as u8; 48]).unwrap();
        heard(spun(ring), round, &[round as u8; 48]);
    }
    spin(ring);
}

fn as_many_sockets_as_there_are_are_heard(ring: &mut AnyRing) {
    let mut pairs: Vec<_> = (0..SOCKETS).map(|_| connect(ring)).collect();
    spin(ring);
    for (token, (socket, _)) in (0..).zip(&pairs) {
        ring.receive(*socket, Token(token));
    }
    for (token, (_, peer)) in (0..).zip(&mut pairs) {
        peer.write_all(b"hello").unwrap();
        heard(spun(ring), token, b"hello");
    }
}

fn a_receive_goes_on_when_the_ring_sleeps(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    ring.receive(socket, Token(1));
    spin(ring);
    let peer = std::thread::spawn(move || {
        std::thread::sleep(SHORT);
        peer.write_all(b"late").unwrap();
        peer
    });
    heard(next(ring), 1, b"late");
    drop(peer.join().unwrap());
}

fn a_receive_goes_on_when_more_sockets_come_and_go(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    ring.receive(socket, Token(1));
    spin(ring);
    let others: Vec<_> = (1..SOCKETS).map(|_| connect(ring)).collect();
    spin(ring);
    peer.write_all(b"among many").unwrap();
    heard(spun(ring), 1, b"among many");
    ring.receive(socket, Token(2));
    for (other, _) in &others {
        ring.close(*other);
    }
    spin(ring);
    peer.write_all(b"alone").unwrap();
    heard(spun(ring), 2, b"alone");
    ring.receive(socket, Token(3));
    peer.write_all(b"again").unwrap();
    heard(spun(ring), 3, b"again");
}

fn a_peer_that_closes_is_seen(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    ring.receive(socket, Token(1));
    peer.write_all(b"last").unwrap();
    drop(peer);
    heard(spun(ring), 1, b"last");
    ring.receive(socket, Token(2));
    heard(spun(ring), 2, b"");
}

fn a_peer_that_resets_is_an_error(ring: &mut AnyRing) {
    let (socket, peer) = connect(ring);
    spin(ring);
    ring.receive(socket, Token(1));
    let peer = socket2::Socket::from(peer);
    peer.set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    match spun(ring) {
        Seen::Received(Token(1), Err(error)) => assert!(is_reset(&error), "{error}"),
        other => panic!("{other:?}"),
    }
}

fn closing_ends_a_receive(ring: &mut AnyRing) {
    let (socket, _peer) = connect(ring);
    spin(ring);
    ring.receive(socket, Token(1));
    spin(ring);
    ring.close(socket);
    match spun(ring) {
        Seen::Received(Token(1), Err(error)) => assert!(is_canceled(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    // Its number is free.
    let (_, _peer) = connect(ring);
    spin(ring);
}

fn what_a_socket_takes_has_left(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    ring.send(socket, Token(1), batch_of(b"answer"));
    match spun(ring) {
        Seen::Sent(Token(1), batch, Ok(())) => assert!(batch.is_empty()),
        other => panic!("{other:?}"),
    }
    let mut got = [0; 6];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"answer");
}

fn what_a_socket_does_not_take_follows(ring: &mut AnyRing) {
    let (socket, mut peer) = connect(ring);
    spin(ring);
    let bytes = pattern(16 << 20);
    ring.send(socket, Token(1), batch_of(&bytes));
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; 16 << 20];
        peer.read_exact(&mut got).unwrap();
        got
    });
    match spun(ring) {
        Seen::Sent(Token(1), _, Ok(())) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(reader.join().unwrap(), bytes);
}
