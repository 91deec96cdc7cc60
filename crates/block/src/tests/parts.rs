//! Several volumes as one: what each part is asked, what comes of it, and when.

use std::sync::Arc;

use rustix::io::Errno;
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumOutcome, Provisioning, Sanitize, SanitizeKind,
};

use super::fake::{FakeRing, Sort};
use super::places::{Folder, sparse};
use super::rig::{FLUSH, Rig, bytes, is_done, read, writing};
use super::sketch::{parts, ram};
use crate::concat;
use crate::file::FileVolume;
use crate::lease::BlockLease;
use crate::parts::PartsVolume;
use crate::readonly::Readonly;
use crate::stripe;
use crate::volume::Volume;

/// Blocks in a chunk.
const CHUNK: u64 = 16;

fn file(folder: &Folder, name: &str, blocks: u64) -> Arc<dyn Volume> {
    let options = sparse(folder.file(name), blocks * 512);
    Arc::new(FileVolume::open(&options).unwrap())
}

fn rams() -> PartsVolume {
    stripe::open(CHUNK * 512, parts([ram(64), ram(64)])).unwrap()
}

/// A stripe over two files, on a ring whose operations end one by one.
fn files() -> (Folder, Rig<FakeRing>) {
    let folder = Folder::in_memory();
    let both = parts([file(&folder, "a", 1024), file(&folder, "b", 1024)]);
    let stripe = stripe::open(CHUNK * 512, both).unwrap();
    let rig = Rig::fake(&stripe);
    (folder, rig)
}

#[test]
fn what_lies_on_one_part_is_lent_and_read_without_a_copy() {
    let mut rig = Rig::fake(&rams());
    let extent = Extent::new(CHUNK, CHUNK);
    let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
    lent.copy_in(0, &[7; CHUNK as usize * 512]);
    let memory = lent.clone();
    let write = MediumOp::Write {
        extent,
        data: lent,
        fua: true,
        atomic: false,
    };
    rig.does(write);
    let read = rig.lease(read(CHUNK, CHUNK));
    assert!(read.buffer().is_same_memory(memory.buffer()));
    assert_eq!(rig.pool.in_use(), 0);
    assert_eq!(bytes(&read), [7; CHUNK as usize * 512]);
}

#[test]
fn what_lies_on_several_parts_goes_through_a_buffer() {
    let mut rig = Rig::fake(&rams());
    let extent = Extent::new(3, 40);
    let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
    assert_eq!((lent.len(), rig.pool.in_use()), (40 * 512, 64 << 10));
    let data: Vec<u8> = (0..40 * 512).map(|at| (at / 512) as u8 + 1).collect();
    lent.copy_in(0, &data);
    let write = writing(extent, lent);
    rig.does(write);
    assert_eq!(rig.pool.in_use(), 0);
    assert_eq!(rig.read(3, 40), data);
    assert_eq!(rig.read(2, 1), [0; 512]);
    assert_eq!(rig.read(43, 1), [0; 512]);
}

#[test]
fn without_a_buffer_it_is_busy_and_starts_nothing() {
    let folder = Folder::in_memory();
    let both = parts([file(&folder, "a", 1024), file(&folder, "b", 1024)]);
    let stripe = stripe::open(CHUNK * 512, both).unwrap();
    let mut rig = Rig::with_pool(FakeRing::default(), &stripe, 0);
    let extent = Extent::new(3, 40);
    for op in [read(3, 40), MediumOp::PrepareWrite { extent }] {
        rig.fails(op, MediumError::Busy);
    }
    assert!(rig.ring.log.is_empty());
}

#[test]
fn each_part_is_read_once_however_many_chunks() {
    let (_folder, mut rig) = files();
    assert_eq!(rig.read(0, 8 * CHUNK), vec![0; 8 * CHUNK as usize * 512]);
    assert_eq!(rig.ring.log, [Sort::Read; 2]);
}

