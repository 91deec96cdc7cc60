//! Accepting connections.

use std::io::Write;
use std::net::Shutdown;

use super::*;

super::on_every_ring! {
    connections_are_accepted_one_after_the_other
    several_listening_sockets_are_told_apart
    nothing_is_accepted_after_stop_listening
    a_connection_that_was_given_up_does_not_stop_the_others
}

fn listen(ring: &mut AnyRing, token: u64) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    ring.listen(listener.into(), Token(token)).unwrap();
    address
}

fn accepted(ring: &mut AnyRing, token: u64) -> OwnedFd {
    match next(ring) {
        Seen::Accepted(at, socket) if at == Token(token) => socket,
        other => panic!("{other:?}"),
    }
}

fn connections_are_accepted_one_after_the_other(ring: &mut AnyRing) {
    let address = listen(ring, 7);
    quiet(ring);
    for round in 0..100u8 {
        let mut peer = TcpStream::connect(address).unwrap();
        let deadline = Instant::now() + LONG;
        let event = loop {
            if let Some(event) = ring.next_event() {
                break event;
            }
            assert!(Instant::now() < deadline);
            ring.wait(Some(LONG)).unwrap();
        };
        let RingEvent::Accepted {
            token,
            socket,
            peer: from,
        } = event
        else {
            panic!("{event:?}");
        };
        assert_eq!((token, from), (Token(7), peer.local_addr().unwrap()));
        let socket = ring.adopt(socket).unwrap();
        ring.receive(socket, Token(8));
        peer.write_all(&[round]).unwrap();
        assert_eq!(received(ring, 8), [round]);
        ring.close(socket);
    }
}

fn several_listening_sockets_are_told_apart(ring: &mut AnyRing) {
    let first = listen(ring, 1);
    let second = listen(ring, 2);
    let mut peers = Vec::new();
    peers.push(TcpStream::connect(second).unwrap());
    accepted(ring, 2);
    peers.push(TcpStream::connect(first).unwrap());
    accepted(ring, 1);
    peers.extend((0..100).map(|_| TcpStream::connect(first).unwrap()));
    (0..100).for_each(|_| drop(accepted(ring, 1)));
}

fn nothing_is_accepted_after_stop_listening(ring: &mut AnyRing) {
    let address = listen(ring, 1);
    let _peer = TcpStream::connect(address).unwrap();
    accepted(ring, 1);
    let _unseen = TcpStream::connect(address).unwrap();
    ring.stop_listening();
    quiet(ring);
    assert!(TcpStream::connect(address).is_err());
    let again = listen(ring, 2);
    let _peer = TcpStream::connect(again).unwrap();
    accepted(ring, 2);
}

fn a_connection_that_was_given_up_does_not_stop_the_others(ring: &mut AnyRing) {
    let address = listen(ring, 1);
    for _ in 0..5 {
        let peer = TcpStream::connect(address).unwrap();
        let peer = socket2::Socket::from(peer);
        peer.set_linger(Some(Duration::ZERO)).unwrap();
        peer.shutdown(Shutdown::Both).unwrap();
    }
    let last = TcpStream::connect(address).unwrap();
    let name = last.local_addr().unwrap();
    loop {
        let socket = accepted(ring, 1);
        let from = TcpStream::from(socket).peer_addr();
        if from.is_ok_and(|from| from == name) {
            break;
        }
    }
}
