//! What is at B after a copy, however it went.

use super::disk::{Disk, GRANULE};
use super::{End, World};
use crate::pair::copy::Copy;
use crate::pair::{CHUNK, Failure, Machine, Side};
use crate::sim::Rng;
use scsi::medium::MediumError;

const SIZE: usize = 3 << 20;
const FOREVER: u64 = 1 << 20;
const DEPTH: usize = 4;

fn world(seed: u64) -> World {
    let mut rng = Rng::new(seed);
    let sizes = [512, 4096];
    let mut a = Disk::random(SIZE - 4096 * rng.below(99), *rng.pick(&sizes), &mut rng);
    let mut b = Disk::random(SIZE, *rng.pick(&sizes), &mut rng);
    a.tells = !rng.one_in(4);
    b.tells = !rng.one_in(4);
    b.shape.unmaps = !rng.one_in(4);
    World::new(a, b, seed)
}

fn copy(world: &World) -> Copy<scsi::medium::HeapLease> {
    let (a, b) = world.shapes();
    Copy::new(a, b, world.durable, DEPTH)
}

#[track_caller]
fn is_right(world: &World, rest: &[u8], seed: u64) {
    let [a, b] = &world.disks;
    let (copied, behind) = b.octets.split_at(a.octets.len());
    assert!(copied == a.octets, "seed {seed}: another copy");
    assert!(
        behind == rest,
        "seed {seed}: something behind it was written"
    );
    assert_eq!(world.durable, a.shape.octets, "seed {seed}");
}

#[test]
fn all_of_it_and_nothing_else_is_copied() {
    for seed in 0..60 {
        let mut world = world(seed);
        let rest = world.disks[1].octets[world.disks[0].octets.len()..].to_vec();
        let mut machine = copy(&world);
        let end = world.run(&mut machine, FOREVER);
        assert_eq!(end, End::Over(Ok(())), "seed {seed}");
        is_right(&world, &rest, seed);
        let progress = machine.progress();
        assert_eq!(progress.done(), progress.total, "seed {seed}");
        assert!(
            world.most <= DEPTH + 2,
            "seed {seed}: {} at once",
            world.most
        );
    }
}

#[test]
fn what_was_cut_off_anywhere_is_resumed() {
    for seed in 0..200 {
        let mut world = world(seed);
        let rest = world.disks[1].octets[world.disks[0].octets.len()..].to_vec();
        let mut rng = Rng::new(!seed);
        let mut runs = 0;
        loop {
            let mut machine = copy(&world);
            let answers = 1 + rng.below(60 + runs * 30) as u64;
            if rng.one_in(3) {
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
        let mut rng = Rng::new(seed);
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

#[test]
fn what_an_unmap_leaves_is_overwritten() {
    let a = Disk::empty(SIZE - 512, 512);
    let mut b = Disk::empty(SIZE, 512);
    b.octets.fill(7);
    b.mapped.fill(true);
    let mut world = World::new(a, b, 1);
    let mut machine = copy(&world);
    assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
    is_right(&world, &[7; 512], 1);
    let mapped = world.disks[1].mapped.iter().filter(|mapped| **mapped);
    assert_eq!(
        mapped.count(),
        1,
        "of granules of {GRANULE}, the last alone"
    );
}

#[test]
fn a_failure_says_where_and_keeps_what_was_before() {
    for (seed, side) in (0..40).zip([Side::A, Side::B].into_iter().cycle()) {
        let mut a = Disk::random(SIZE, 512, &mut Rng::new(seed));
        a.octets.fill(1);
        a.mapped.fill(true);
        let mut world = World::new(a, Disk::empty(SIZE, 512), seed);
        let bad = Rng::new(seed).below(SIZE) as u64;
        world.disks[side as usize].bad = Some(bad);
        let mut machine = copy(&world);
        let End::Over(Err(failure)) = world.run(&mut machine, FOREVER) else {
            panic!("seed {seed}: it did not fail");
        };
        let error = [MediumError::Read, MediumError::Write][side as usize];
        let at = Some(bad / CHUNK * CHUNK);
        assert_eq!((failure.side, failure.at), (side, at));
        assert_eq!(failure.error, error);
        assert!(world.durable <= bad / CHUNK * CHUNK, "seed {seed}");
        world.disks[side as usize].bad = None;
        world.power_cut();
        let mut machine = copy(&world);
        assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
        is_right(&world, &[], seed);
    }
}

#[test]
fn a_write_of_unknown_outcome_is_to_be_done_again() {
    let failure = Failure {
        side: Side::B,
        at: Some(4096),
        error: MediumError::Unknown,
    };
    assert_eq!(
        failure.line("file:a", "iscsi://host/disk/0"),
        "iscsi://host/disk/0: outcome unknown at octet 4096 (it may have been written, or may \
         still be: see to the volume, then write it again)"
    );
}
