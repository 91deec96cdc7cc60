//! The client by itself, on a real ring: a volume behind a target that a thread of its own serves.
//! What the client's thread allocates is counted, from the operation on the volume to its result.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use address::Address;
use client::open::{self, OpenOptions};
use client::worker::Worker;
use engine::core::accept_token;
use io::counting::allocations;
use io::ring::{AnyRing, Ring as _, RingKind};
use scsi::medium::{Extent, Lease as _, MediumOp, MediumOutcome, ReadMemory};
use tests::one_core::{TARGET, serving};

use super::LIMITS;

const DISK: u64 = 16 << 20;
/// Operations under way at once.
const DEPTH: u64 = 32;
const BLOCKS: u64 = 8;
const BYTES: u64 = 4096;

/// A target that serves until it is dropped.
struct Served {
    port: u16,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || serve(listener, &over));
        Self {
            port,
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

fn serve(listener: TcpListener, is_over: &AtomicBool) {
    let (mut ring, _) = AnyRing::open(RingKind::Epoll).unwrap();
    ring.listen(listener.into(), accept_token(0)).unwrap();
    let mut core = serving(ring, DISK, LIMITS).unwrap();
    let start = Instant::now();
    core.begin(Duration::ZERO);
    while !is_over.load(Relaxed) {
        core.ring().wait(Some(Duration::from_millis(1))).unwrap();
        core.turn(start.elapsed());
    }
}

struct Client {
    worker: Worker,
    sent: u64,
    _target: Served,
}

impl Client {
    /// With a session, or `None` where the kernel does not have the ring.
    fn new(scheme: &str, options: &str, ring: RingKind) -> Option<Self> {
        AnyRing::open(ring)
            .inspect_err(|cause| eprintln!("SKIPPED: {ring:?}: {cause}"))
            .ok()?;
        let target = Served::new();
        let address = format!("{scheme}://127.0.0.1:{}/{TARGET}/0{options}", target.port);
        let address: Address = address.parse().unwrap();
        let options = OpenOptions::new("iqn.2026-11.org.lunar:client".to_owned()).unwrap();
        let volume = open::volume(&address, &options).unwrap();
        Some(Self {
            worker: Worker::new(&[volume], ring, 16 << 20).unwrap(),
            sent: 0,
            _target: target,
        })
    }

    /// So many operations, as many as may be under way at once.
    fn run(&mut self, operations: u64, write: bool) {
        let end = self.sent + operations;
        let mut answered = self.sent;
        while answered < end {
            while self.sent < end && self.sent - answered < DEPTH {
                self.submit(write);
            }
            answered += self.answers(write);
        }
    }

    /// Waits for answers; returns how many came.
    fn answers(&mut self, write: bool) -> u64 {
        self.worker.wait(Some(Duration::from_secs(10))).unwrap();
        let mut answered = 0;
        while let Some(done) = self.worker.next_done() {
            match done.result.unwrap() {
                MediumOutcome::Lease(data) => assert_eq!(data.len() as u64, BYTES),
                MediumOutcome::Done => assert!(write),
                other => panic!("{other:?}"),
            }
            answered += 1;
        }
        answered
    }

    /// As many operations as may be under way leave at once, and their answers are heard at once:
    /// there are never more together, however busy the machine is.
    fn burst(&mut self, write: bool) {
        (0..DEPTH).for_each(|_| self.submit(write));
        self.worker.wait(Some(Duration::ZERO)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let mut answered = 0;
        while answered < DEPTH {
            answered += self.answers(write);
        }
    }

    fn submit(&mut self, write: bool) {
        let places = DISK / BYTES;
        let extent = Extent::new(self.sent * 7 % places * BLOCKS, BLOCKS);
        let op = if write {
            MediumOp::Write {
                extent,
                data: self.worker.buffer(BYTES as usize).unwrap(),
                fua: false,
                atomic: false,
            }
        } else {
            let memory = ReadMemory::Private;
            MediumOp::Read { extent, memory }
        };
        self.worker.submit(0, self.sent, op);
        self.sent += 1;
    }

    /// What so many operations allocate once everything is warm.
    fn cost(&mut self, operations: u64, write: bool) -> usize {
        self.run(4000, write);
        self.burst(write);
        let before = allocations();
        self.run(operations, write);
        allocations() - before
    }
}

#[track_caller]
fn costs_nothing(scheme: &str, options: &str) {
    for ring in [RingKind::Epoll, RingKind::Uring] {
        let Some(mut client) = Client::new(scheme, options, ring) else {
            continue;
        };
        // Of each ring 100,000.
        let costs = [true, false].map(|write| client.cost(50_000, write));
        assert_eq!(costs, [0, 0], "{scheme}, {ring:?}: writes and reads");
        client.worker.leave().unwrap();
    }
}

#[test]
fn a_client_does_not_use_the_heap() {
    costs_nothing("iscsi", "");
}

#[test]
fn a_client_does_not_use_the_heap_over_iser() {
    costs_nothing("iser", "?via=soft");
}
