//! Failed writes and flushes: what is told, what is remembered, and what is not.

use rustix::io::Errno;
use scsi::medium::{Extent, MediumError, MediumOp};

use super::fake::{FakeRing, Sort};
use super::places::{Folder, reopen, sized};
use super::rig::{FLUSH, Rig, is_done, reading, same, unmapping};
use crate::file::{FileOptions, FileVolume};
use crate::lease::BlockLease;
use scsi::medium::Lease as _;

fn volume(sync: bool) -> (Folder, FileOptions, Rig<FakeRing>) {
    let folder = Folder::in_memory();
    let options = FileOptions {
        path: folder.file("disk"),
        size: Some(1 << 20),
        // Zeros by holes, which file systems in memory have too.
        sparse: true,
        sync,
        ..FileOptions::default()
    };
    let file = FileVolume::open(&options).unwrap();
    let rig = Rig::fake(&file);
    (folder, options, rig)
}

fn forced(rig: &mut Rig<FakeRing>, handle: usize) -> Result<(), MediumError> {
    let op = rig.write_op(0, 1, 1, true);
    rig.run_on(handle, op).map(|_| ())
}

#[test]
fn failed_flush_fails_all_later_ones_on_all_cores_until_reopened() {
    let (_folder, options, mut rig) = volume(false);
    assert!(is_done(&rig.write(0, 8, 1)));
    rig.ring.fail(Sort::DataSync, Errno::IO);
    assert!(matches!(rig.flush(), Err(MediumError::Write)));

    // The kernel would say that all is well.
    assert!(matches!(rig.flush(), Err(MediumError::Write)));
    assert!(matches!(rig.run_on(1, FLUSH), Err(MediumError::Write)));
    assert_eq!(forced(&mut rig, 0), Err(MediumError::Write));
    assert_eq!(forced(&mut rig, 1), Err(MediumError::Write));
    assert_eq!(rig.ring.log, [Sort::Write, Sort::DataSync]);

    // Reading goes on, and so does writing that promises nothing.
    assert_eq!(rig.read(0, 8), vec![1; 4096]);
    assert!(is_done(&rig.write(0, 8, 2)));

    drop(rig);
    let file = reopen(|| FileVolume::open(&options));
    let mut rig = Rig::fake(&file);
    assert!(is_done(&rig.flush()));
}

#[test]
fn failed_flush_for_lack_of_space_is_remembered_too() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::DataSync, Errno::NOSPC);
    assert!(matches!(rig.flush(), Err(MediumError::NoSpace)));
    assert!(matches!(rig.flush(), Err(MediumError::Write)));
}

#[test]
fn failed_write_fails_flushes() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::Write, Errno::IO);
    assert!(matches!(rig.write(0, 1, 1), Err(MediumError::Write)));
    assert!(matches!(rig.flush(), Err(MediumError::Write)));
}

#[test]
fn failed_forced_write_fails_flushes() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::DurableWrite, Errno::IO);
    assert_eq!(forced(&mut rig, 1), Err(MediumError::Write));
    assert!(matches!(rig.flush(), Err(MediumError::Write)));
}

#[test]
fn refused_writes_are_not_remembered() {
    for (errno, told) in [
        (Errno::NOSPC, MediumError::NoSpace),
        (Errno::DQUOT, MediumError::NoSpace),
        (Errno::ROFS, MediumError::ReadOnly),
        (Errno::OPNOTSUPP, MediumError::Unsupported),
        (Errno::INVAL, MediumError::Write),
    ] {
        let (_folder, _, mut rig) = volume(false);
        rig.ring.fail(Sort::Write, errno);
        let result = rig.write(0, 1, 1).map(|_| ());
        assert_eq!(result, Err(told), "{errno:?}");
        assert!(is_done(&rig.flush()), "{errno:?}");
    }
}

#[test]
fn failed_read_is_told_and_not_remembered() {
    let (_folder, _, mut rig) = volume(false);
    let extent = Extent::new(0, 1);
    rig.ring.fail(Sort::Read, Errno::IO);
    rig.fails(reading(extent), MediumError::Read);
    rig.ring.fail(Sort::Read, Errno::NODEV);
    rig.fails(reading(extent), MediumError::Gone);
    assert!(is_done(&rig.flush()));
    assert_eq!(rig.read(0, 1), [0; 512]);
    assert_eq!(rig.pool.in_use(), 0, "buffers of failed reads come back");
}

#[test]
fn flush_under_way_when_a_forced_write_fails_fails_too() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::DurableWrite, Errno::IO);
    let write = rig.write_op(0, 1, 1, true);
    let write = rig.submit(0, write);
    let flush = rig.submit(0, FLUSH);
    rig.turn();
    assert!(matches!(rig.result(write), Some(Err(MediumError::Write))));
    rig.turn();
    assert!(matches!(rig.result(flush), Some(Err(MediumError::Write))));
}

#[test]
fn flushes_that_meet_share_the_next_one() {
    let (_folder, _, mut rig) = volume(false);
    let ids: Vec<u64> = (0..5).map(|_| rig.submit(0, FLUSH)).collect();
    rig.turn();
    assert!(rig.result(ids[0]).is_some());
    assert!(
        rig.result(ids[1]).is_none(),
        "its writes may be younger than the first flush"
    );
    rig.turn();
    assert!(ids[1..].iter().all(|id| rig.result(*id).is_some()));
    assert_eq!(rig.ring.log, [Sort::DataSync; 2]);
}

