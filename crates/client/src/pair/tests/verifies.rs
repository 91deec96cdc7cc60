//! What differs is found, and told as it is.

use std::ops::Range;

use super::disk::Disk;
use super::{End, World};
use crate::pair::PairMachine;
use crate::pair::verify::{Differences, LISTED, VerifyMachine};
use fastrand::Rng;

const SIZE: usize = 3 << 20;
const FOREVER: u64 = 1 << 20;

fn found(a: Disk, b: Disk, seed: u64) -> Differences {
    let mut world = World::new(a, b, seed);
    let (a, b) = world.shapes();
    let mut machine = VerifyMachine::new(a, b, 4);
    assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
    let progress = machine.progress();
    assert_eq!(progress.done(), progress.total, "seed {seed}");
    machine.differences().clone()
}

/// What a loop over all bytes finds.
fn expected(a: &Disk, b: &Disk) -> Differences {
    let block = a.shape.block_size as usize;
    let mut differences = Differences::default();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (at, (a, b)) in a.bytes.iter().zip(&b.bytes).enumerate() {
        if a == b {
            continue;
        }
        differences.first.get_or_insert(at as u64);
        let start = (at / block * block) as u64;
        let end = start + block as u64;
        match ranges.last_mut() {
            Some(last) if last.end > start => continue,
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
        differences.blocks += 1;
    }
    ranges.truncate(LISTED);
    let add = |range| differences.ranges.add(range);
    ranges.into_iter().for_each(add);
    differences
}

#[test]
fn what_is_the_same_has_no_differences() {
    for seed in 0..20 {
        let a = Disk::random(SIZE, 512, &mut Rng::with_seed(seed));
        let mut b = a.clone();
        b.tells = seed % 2 == 0;
        b.shape.block_size = 4096;
        assert_eq!(found(a, b, seed), Differences::default());
    }
}

#[test]
fn every_difference_is_found() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let a = Disk::random(SIZE, rng.choice([512, 4096]).unwrap(), &mut rng);
        let mut b = a.clone();
        for _ in 0..=rng.usize(..12) {
            let start = rng.usize(..SIZE);
            let most = rng.choice([1, 5000, 600_000]).unwrap();
            let len = 1 + rng.usize(..most);
            let end = SIZE.min(start + len);
            b.bytes[start..end].fill(0x5a);
            let granules = start / super::disk::GRANULE..end.div_ceil(super::disk::GRANULE);
            b.mapped[granules].fill(true);
        }
        let expected = expected(&a, &b);
        assert_eq!(found(a, b, seed), expected, "seed {seed}");
    }
}

#[test]
fn what_was_stopped_ends() {
    let a = Disk::random(SIZE, 512, &mut Rng::with_seed(3));
    let mut world = World::new(a.clone(), a, 3);
    let (a, b) = world.shapes();
    let mut machine = VerifyMachine::new(a, b, 4);
    assert_eq!(world.run(&mut machine, 7), End::Cut);
    machine.stop();
    assert_eq!(world.run(&mut machine, FOREVER), End::Over(Ok(())));
    let progress = machine.progress();
    assert!(progress.done() < progress.total);
}