#[test]
fn what_has_no_data_of_its_own_goes_to_each_part_once() {
    let (_folder, mut rig) = files();
    let extent = Extent::new(5, 8 * CHUNK);
    let anchor = false;
    assert!(is_done(&rig.run(MediumOp::Unmap { extent, anchor })));
    assert_eq!(rig.ring.log, [Sort::Blocking; 2]);
    assert!(is_done(&rig.flush()));
    assert_eq!(rig.ring.log[2..], [Sort::DataSync; 2]);
    let extent = Extent::new(3, 2);
    assert!(is_done(&rig.run(MediumOp::Flush { extent })));
    assert_eq!(rig.ring.log[4..], [Sort::DataSync], "it lies on one part");
}

#[test]
fn an_error_is_told_when_all_pieces_have_ended() {
    let (_folder, mut rig) = files();
    rig.ring.fail(Sort::Write, Errno::NOSPC);
    let id = rig.submit_write(0, 0, 2 * CHUNK, 9);
    rig.turn();
    assert!(rig.result(id).is_none(), "a piece is under way");
    rig.turn();
    assert!(matches!(rig.result(id), Some(Err(MediumError::NoSpace))));
    // What did not fail is done.
    assert_eq!(rig.read(0, CHUNK), [0; CHUNK as usize * 512]);
    assert_eq!(rig.read(CHUNK, CHUNK), [9; CHUNK as usize * 512]);
}

#[test]
fn the_first_of_several_errors_counts() {
    let (_folder, mut rig) = files();
    rig.ring.fail(Sort::Read, Errno::NODEV);
    rig.ring.fail(Sort::Read, Errno::IO);
    rig.fails(read(0, 2 * CHUNK), MediumError::Gone);
    assert_eq!(rig.pool.in_use(), 0);
}

#[test]
fn a_flush_ends_with_the_last_part() {
    let (_folder, mut rig) = files();
    let id = rig.submit(1, FLUSH);
    rig.turn();
    assert!(rig.result(id).is_none());
    rig.turn();
    assert!(matches!(rig.result(id), Some(Ok(MediumOutcome::Done))));
}

#[test]
fn blocks_are_told_to_be_alike_as_far_as_all_parts_say() {
    let (_folder, mut rig) = files();
    // 4 KiB on each part, as files have holes by as much: of the second and of the fifth chunk.
    assert!(is_done(&rig.write(CHUNK, 8, 1)));
    assert!(is_done(&rig.write(4 * CHUNK, 8, 1)));
    let hole = Provisioning::Deallocated;
    assert_eq!(rig.status(0, 2048), (hole, CHUNK));
    assert_eq!(rig.status(3, 2048), (hole, CHUNK - 3));
    assert_eq!(rig.status(CHUNK, 2048), (Provisioning::Mapped, 8));
    assert_eq!(rig.status(CHUNK + 8, 2000), (hole, 3 * CHUNK - 8));
    assert_eq!(rig.status(4 * CHUNK + 8, 400), (hole, 400));
}

#[test]
fn a_whole_volume_is_asked_by_one_question_to_each_part() {
    let (_folder, mut rig) = files();
    assert_eq!(rig.status(0, 2048), (Provisioning::Deallocated, 2048));
    assert_eq!(rig.ring.log, [Sort::Blocking; 2]);
}

#[test]
fn an_atomic_write_is_passed_on_whole_or_refused() {
    let stripe = rams();
    let atomic = stripe.traits().atomic.unwrap();
    assert_eq!((atomic.max_blocks, atomic.alignment), (16, 16));
    let mut rig = Rig::fake(&stripe);
    let mut write = |lba, blocks: u64| {
        rig.run(MediumOp::Write {
            extent: Extent::new(lba, blocks),
            data: BlockLease::from_bytes(vec![1; blocks as usize * 512]),
            fua: false,
            atomic: true,
        })
    };
    assert!(is_done(&write(CHUNK, CHUNK)));
    let cut = write(CHUNK + 1, CHUNK);
    assert!(matches!(cut, Err(MediumError::Unsupported)));
}

