//! Both ends of a floor in one process.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::near::refused;
use super::{
    BUFFER, FloorHeader, FloorKind, FloorPeer, FloorServer, HEADER, ServerLifetime, measure, room,
};
use crate::load::Measured;
use crate::load::tests::observed;
use crate::plan::FioOptions;

const MEMORY: u64 = 4 << 20;

fn listen() -> SocketAddr {
    let listener = FloorServer::new(&[([127, 0, 0, 1], 0).into()], room(MEMORY, 2)).unwrap();
    let address = listener.address().unwrap();
    thread::spawn(move || listener.run(ServerLifetime::On));
    address
}

fn run(rw: &str, jobs: u32, spin: bool, size: u64) -> Measured {
    run_at(listen(), rw, jobs, spin, size)
}

fn run_at(address: SocketAddr, rw: &str, jobs: u32, spin: bool, size: u64) -> Measured {
    let words = FioOptions {
        depth: 8,
        jobs,
        runtime: Duration::from_millis(300),
        ramp: Duration::from_millis(5),
        ..FioOptions::preset(None, false).unwrap()
    };
    let load = words.load(rw.parse().unwrap(), 4096);
    let place = FloorPeer {
        address,
        pid: None,
        spin,
    };
    observed(false, |watch| measure(place, &words, load, size, watch)).unwrap()
}

#[test]
fn every_direction_is_counted() {
    for (rw, reads, writes) in [
        ("randread", true, false),
        ("write", false, true),
        ("randrw", true, true),
    ] {
        for spin in [false, true] {
            let Measured { rows, failure } = run(rw, 2, spin, MEMORY);
            assert_eq!(failure, None);
            let [row] = &rows[..] else {
                panic!("{} rows", rows.len())
            };
            let moved = (row.reads.ios > 0, row.writes.ios > 0);
            assert_eq!(moved, (reads, writes), "{rw}");
            assert_eq!(row.bytes(), row.ios() * 4096);
            assert_eq!(row.latency().count(), row.ios());
        }
    }
}

/// A floor that answers the first requests when the row is over: they began in it.
#[test]
fn what_is_in_flight_at_the_end_of_a_row_is_counted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let slow = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut header = [0; HEADER];
        socket.read_exact(&mut header).unwrap();
        socket.write_all(&header).unwrap();
        thread::sleep(Duration::from_secs(1));
        while socket.read_exact(&mut header).is_ok() {
            if socket.write_all(&[0; HEADER + 4096]).is_err() {
                break;
            }
        }
    });
    let Measured { rows, failure } = run_at(address, "read", 1, false, MEMORY);
    assert_eq!(failure, None);
    assert_eq!(rows[0].ios(), 8);
    slow.join().unwrap();
}

#[test]
fn more_memory_than_there_is_names_the_option() {
    let all = MEMORY + BUFFER as u64;
    assert_eq!(run("read", 1, false, all).failure, None);
    let failure = run("read", 1, false, all + 4096).failure.unwrap();
    assert!(failure.contains("its --size is too small"), "{failure}");
}

/// Zeros would be an answer, but to something else.
#[test]
fn who_is_no_floor_is_told_from_one() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let other = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.write_all(&[0; 1 << 20]);
    });
    let failure = run_at(address, "read", 1, false, MEMORY).failure;
    let failure = failure.unwrap();
    assert!(failure.contains("start one there"), "{failure}");
    other.join().unwrap();
    let silent = refused(ErrorKind::WouldBlock.into(), MEMORY);
    assert!(silent.to_string().contains("does not answer"), "{silent}");
}

#[test]
fn headers_are_read_as_they_were_written() {
    let header = FloorHeader {
        spin: true,
        ..FloorHeader::new(FloorKind::Write, 65_536, 1 << 40)
    };
    assert_eq!(FloorHeader::decode(&header.encode()).unwrap(), header);
    assert!(FloorHeader::decode(&[9; HEADER]).is_err());
}

fn begin(offset: u64) -> FloorHeader {
    FloorHeader::new(FloorKind::Begin, 0, offset)
}

/// Six have a MiB for what comes, and nobody has data.
#[test]
fn what_comes_takes_of_the_memory_too() {
    let address = listen();
    let connect = || {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(&begin(0).encode()).unwrap();
        let answered = socket.read_exact(&mut [0; HEADER]).is_ok();
        (socket, answered)
    };
    let connected: Vec<_> = (0..7).map(|_| connect()).collect();
    let answered: Vec<_> = connected.iter().map(|(_, answered)| *answered).collect();
    assert_eq!(answered, [true, true, true, true, true, true, false]);
}

/// Whoever sends what is wrong is closed, and others go on.
#[test]
fn wrong_requests_end_their_connection() {
    let address = listen();
    let read = |offset| FloorHeader::new(FloorKind::Read, 4096, offset);
    let (beyond, behind) = (read(u64::MAX - 1), read(4096));
    for wrong in [beyond, behind, begin(u64::MAX)] {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(&begin(4096).encode()).unwrap();
        let mut answer = [0; HEADER];
        socket.read_exact(&mut answer).unwrap();
        socket.write_all(&wrong.encode()).unwrap();
        let ended = socket.read(&mut answer);
        assert!(matches!(ended, Ok(0) | Err(_)), "{wrong:?}: {ended:?}");
    }
}
