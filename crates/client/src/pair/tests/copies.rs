//! What is at B after a copy, however it went.

use super::disk::{Disk, GRANULE};
use super::{End, World};
use crate::pair::copy::{CopyMachine, CopyPlan};
use crate::pair::spans::QUESTIONS;
use crate::pair::{CHUNK, PairFailure, PairMachine, PairOrder, PairSide, VolumeProblem};
use fastrand::Rng;
use scsi::medium::{HeapLease, MediumError};
use std::time::Duration;

const SIZE: usize = 3 << 20;
const FOREVER: u64 = 1 << 20;
const DEPTH: usize = 4;

fn world(seed: u64) -> World {
    let mut rng = Rng::with_seed(seed);
    let sizes = [512, 4096];
    let mut a = Disk::random(
        SIZE - 4096 * rng.usize(..99),
        rng.choice(sizes).unwrap(),
        &mut rng,
    );
    let mut b = Disk::random(SIZE, rng.choice(sizes).unwrap(), &mut rng);
    a.tells = rng.usize(..4) > 0;
    b.tells = rng.usize(..4) > 0;
    b.shape.unmaps = rng.usize(..4) > 0;
    World::new(a, b, seed)
}

fn copy(world: &World) -> CopyMachine<HeapLease> {
    CopyMachine::new(world.shapes().0, world.shapes().1, plan(world))
}

fn plan(world: &World) -> CopyPlan {
    CopyPlan {
        from: world.durable,
        depth: DEPTH,
        timeout: Duration::from_secs(FOREVER),
        skip_unreadable: false,
    }
}

#[track_caller]
fn is_right(world: &World, rest: &[u8], seed: u64) {
    let [a, b] = &world.disks;
    let (copied, behind) = b.bytes.split_at(a.bytes.len());
    assert!(copied == a.bytes, "seed {seed}: another copy");
    assert!(
        behind == rest,
        "seed {seed}: something behind it was written"
    );
    assert_eq!(world.durable, a.shape.bytes, "seed {seed}");
}

#[test]
fn all_of_it_and_nothing_else_is_copied() {
    for seed in 0..60 {
        let mut world = world(seed);
        let rest = world.disks[1].bytes[world.disks[0].bytes.len()..].to_vec();
        let mut machine = copy(&world);
        let end = world.run(&mut machine, FOREVER);
        assert_eq!(end, End::Over(Ok(())), "seed {seed}");
        is_right(&world, &rest, seed);
        let progress = machine.progress();
        assert_eq!(progress.done(), progress.total, "seed {seed}");
        assert!(
            world.most <= DEPTH + 1 + QUESTIONS as usize,
            "seed {seed}: {} at once",
            world.most
        );
    }
}

#[test]
fn what_was_cut_off_anywhere_is_resumed() {
    for seed in 0..200 {
        let mut world = world(seed);
        let rest = world.disks[1].bytes[world.disks[0].bytes.len()..].to_vec();
        let mut rng = Rng::with_seed(!seed);
        let mut runs = 0;
        loop {
            let mut machine = copy(&world);
            let answers = 1 + rng.usize(..60 + runs * 30) as u64;
            if rng.usize(..3) == 0 {
                world.run(&mut machine, answers);
                machine.stop();
                let end = world.run(&mut machine, FOREVER);
                assert_eq!(end, End::Over(Ok(())), "seed {seed}");
            } else if world.run(&mut machine, answers) != End::Cut {
                break;
            }
            world.power_cut();
            runs += 1;
        }
        is_right(&world, &rest, seed);
    }
}

#[test]
fn holes_stay_holes() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let a = Disk::random(SIZE, 512, &mut rng);
        let mut world = World::new(a, Disk::empty(SIZE, 4096), seed);
        let mut machine = copy(&world);
        assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
        let [a, b] = &world.disks;
        for (granule, (a, b)) in a.mapped.iter().zip(&b.mapped).enumerate() {
            assert!(*a || !b, "seed {seed}: granule {granule} was a hole");
        }
    }
}