#[test]
fn a_recall_waits_for_every_part() {
    let mut rig = Rig::fake(&rams());
    // What nobody wrote takes no memory, so it is not lent.
    assert!(is_done(&rig.write(0, 2 * CHUNK, 1)));
    let (first, second) = (rig.lease(read(0, 1)), rig.lease(read(CHUNK, 1)));
    let recall = rig.handles[0].recall().unwrap();
    let later = rig.lease(read(0, 1));
    assert!(!recall.is_over());
    drop(first);
    assert!(!recall.is_over());
    drop(second);
    assert!(recall.is_over());
    drop(later);
}

#[test]
fn all_is_protected_when_one_part_is() {
    let protected = Arc::new(Readonly::new(ram(64)));
    let row = concat::open(parts([ram(64), protected as Arc<dyn Volume>])).unwrap();
    let mut rig = Rig::fake(&row);
    let refused = rig.write(0, 1, 1);
    assert!(matches!(refused, Err(MediumError::ReadOnly)), "{refused:?}");
    assert_eq!(rig.read(63, 2), [0; 1024]);
    assert!(is_done(&rig.flush()));
}

#[test]
fn sanitizing_reaches_every_part() {
    let stripe = rams();
    assert_eq!(stripe.traits().sanitize.len(), 2);
    let mut rig = Rig::fake(&stripe);
    assert!(is_done(&rig.write(0, 128, 3)));
    let op = MediumOp::Sanitize {
        extent: Extent::new(0, 128),
        method: Sanitize::BlockErase,
    };
    rig.does(op);
    assert!(stripe.traits().sanitize.contains(&SanitizeKind::BlockErase));
    assert_eq!(rig.read(0, 128), vec![0; 128 * 512]);
    assert_eq!(stripe.usage().unwrap().used, 0);
}

#[test]
fn nothing_comes_of_nothing() {
    let mut rig = Rig::fake(&rams());
    let extent = Extent::new(5, 0);
    let anchor = false;
    assert!(is_done(&rig.run(MediumOp::Prefetch { extent })));
    assert!(is_done(&rig.run(MediumOp::Unmap { extent, anchor })));
    assert_eq!(rig.read(128, 0), [0; 0]);
}

fn longer(folder: &Folder, name: &str, blocks: u64) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.file(name))
        .unwrap();
    file.set_len(blocks * 512).unwrap();
}

#[test]
fn a_stripe_grows_with_its_shortest_part() {
    let folder = Folder::in_memory();
    let both = parts([file(&folder, "a", 64), file(&folder, "b", 64)]);
    let stripe = stripe::open(CHUNK * 512, both).unwrap();
    assert!(stripe.can_grow());
    longer(&folder, "a", 128);
    assert!(!stripe.refresh().unwrap());
    longer(&folder, "b", 100);
    assert!(stripe.refresh().unwrap());
    assert_eq!(stripe.traits().blocks, 2 * 96);
    assert!(!stripe.refresh().unwrap());
}

#[test]
fn a_row_grows_at_its_end_only() {
    let folder = Folder::in_memory();
    let both = parts([file(&folder, "a", 64), file(&folder, "b", 64)]);
    let row = concat::open(both).unwrap();
    let mut rig = Rig::fake(&row);
    assert!(is_done(&rig.write(64, 64, 5)));
    longer(&folder, "a", 128);
    assert!(!row.refresh().unwrap());
    assert_eq!(row.traits().blocks, 128);
    longer(&folder, "b", 100);
    assert!(row.refresh().unwrap());
    assert_eq!(row.traits().blocks, 164);
    assert_eq!(rig.read(64, 64), [5; 64 * 512], "blocks keep their places");
    assert!(is_done(&rig.write(160, 4, 6)));
    assert_eq!(rig.read(160, 4), [6; 4 * 512]);
}
