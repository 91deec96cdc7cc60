//! What is read is what was written, or it is told; nothing that two may have written is judged.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ::io::memory::MemoryLimit;
use proptest::prelude::*;
use scsi::medium::{Extent, MediumError, MediumOp, Now};

use super::fake::FakeRing;
use super::places::{Folder, sparse};
use super::rig::{Rig, is_done, read, same, writing};
use super::sketch;
use crate::file::FileVolume;
use crate::limit::Delay;
use crate::ram::Ram;
use crate::stripe;
use crate::verify::VerifyVolume;
use crate::volume::Volume;

/// A checked file, and the file itself, to change it from outside.
fn file() -> (Folder, std::fs::File, Rig<FakeRing>) {
    let folder = Folder::in_memory();
    let options = sparse(folder.file("disk"), 8 << 20);
    let volume = VerifyVolume::new(Arc::new(FileVolume::open(&options).unwrap()), "disk".into());
    let raw = OpenOptions::new().write(true).open(options.path).unwrap();
    let rig = Rig::fake(&volume);
    (folder, raw, rig)
}

fn differs(rig: &mut Rig<FakeRing>, lba: u64, blocks: u64) -> bool {
    match rig.run(read(lba, blocks)) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error, MediumError::Read);
            true
        }
    }
}

#[test]
fn a_block_that_changed_behind_our_back_is_a_read_error() {
    let (_folder, raw, mut rig) = file();
    assert!(is_done(&rig.write(500, 20, 7)));
    assert_eq!(rig.read(490, 40)[10 * 512..30 * 512], [7; 20 * 512]);
    raw.write_at(&[8], 513 * 512 + 99).unwrap();
    assert!(differs(&mut rig, 490, 40));
    assert!(differs(&mut rig, 513, 1));
    assert!(!differs(&mut rig, 500, 13) && !differs(&mut rig, 514, 6));
    assert_eq!(rig.pool.in_use(), 0);
    assert!(is_done(&rig.write(513, 1, 9)));
    assert!(!differs(&mut rig, 490, 40));
}

#[test]
fn blocks_that_nobody_wrote_are_not_judged() {
    let (_folder, raw, mut rig) = file();
    assert!(!differs(&mut rig, 0, 1));
    raw.write_at(&[8], 0).unwrap();
    assert!(!differs(&mut rig, 0, 1));
}

#[test]
fn zeros_are_checked_too() {
    let (_folder, raw, mut rig) = file();
    let extent = Extent::new(8, 8);
    rig.does(same(extent, None));
    assert!(is_done(&rig.unmap(16, 8)));
    assert!(!differs(&mut rig, 0, 64));
    raw.write_at(&[8], 12 * 512).unwrap();
    raw.write_at(&[8], 20 * 512).unwrap();
    assert!(differs(&mut rig, 8, 8) && differs(&mut rig, 16, 8));
}

#[test]
fn writes_that_meet_leave_the_block_unknown_until_it_is_written_alone() {
    let (_folder, raw, mut rig) = file();
    let (first, second) = (rig.write_op(0, 8, 1, false), rig.write_op(4, 8, 2, false));
    rig.submit(0, first);
    rig.submit(1, second);
    rig.turn();
    rig.turn();
    raw.write_at(&[9; 512], 6 * 512).unwrap();
    assert!(!differs(&mut rig, 4, 4));
    raw.write_at(&[9; 512], 512).unwrap();
    assert!(
        differs(&mut rig, 0, 4),
        "where they do not meet both are judged"
    );
    assert!(is_done(&rig.write(6, 1, 3)));
    raw.write_at(&[9; 512], 6 * 512).unwrap();
    assert!(differs(&mut rig, 6, 1));
}

#[test]
fn a_read_beside_a_write_is_not_judged() {
    let (_folder, raw, mut rig) = file();
    assert!(is_done(&rig.write(0, 8, 1)));
    raw.write_at(&[9; 512], 512).unwrap();
    // The write comes while the read is in flight, and outlives it.
    let early = rig.submit(0, read(0, 8));
    rig.submit_write(1, 0, 8, 2);
    // This one begins during the write.
    let late = rig.submit(0, read(0, 8));
    rig.turn();
    assert!(rig.result(early).unwrap().is_ok());
    rig.turn();
    raw.write_at(&[9; 512], 512).unwrap();
    rig.turn();
    assert!(rig.result(late).unwrap().is_ok());
    assert!(differs(&mut rig, 0, 8));
}

#[test]
fn a_read_beside_the_first_write_is_not_judged() {
    let (_folder, _, mut rig) = file();
    let early = rig.submit(0, read(0, 8));
    rig.submit_write(1, 0, 8, 2);
    rig.turn();
    assert!(rig.result(early).unwrap().is_ok());
    rig.turn();
    assert!(!differs(&mut rig, 0, 8));
}