#[test]
fn zeros_are_not_written_where_there_are_zeros() {
    let mut a = Disk::empty(SIZE, 512);
    a.tells = false;
    let mut world = World::new(a, Disk::empty(SIZE, 512), 1);
    let mut machine = copy(&world);
    assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
    assert_eq!(world.disks[1].writes, 0);
    assert_eq!(machine.progress().holes, SIZE as u64);
}

/// As a block device, which is never told to be a hole.
#[test]
fn what_was_unmapped_is_not_written() {
    for tells in [false, true] {
        let a = Disk::empty(SIZE - 512, 512);
        let mut b = Disk::empty(SIZE, 512);
        b.bytes.fill(7);
        b.mapped.fill(true);
        b.tells = tells;
        let mut world = World::new(a, b, 1);
        let mut machine = copy(&world);
        assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
        is_right(&world, &[7; 512], 1);
        assert_eq!(world.disks[1].writes, 0);
        let mapped = world.disks[1].mapped.iter().filter(|mapped| **mapped);
        assert_eq!(
            mapped.count(),
            1,
            "of granules of {GRANULE}, the last alone"
        );
    }
}

#[test]
fn a_failure_says_where_and_keeps_what_was_before() {
    for (seed, side) in (0..40).zip([PairSide::A, PairSide::B].into_iter().cycle()) {
        let mut a = Disk::random(SIZE, 512, &mut Rng::with_seed(seed));
        a.bytes.fill(1);
        a.mapped.fill(true);
        let mut world = World::new(a, Disk::empty(SIZE, 512), seed);
        let bad = Rng::with_seed(seed).usize(..SIZE) as u64;
        world.disks[side as usize].bad = Some(bad);
        let mut machine = copy(&world);
        let End::Over(Err(failure)) = world.run(&mut machine, FOREVER) else {
            panic!("seed {seed}: it did not fail");
        };
        let error = [MediumError::Read, MediumError::Write][side as usize];
        let at = Some(bad / CHUNK * CHUNK);
        assert_eq!((failure.side, failure.at), (side, at));
        assert_eq!(failure.error, VolumeProblem::Medium(error));
        assert_eq!(world.durable, bad / CHUNK * CHUNK, "seed {seed}");
        world.disks[side as usize].bad = None;
        world.power_cut();
        let mut machine = copy(&world);
        assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
        is_right(&world, &[], seed);
    }
}

#[test]
fn a_write_of_unknown_outcome_is_to_be_done_again() {
    let failure = PairFailure {
        side: PairSide::B,
        at: Some(4096),
        error: VolumeProblem::Medium(MediumError::Unknown),
    };
    assert_eq!(
        failure.line("file:a", "iscsi://host/disk/0"),
        "iscsi://host/disk/0: outcome unknown at byte 4096 (the write may or may not have taken \
         effect, or may do so later: check the volume, then write it again)"
    );
}

/// B as a target that caches, is restarted again and again, and tells it by the next flush.
#[test]
fn a_destination_that_restarts_is_copied_to_all_the_same() {
    let mut back = 0;
    for seed in 0..100 {
        let mut world = world(seed);
        let rest = world.disks[1].bytes[world.disks[0].bytes.len()..].to_vec();
        world.restarts = Some(70);
        let mut machine = copy(&world);
        let end = world.run(&mut machine, FOREVER);
        assert_eq!(end, End::Over(Ok(())), "seed {seed}");
        is_right(&world, &rest, seed);
        let progress = machine.progress();
        assert_eq!(progress.done(), progress.total, "seed {seed}");
        world.power_cut();
        is_right(&world, &rest, seed);
        back += world.back;
    }
    assert!(back > 50, "it went back {back} times");
}

#[test]
fn a_destination_that_keeps_nothing_is_given_up() {
    let mut world = world(1);
    world.restarts = Some(1);
    let mut machine = copy(&world);
    let failure = PairFailure {
        side: PairSide::B,
        at: None,
        error: VolumeProblem::Medium(MediumError::Write),
    };
    assert_eq!(world.run(&mut machine, FOREVER), End::Over(Err(failure)));
    assert_eq!(world.durable, 0);
}