#[test]
fn waiting_flushes_fail_with_the_one_before_them() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::DataSync, Errno::IO);
    let (first, second) = (rig.submit(0, FLUSH), rig.submit(0, FLUSH));
    rig.turn();
    rig.turn();
    assert!(matches!(rig.result(first), Some(Err(MediumError::Write))));
    assert!(matches!(rig.result(second), Some(Err(MediumError::Write))));
}

#[test]
fn sync_volume_writes_durably_and_stops_when_it_cannot() {
    let (_folder, _, mut rig) = volume(true);
    assert!(is_done(&rig.write(0, 1, 1)));
    assert_eq!(rig.ring.log, [Sort::DurableWrite]);
    rig.ring.fail(Sort::DurableWrite, Errno::IO);
    assert!(matches!(rig.write(0, 1, 1), Err(MediumError::Write)));
    assert!(matches!(rig.write(0, 1, 1), Err(MediumError::Write)));
    let extent = Extent::new(0, 8);
    rig.fails(same(extent, None), MediumError::Write);
}

/// Both change the allocation by calls that no flag makes durable.
#[test]
fn sync_volume_settles_zeros_and_holes_before_it_tells() {
    for op in [zeros, hole] {
        let (_folder, _, mut rig) = volume(true);
        rig.does(op());
        assert_eq!(rig.ring.log, [Sort::Blocking, Sort::DataSync]);
        rig.ring.fail(Sort::DataSync, Errno::NOSPC);
        rig.fails(op(), MediumError::NoSpace);
        rig.fails(op(), MediumError::Write);
        assert!(matches!(rig.write(0, 1, 1), Err(MediumError::Write)));
    }
}

#[test]
fn sync_volume_whose_zeros_are_written_writes_them_durably() {
    let (_folder, _, mut rig) = volume(true);
    rig.ring.fail(Sort::Blocking, Errno::OPNOTSUPP);
    rig.does(zeros());
    assert_eq!(rig.ring.log, [Sort::Blocking, Sort::DurableWrite]);
}

#[test]
fn volume_with_a_cache_leaves_zeros_and_holes_to_the_next_flush() {
    for op in [zeros, hole] {
        let (_folder, _, mut rig) = volume(false);
        rig.does(op());
        assert_eq!(rig.ring.log, [Sort::Blocking]);
    }
}

fn zeros() -> MediumOp<BlockLease> {
    same(Extent::new(0, 8), None)
}

fn hole() -> MediumOp<BlockLease> {
    unmapping(Extent::new(0, 8))
}

#[test]
fn zeros_are_written_where_they_cannot_be_made() {
    let (_folder, _, mut rig) = volume(false);
    assert!(is_done(&rig.write(0, 512, 5)));
    assert!(is_done(&rig.write(512, 512, 5)));
    rig.ring.log.clear();
    rig.ring.fail(Sort::Blocking, Errno::OPNOTSUPP);
    let extent = Extent::new(1, 1000);
    rig.does(same(extent, None));
    assert_eq!(rig.ring.log, [Sort::Blocking, Sort::Write, Sort::Write]);
    assert_eq!(rig.read(0, 2), [[5; 512], [0; 512]].concat());
    assert_eq!(rig.read(1000, 2), [[0; 512], [5; 512]].concat());
}

/// An UNMAP may be of any length: nobody could get past the zeros.
#[test]
fn unmap_never_writes() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::Blocking, Errno::OPNOTSUPP);
    assert!(matches!(rig.unmap(0, 8), Err(MediumError::Unsupported)));
    assert_eq!(rig.ring.log, [Sort::Blocking]);
    assert!(is_done(&rig.flush()), "nothing is lost by it");
}

#[test]
fn write_same_that_fails_half_way_tells_and_frees_its_buffer() {
    let (_folder, _, mut rig) = volume(false);
    let op = same(
        Extent::new(0, 2000),
        Some(BlockLease::from_bytes(vec![9; 512])),
    );
    let id = rig.submit(0, op);
    rig.turn();
    rig.ring.fail(Sort::Write, Errno::NOSPC);
    rig.turn();
    assert!(matches!(rig.result(id), Some(Err(MediumError::NoSpace))));
    assert_eq!(rig.pool.in_use(), 0);
    assert!(is_done(&rig.flush()));
}

#[test]
fn unmap_that_fails_is_told() {
    let (_folder, _, mut rig) = volume(false);
    rig.ring.fail(Sort::Blocking, Errno::IO);
    assert!(matches!(rig.unmap(0, 8), Err(MediumError::Write)));
    assert!(matches!(rig.flush(), Err(MediumError::Write)));
}

#[test]
fn pool_exhausted_is_busy_and_starts_nothing() {
    let folder = Folder::in_memory();
    let file = FileVolume::open(&sized(folder.file("disk"), 1 << 20));
    let mut rig = Rig::with_pool(FakeRing::default(), &file.unwrap(), 4096);
    let extent = Extent::new(0, 8);
    let held = rig.lease(MediumOp::PrepareWrite { extent });
    rig.fails(reading(extent), MediumError::Busy);
    let pattern = Some(BlockLease::from_bytes(vec![9; 512]));
    rig.fails(same(extent, pattern), MediumError::Busy);
    assert!(rig.ring.log.is_empty());
    drop(held);
    assert_eq!(rig.read(0, 8), vec![0; 4096]);
}
