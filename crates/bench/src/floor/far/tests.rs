//! Connections that are answered together.

use super::*;

/// A connection that was heard last then, and its other end.
fn connected(heard: Instant) -> (FloorConnection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    let connection = FloorConnection {
        socket,
        spins: false,
        memory: FloorBuffers::new(Arc::new(FloorBudget {
            memory: AtomicU64::new(0),
            connections: AtomicUsize::new(1),
        })),
        buffer: vec![0; HEADER],
        filled: 0,
        answers: Vec::new(),
        heard,
    };
    (connection, peer)
}

#[test]
fn only_who_is_silent_for_long_is_closed() {
    let now = Instant::now();
    let together = ThreadConnections::start().unwrap();
    let (heard, mut other) = connected(now);
    together.add(heard).unwrap();
    let (silent, mut peer) = connected(now.checked_sub(2 * SILENCE).unwrap());
    together.add(silent).unwrap();
    peer.set_read_timeout(Some(SILENCE / 2)).unwrap();
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    other.set_nonblocking(true).unwrap();
    let left = other.read(&mut [0]).map_err(|cause| cause.kind());
    assert_eq!(left, Err(ErrorKind::WouldBlock));
}