/// Polls a machine whose operations have no answer but that they were cancelled.
fn poll_in_vain(machine: &mut CopyMachine<HeapLease>, asked: &mut Vec<u64>, second: u64) -> String {
    loop {
        match machine.poll(Duration::from_secs(second)) {
            Some(PairOrder::Submit(_, id, _)) => asked.push(id),
            Some(PairOrder::Cancel) => {
                for id in asked.drain(..) {
                    machine.done(id, Err(MediumError::Cancelled));
                }
            }
            other => return format!("{other:?}"),
        }
    }
}

/// It may go so long without progress.
fn impatient(world: &World) -> CopyMachine<HeapLease> {
    let (a, b) = world.shapes();
    let timeout = Duration::from_secs(60);
    CopyMachine::new(
        a,
        b,
        CopyPlan {
            timeout,
            ..plan(world)
        },
    )
}

#[test]
fn without_progress_it_ends_when_its_time_is_over() {
    let (mut machine, mut asked) = (impatient(&world(1)), Vec::new());
    assert_eq!(poll_in_vain(&mut machine, &mut asked, 5), "None");
    assert_eq!(poll_in_vain(&mut machine, &mut asked, 64), "None");
    let ended = poll_in_vain(&mut machine, &mut asked, 65);
    assert!(ended.contains("Stalled(60s)"), "{ended}");
}

/// A block of A cannot be read, and nothing before it is answered.
#[test]
fn without_progress_it_ends_after_a_failure_too() {
    let (mut machine, mut asked) = (impatient(&world(1)), Vec::new());
    assert_eq!(poll_in_vain(&mut machine, &mut asked, 5), "None");
    machine.fail(PairSide::A, Some(GRANULE as u64), MediumError::Read);
    assert_eq!(poll_in_vain(&mut machine, &mut asked, 64), "None");
    let ended = poll_in_vain(&mut machine, &mut asked, 65);
    assert!(ended.contains("Medium(Read)"), "{ended}");
}

#[test]
fn what_cannot_be_read_is_skipped_on_request_and_no_more_than_that() {
    for seed in 0..40 {
        let mut world = world(seed);
        let a = &mut world.disks[0];
        a.bytes.fill(7);
        a.mapped.fill(true);
        let bad = Rng::with_seed(seed).usize(..a.bytes.len()) as u64;
        a.bad = Some(bad);
        world.restarts = (seed % 2 == 0).then_some(70);
        let (a, b) = world.shapes();
        let skip_unreadable = true;
        let mut machine = CopyMachine::new(
            a,
            b,
            CopyPlan {
                skip_unreadable,
                ..plan(&world)
            },
        );
        assert_eq!(
            world.run(&mut machine, FOREVER),
            End::Over(Ok(())),
            "seed {seed}"
        );
        let block = a.block_size.max(b.block_size);
        let lost = bad / block * block..(bad / block + 1) * block;
        assert!(
            machine.unreadable().iter().eq([&lost]),
            "{:?}",
            machine.unreadable()
        );
        let progress = machine.progress();
        assert_eq!(
            (progress.done(), progress.unreadable),
            (progress.total, block)
        );
        let [a, b] = &mut world.disks;
        a.bytes[lost.start as usize..lost.end as usize].fill(0);
        assert!(b.bytes[..a.bytes.len()] == a.bytes, "seed {seed}");
    }
}

/// A block is bad at both.
#[test]
fn what_cannot_be_zeroed_either_is_not_told_to_be_zeros() {
    let mut world = world(1);
    for disk in &mut world.disks {
        disk.bytes.fill(7);
        disk.mapped.fill(true);
        disk.shape.unmaps = false;
        disk.bad = Some(1 << 20);
    }
    let skip_unreadable = true;
    let plan = CopyPlan {
        skip_unreadable,
        ..plan(&world)
    };
    let mut machine = CopyMachine::new(world.shapes().0, world.shapes().1, plan);
    let End::Over(Err(failure)) = world.run(&mut machine, FOREVER) else {
        panic!("it did not fail");
    };
    assert_eq!((failure.side, failure.at), (PairSide::B, Some(1 << 20)));
    assert!(machine.unreadable().is_empty());
    assert_eq!(machine.progress().unreadable, 0);
}
