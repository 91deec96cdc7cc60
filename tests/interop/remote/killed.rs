//! A target that is killed again and again under load, which does not notice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use address::Address;
use block::lease::BlockLease;
use client::open::{self, OpenOptions};
use client::worker::Worker;
use io::ring::RingKind;
use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, MediumResult, ReadMemory};
use sim::Rng;
use tests::server::Server;

use super::{TARGET, restart};
use crate::{file, lunar};

/// Blocks of an operation, and how many places there are for one.
const BLOCKS: u64 = 8;
const PLACES: u64 = 512;

/// Writes and reads of places that nobody else uses meanwhile, of a volume that checks them.
struct Load {
    worker: Worker,
    rng: Rng,
    busy: BTreeSet<u64>,
    ended: u64,
}

impl Load {
    fn new(address: &str) -> Self {
        Self {
            worker: worker(address),
            rng: Rng::new(20),
            busy: BTreeSet::new(),
            ended: 0,
        }
    }

    fn run(&mut self) {
        while self.busy.len() < 16 {
            let place = self.rng.below(PLACES as usize) as u64;
            if self.busy.insert(place) {
                let op = self.any_op(place);
                self.worker.submit(0, place, op);
            }
        }
        self.wait();
    }

    fn any_op(&mut self, place: u64) -> MediumOp<BlockLease> {
        let extent = Extent::new(place * BLOCKS, BLOCKS);
        match self.rng.below(8) {
            0 => MediumOp::Flush { extent },
            1..4 => read(place),
            _ => {
                let bytes: [u8; BLOCKS as usize * 512] = self.rng.bytes();
                let mut data = self.worker.buffer(bytes.len()).unwrap();
                data.copy_in(0, &bytes);
                write(place, data)
            }
        }
    }

    /// What ends has no error, and what is read is what was written.
    fn wait(&mut self) {
        self.worker.wait(Some(Duration::from_millis(20))).unwrap();
        while let Some(done) = self.worker.next_done() {
            assert!(self.busy.remove(&done.id));
            let place = done.id;
            done.result
                .unwrap_or_else(|error| panic!("place {place}: {error:?}"));
            self.ended += 1;
        }
    }

    fn finish(mut self) {
        while !self.busy.is_empty() {
            self.wait();
        }
        for place in 0..PLACES {
            self.worker.submit(0, place, read(place));
            ended(&mut self.worker).unwrap_or_else(|error| panic!("place {place}: {error:?}"));
        }
        self.worker.leave().unwrap();
    }
}

fn worker(address: &str) -> Worker {
    let address: Address = address.parse().unwrap();
    let options = OpenOptions::new("iqn.2026-11.org.lunar.test:load".into()).unwrap();
    let volume = open::volume(&address, &options).unwrap();
    Worker::new(&[volume], RingKind::Auto, 16 << 20).unwrap()
}

fn read(place: u64) -> MediumOp<BlockLease> {
    let extent = Extent::new(place * BLOCKS, BLOCKS);
    let memory = ReadMemory::Lent;
    MediumOp::Read { extent, memory }
}

fn write(place: u64, data: BlockLease) -> MediumOp<BlockLease> {
    MediumOp::Write {
        extent: Extent::new(place * BLOCKS, BLOCKS),
        data,
        fua: false,
        atomic: false,
    }
}

/// A server of a file in a folder, and its portal.
fn serve(dir: &Path, volume: &str) -> (Server, String) {
    let server = Server::start_in(dir, &[volume], &["--iqn", TARGET]).unwrap();
    let portal = server.luns[0].portals[0].clone();
    (server, portal)
}

#[test]
fn who_uses_a_target_that_is_killed_twenty_times_does_not_notice() {
    is_killed_twenty_times("remote-twenty", "");
}

#[test]
fn who_uses_it_by_several_sessions_does_not_notice_either() {
    is_killed_twenty_times("remote-twenty-spread", "?sessions=3");
}

fn is_killed_twenty_times(name: &str, options: &str) {
    let dir = tests::scratch(name).unwrap();
    let volume = file(&dir, "disk?size=16M&sync");
    let (mut back, portal) = serve(&dir, &volume);
    let mut load = Load::new(&format!("verify({}{options})", back.address(0)));
    let killer = thread::spawn(move || {
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(100));
            back.kill().unwrap();
            back = restart(&dir, &volume, &portal);
        }
        back
    });
    while !killer.is_finished() {
        load.run();
    }
    assert!(load.ended > 100, "{} operations", load.ended);
    let _back = killer.join().unwrap();
    load.finish();
}

/// Writes that were not flushed, on each of several sessions, are told as lost by one flush.
#[test]
fn a_cache_that_is_lost_is_told_once_for_all_sessions() {
    let dir = tests::scratch("remote-lost").unwrap();
    let volume = file(&dir, "disk?size=16M");
    let (back, portal) = serve(&dir, &volume);
    let mut worker = worker(&format!("{}?sessions=3", back.address(0)));
    for place in 0..12 {
        let data = worker.buffer(BLOCKS as usize * 512).unwrap();
        worker.submit(0, place, write(place, data));
    }
    for _ in 0..12 {
        ended(&mut worker).unwrap();
    }
    back.kill().unwrap();
    let _back = restart(&dir, &volume, &portal);
    let mut flush = || {
        let extent = Extent::new(0, 0);
        worker.submit(0, 0, MediumOp::Flush { extent });
        ended(&mut worker).map(|_| ())
    };
    assert_eq!(flush(), Err(MediumError::Write));
    assert_eq!(flush(), Ok(()));
    worker.leave().unwrap();
}

/// Longer than a remote unit takes to give up what waits for it.
const PATIENCE: Duration = Duration::from_secs(180);

fn ended(worker: &mut Worker) -> MediumResult<BlockLease> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(done) = worker.next_done() {
            return done.result;
        }
        assert!(Instant::now() < deadline, "the operation does not end");
        worker.wait(Some(Duration::from_secs(1))).unwrap();
    }
}

/// However often it is tried meanwhile.
#[test]
fn a_target_that_is_away_for_a_second_is_told_once() {
    let dir = tests::scratch("remote-away").unwrap();
    fs::write(dir.join("disk"), vec![1; 16 << 20]).unwrap();
    let volume = file(&dir, "disk");
    let (server, portal) = serve(&dir, &volume);
    let copy = dir.join("copy");
    let unit = server.address(0).to_owned();
    let slow = format!("limit:rate=8M({unit})");
    let mut command = lunar(&["copy", &slow, &file(&dir, "copy"), "--state-dir"]);
    command.arg(dir.join("copies")).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !copy.exists() {
        assert!(Instant::now() < deadline, "the copy does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    server.kill().unwrap();
    thread::sleep(Duration::from_secs(1));
    let _back = restart(&dir, &volume, &portal);
    let ran = child.wait_with_output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success(), "{told}");
    // With its address, as a gateway may have many units of one host.
    for words in ["cannot connect", "connected again"] {
        let line = format!("{unit}: {words}");
        assert_eq!(told.matches(&line).count(), 1, "{told}");
    }
}