#[test]
fn a_write_that_failed_leaves_the_block_unknown() {
    use super::fake::Sort;
    let (_folder, raw, mut rig) = file();
    assert!(is_done(&rig.write(0, 8, 1)));
    rig.ring.fail(Sort::Write, rustix::io::Errno::IO);
    assert!(rig.write(0, 8, 2).is_err());
    raw.write_at(&[9; 512], 512).unwrap();
    assert!(!differs(&mut rig, 0, 8));
}

#[test]
fn a_long_change_makes_all_of_it_unknown() {
    let (_folder, raw, mut rig) = file();
    assert!(is_done(&rig.write(0, 8, 1)));
    let extent = Extent::new(0, 8000);
    let long = rig.submit(0, same(extent, None));
    // It meets the long one.
    let short = rig.submit_write(1, 0, 8, 2);
    while !rig.done.iter().any(|(id, _)| *id == long)
        || !rig.done.iter().any(|(id, _)| *id == short)
    {
        rig.turn();
    }
    raw.write_at(&[9; 512], 512).unwrap();
    assert!(!differs(&mut rig, 0, 64));
    assert!(is_done(&rig.write(1, 1, 2)));
    assert!(!differs(&mut rig, 0, 64));
    raw.write_at(&[9; 512], 512).unwrap();
    assert!(differs(&mut rig, 0, 64));
}

fn delayed_ram() -> (Arc<Ram>, Rig<FakeRing>) {
    let memory = MemoryLimit::new(64 << 20);
    let ram = Arc::new(Ram::new(4 << 20, 512, &memory).unwrap());
    let delay = Arc::new(Delay::new(Arc::clone(&ram) as _, Now::from_millis(1)));
    let rig = Rig::fake(&VerifyVolume::new(delay, "ram".into()));
    (ram, rig)
}

#[test]
fn what_is_lent_is_not_the_disk_itself() {
    let (_, mut rig) = delayed_ram();
    assert!(is_done(&rig.write(0, 8, 1)));
    let extent = Extent::new(0, 8);
    let lent = rig.lease(MediumOp::PrepareWrite { extent });
    lent.buffer().copy_in(0, &[2; 4096]);
    assert!(
        !differs(&mut rig, 0, 8),
        "what was received is not written yet"
    );
    let read = rig.lease(read(0, 8));
    assert!(!read.buffer().is_of_region());
}

#[test]
fn a_copy_of_what_changes_is_checked_against_what_was_written() {
    let (_, mut rig) = delayed_ram();
    let memory = MemoryLimit::new(64 << 20);
    let source = Ram::new(1 << 20, 512, &memory).unwrap();
    let mut from = Rig::fake(&source);
    assert!(is_done(&from.write(0, 8, 1)));
    let data = from.lease(read(0, 8));
    let write = writing(Extent::new(0, 8), data);
    let id = rig.submit(0, write);
    assert!(is_done(&from.write(0, 8, 2)));
    rig.turn();
    assert!(rig.result(id).unwrap().is_ok());
    assert_eq!(rig.read(0, 8), [1; 4096]);
}

/// One of several operations that may be in flight at once.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read,
    Write,
    Zero,
    Unmap,
    Long,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step, u64, u64)>> {
    let step = prop_oneof![
        4 => Just(Step::Read),
        4 => Just(Step::Write),
        1 => Just(Step::Zero),
        1 => Just(Step::Unmap),
        1 => Just(Step::Long),
        6 => Just(Step::Wait),
    ];
    prop::collection::vec((0..2_usize, step, 0..40_u64, 1..30_u64), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_sound_volume_is_never_suspected(steps in steps()) {
        let folder = Folder::in_memory();
        let options = sparse(folder.file("disk"), 4 << 20);
        let (ram, _) = delayed_ram();
        let ram: Arc<dyn Volume> = Arc::new(Delay::new(ram, Now::from_millis(1)));
        let file: Arc<dyn Volume> = Arc::new(FileVolume::open(&options).unwrap());
        let stripe = stripe::open(4096, sketch::parts([ram, file])).unwrap();
        let verify = VerifyVolume::new(Arc::new(stripe), "sound".into());
        let mut rig = Rig::fake(&verify);
        let mut in_flight = 0;
        for (byte, (core, step, lba, blocks)) in (1..).zip(steps) {
            let (extent, pattern, anchor) = (Extent::new(lba, blocks), None, false);
            let op = match step {
                Step::Read => read(lba, blocks),
                Step::Write => rig.write_op(lba, blocks, byte, false),
                Step::Zero => same(extent, pattern),
                Step::Unmap => MediumOp::Unmap { extent, anchor },
                Step::Long => same(Extent::new(lba, 4100), pattern),
                Step::Wait if in_flight > rig.done.len() => {
                    rig.turn();
                    continue;
                }
                Step::Wait => continue,
            };
            rig.submit(core, op);
            in_flight += 1;
        }
        while rig.done.len() < in_flight {
            rig.turn();
        }
        for (_, result) in &rig.done {
            prop_assert!(result.is_ok(), "{:?}", result);
        }
    }
}
