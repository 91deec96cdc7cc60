//! A worker with volumes of this process.

use std::sync::Arc;
use std::time::Duration;

use ::io::memory::MemoryLimit;
use ::io::ring::RingKind;
use block::limit::Delay;
use block::ram::Ram;
use block::volume::Volume;
use scsi::medium::{Extent, Lease as _, MediumOp, MediumOutcome, MediumResult, ReadMemory};

use super::{TRIM_INTERVAL, Worker, WorkerResult};

const BLOCK: u32 = 512;

fn ram() -> Arc<dyn Volume> {
    Arc::new(Ram::new(1 << 20, BLOCK, &MemoryLimit::new(1 << 30)).unwrap())
}

fn next(worker: &mut Worker) -> WorkerResult {
    loop {
        if let Some(done) = worker.next_done() {
            return done;
        }
        worker.wait(Some(Duration::from_secs(10))).unwrap();
    }
}

fn bytes(result: MediumResult<block::lease::BlockLease>) -> Vec<u8> {
    let Ok(MediumOutcome::Lease(lease)) = result else {
        panic!("no data: {result:?}");
    };
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

#[test]
fn what_one_volume_was_given_is_not_in_the_other() {
    let mut worker = Worker::new(&[ram(), ram()], RingKind::Auto, 1 << 20).unwrap();
    let extent = Extent::new(3, 1);
    let mut data = worker.buffer(BLOCK as usize).unwrap();
    data.copy_in(0, &[7; BLOCK as usize]);
    let (fua, atomic) = (false, false);
    let write = MediumOp::Write {
        extent,
        data,
        fua,
        atomic,
    };
    worker.submit(1, 40, write);
    let done = next(&mut worker);
    assert_eq!((done.volume, done.id), (1, 40));
    assert!(matches!(done.result, Ok(MediumOutcome::Done)));
    for (volume, value) in [(0, 0), (1, 7)] {
        let memory = ReadMemory::Private;
        worker.submit(volume, 41, MediumOp::Read { extent, memory });
        let done = next(&mut worker);
        assert_eq!((done.volume, done.id), (volume, 41));
        assert_eq!(bytes(done.result), [value; BLOCK as usize]);
    }
    worker.leave().unwrap();
}

#[test]
fn what_takes_time_is_waited_for() {
    let slow: Arc<dyn Volume> = Arc::new(Delay::new(ram(), Duration::from_millis(20)));
    let mut worker = Worker::new(&[slow, ram()], RingKind::Epoll, 1 << 20).unwrap();
    for volume in [0, 1] {
        let extent = Extent::new(0, 1);
        let memory = ReadMemory::Lent;
        worker.submit(volume, 0, MediumOp::Read { extent, memory });
    }
    let order = [next(&mut worker).volume, next(&mut worker).volume];
    assert_eq!(order, [1, 0]);
}

#[test]
fn an_idle_worker_gives_memory_back_and_is_woken_for_it_no_more() {
    let mut worker = Worker::new(&[ram()], RingKind::Auto, 1 << 20).unwrap();
    let held = worker.buffer(4096).unwrap();
    drop(worker.buffer(256 << 10));
    let resident = worker.pool.resident();
    assert!(resident > worker.pool.in_use());
    for _ in 0..4 {
        worker.wait(Some(Duration::ZERO)).unwrap();
        // As if so much time had passed.
        worker.start = worker.start.checked_sub(TRIM_INTERVAL).unwrap();
    }
    assert_eq!(worker.pool.resident(), worker.pool.in_use());
    assert!(worker.pool.in_use() > 0, "one is in use");
    assert_eq!(worker.trim_at, None);
    drop(held);
    worker.wait(Some(Duration::ZERO)).unwrap();
    assert!(worker.trim_at.is_some(), "it is idle now");
}
