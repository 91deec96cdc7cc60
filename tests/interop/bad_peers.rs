//! Five thousand peers of every bad kind, one after the other and many at once: the server stays
//! alive, small and calm, and a good session is not disturbed.

mod kinds;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use io::cpu;
use kinds::KINDS;
use tests::client::Client;
use tests::process::resident;
use tests::server::{ReadyLun, Server};

const PEERS: usize = 5000;
const AT_ONCE: usize = 8;

/// What may be left of it all.
const GROWTH: u64 = 64 << 20;

/// The good session: writes and reads back until told to stop, each within the client's patience.
/// Returns how often.
fn good_session(lun: &ReadyLun, stop: &AtomicBool) -> usize {
    let mut client = Client::log_in(lun, 1_000_000).unwrap();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let (lba, data) = ((count % 1000 * 16) as u64, [count as u8; 8192]);
        client.write(lba, data, false).unwrap();
        assert_eq!(client.read(lba, 16).unwrap()[..], data[..]);
        count += 1;
    }
    count
}

/// Bad peers take their kind in turn. Those that hold on are let go when a few hundred more came.
/// Counts in `done` those of each kind that came as far as they wanted.
fn bad_peers(portal: SocketAddr, target: &str, next: &AtomicUsize, done: &[AtomicUsize]) {
    let mut held = std::collections::VecDeque::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= PEERS {
            return;
        }
        let at = number % KINDS.len();
        let (_, kind) = &KINDS[at];
        // However it ends: refused, reset or let be.
        if let Ok(socket) = kind.meet(portal, target, number as u32) {
            held.push_back(socket);
            done[at].fetch_add(1, Ordering::Relaxed);
        }
        if held.len() > 40 {
            held.pop_front();
        }
    }
}

#[test]
fn five_thousand_of_every_kind() {
    let options = ["--login-timeout", "1s"];
    let mut server = Server::start("bad-peers", &["ram:64M"], &options).unwrap();
    let lun = server.luns[0].clone();
    let portal: SocketAddr = lun.portals[0].parse().unwrap();
    let (stop, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let done: Vec<_> = KINDS.iter().map(|_| AtomicUsize::new(0)).collect();
    let before = resident(server.pid()).unwrap();

    let count = thread::scope(|scope| {
        let good = scope.spawn(|| good_session(&lun, &stop));
        let bad: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| bad_peers(portal, &lun.target, &next, &done)))
            .collect();
        let bad: Vec<_> = bad
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        stop.store(true, Ordering::Relaxed);
        bad.into_iter().for_each(Result::unwrap);
        good.join().unwrap()
    });

    assert!(server.alive().unwrap(), "{}", server.log());
    let kinds = KINDS.iter().zip(done);
    let absent = kinds.filter_map(|((name, _), done)| (done.into_inner() == 0).then_some(*name));
    assert_eq!(absent.collect::<Vec<_>>(), [""; 0], "nobody was like that");
    assert!(count > 100, "the good session did {count} I/Os");
    calm(&server, before);
    Client::log_in(&lun, 1_000_001).unwrap();
    let lines = server.log().lines().count();
    let told = format!("{lines} lines were logged about {PEERS} peers");
    assert!((1..500).contains(&lines), "{told}");
}

/// It has become small again, and does not spin.
fn calm(server: &Server, before: u64) {
    thread::sleep(Duration::from_secs(3));
    let start = cpu::time_of(server.pid()).unwrap();
    thread::sleep(Duration::from_secs(2));
    let used = cpu::time_of(server.pid()).unwrap() - start;
    let few = Duration::from_millis(200);
    assert!(used < few, "idle, it used {used:?} in 2 s");
    let after = resident(server.pid()).unwrap();
    // The volume itself may have grown by what the good session wrote.
    let grown = after.saturating_sub(before + (16 << 20));
    assert!(grown < GROWTH, "it grew by {grown} bytes");
}
