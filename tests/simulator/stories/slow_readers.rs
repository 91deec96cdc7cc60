//! A host that asks for everything and takes nothing: others go on, what it costs is bounded, and
//! in the end it takes all of it or is dropped.

use std::time::Duration;

use scsi::medium::Extent;
use sim::{Disk, DiskKind, POOL_BYTES, Rng};
use tests::cdb;
use tests::initiator::Reply;

use crate::host::{What, out};
use crate::lab::{Lab, Mix, Shape};
use crate::oracle::Pattern;
use crate::seeds::with_transports;

/// One host takes nothing.
const SLOW: usize = 0;
/// Larger blocks, so that a read fills many segments.
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 128;

#[test]
fn a_host_that_takes_nothing_stops_nobody() {
    with_transports("slow readers", 15, |seed| {
        let mut lab = lab(seed);
        lab.hosts[SLOW].reads = false;
        let (mut most, mut pings) = (0, 0);
        for _ in 0..150 {
            pings += ask_for_more(&mut lab);
            let mix = Mix {
                blocks: 4,
                ..Mix::default()
            };
            lab.run(50, &mix);
            most = most.max(costs(&lab));
            let queued = lab.sum(|held| held.core.queued);
            assert!(queued <= QUEUED, "{queued} PDUs wait to be sent");
        }
        let answered = lab.hosts[1].told.len() + lab.hosts[2].told.len();
        assert!(answered > 50, "others were answered {answered} times");
        lab.tell(|| format!("at most {most} bytes"));
        assert!(most <= LIMIT, "it cost {most} bytes");
        if lab.rng.one_in(2) {
            is_dropped(&mut lab);
        } else {
            catches_up(&mut lab, pings);
        }
        lab.leave();
    });
}

/// What one host may make the target hold: the buffers of reads, those of its writes, which are
/// short here, and what is received before it can be used.
const LIMIT: usize = MOST_READ + (2 << 20);

/// What is read from the medium for a host that takes nothing: what the device server lets be on
/// its way (2 MiB) and what a connection sends by one operation (1 MiB), and a segment on top of
/// each.
const MOST_READ: usize = 3584 << 10;

/// Reads of 1 MiB by a host that takes nothing.
const READS: u64 = 64;

#[test]
fn long_reads_of_a_host_that_takes_nothing_leave_the_pool_to_others() {
    with_transports("long reads", 2, |seed| {
        let (mut lab, extent) = lab_of_long_reads(seed, POOL_BYTES);
        lab.hosts[SLOW].reads = false;
        fill_window(&mut lab, extent);
        assert_eq!(lab.hosts[SLOW].tasks.len() as u64, READS);
        lab.quiesce();
        let held = costs(&lab);
        assert!((2 << 20..=MOST_READ).contains(&held), "{held} bytes");
        another_goes_on(&mut lab, extent, 1);
        assert!(costs(&lab) <= MOST_READ);
        assert_eq!(lab.hosts[SLOW].tasks.len(), READS as usize);
        lab.hosts[SLOW].reads = true;
        lab.hosts[SLOW].told.clear();
        lab.finish();
        let is_good = |reply: &&Reply| matches!(reply, Reply::Done { status: 0, .. });
        let good = lab.hosts[SLOW].told.iter().filter(is_good).count();
        assert_eq!(good, READS as usize, "each has its data in the end");
        lab.leave();
    });
}

#[test]
fn a_host_that_takes_nothing_but_is_alive_is_dropped() {
    with_transports("alive", 2, |seed| {
        let (mut lab, extent) = lab_of_long_reads(seed, POOL_BYTES);
        lab.hosts[SLOW].reads = false;
        fill_window(&mut lab, extent);
        lab.quiesce();
        for _ in 0..15 {
            let link = lab.hosts[SLOW].link.as_mut().expect("a connection");
            link.initiator.give_sign_of_life();
            lab.quiesce();
            lab.world.pass(Duration::from_secs(10));
            lab.quiesce();
        }
        is_gone(&mut lab);
        lab.leave();
    });
}

/// What one host gets memory for that it then sends nothing into.
const MOST_WRITTEN: usize = 32 << 20;

#[test]
fn a_host_that_owes_data_leaves_the_pool_to_others() {
    with_transports("owes data", 1, |seed| {
        let (mut lab, extent) = lab_of_long_reads(seed, MOST_WRITTEN + (8 << 20));
        let link = lab.hosts[SLOW].link.as_mut().expect("a connection");
        link.initiator.withholds = true;
        let cdb = cdb::write(0, extent.blocks as u32, false);
        // One place of the window is for its read.
        for _ in 1..READS {
            // SIMPLE: one that is ORDERED would let none after it begin.
            let data = out(vec![1; 1 << 20]);
            lab.hosts[SLOW].command(1, 1, &cdb, data, What::Other);
        }
        lab.quiesce();
        let held = costs(&lab);
        let expected = MOST_WRITTEN..MOST_WRITTEN + (1 << 20);
        assert!(expected.contains(&held), "{held} bytes");
        another_goes_on(&mut lab, extent, 0);
        let user = lab.read(SLOW, 0, extent);
        assert_eq!(lab.answer(SLOW, user).0, 0, "it reads, whatever it owes");
        let wire = lab.hosts[SLOW].hang_up().expect("a connection");
        wire.cut();
        lab.finish();
        assert_eq!(costs(&lab), 0);
        lab.leave();
    });
}

/// One core with a small pool, whose first unit has 1 MiB that was written.
fn lab_of_long_reads(seed: u64, pool_bytes: usize) -> (Lab, Extent) {
    let mut shape = Shape::new(1, DiskKind::Apart);
    let extent = Extent::new(0, (1 << 20) / u64::from(BLOCK));
    let disk = || Disk::new(DiskKind::Apart, BLOCK, extent.blocks);
    shape.disks = vec![disk(), disk()];
    shape.pool_bytes = pool_bytes;
    shape.limits.window = READS as u32;
    shape.limits.held_bytes = READS as u32 * shape.limits.first_burst;
    let mut lab = Lab::new(seed, shape);
    lab.world.pace.pieces = false;
    for _ in 0..2 {
        let host = lab.add_host();
        lab.log_in(host);
        for unit in 0..2 {
            lab.insist(host, |lab| lab.read(host, unit, Extent::new(0, 1)));
        }
    }
    lab.insist(1, |lab| lab.write(1, 0, extent, Pattern::Each));
    // The window grows with use.
    while fill_window(&mut lab, Extent::new(0, 1)) < READS {
        lab.quiesce();
    }
    lab.quiesce();
    (lab, extent)
}

/// As many reads as the window of the host that takes nothing admits.
fn fill_window(lab: &mut Lab, extent: Extent) -> u64 {
    let mut reads = 0;
    while lab.hosts[SLOW].is_ready() {
        lab.read(SLOW, 0, extent);
        reads += 1;
    }
    reads
}

/// PDUs that may wait for all hosts: some for each command in the window, and answers to pings.
const QUEUED: usize = 3 * 200;

fn lab(seed: u64) -> Lab {
    let mut rng = Rng::new(seed);
    let mut shape = Shape::new(1 + rng.below(2) as u16, DiskKind::Apart);
    let disk = || Disk::new(DiskKind::Apart, BLOCK, BLOCKS);
    shape.disks = vec![disk(), disk()];
    shape.pool_bytes = 64 << 20;
    let mut lab = Lab::new(seed, shape);
    lab.any_pace();
    // The slow host writes to a unit of its own: whatever wants to compare and write waits for
    // writes to the same blocks.
    lab.unwatched.push(1);
    lab.log_in_hosts(3);
    lab
}

/// As many commands as it may send, and pings as long as they find their way; returns how many.
fn ask_for_more(lab: &mut Lab) -> usize {
    while lab.hosts[SLOW].is_ready() && lab.hosts[SLOW].unsent() < 1 << 20 {
        match lab.rng.below(3) {
            0 => lab.write(SLOW, 1, Extent::new(0, 8), Pattern::Each),
            _ => lab.read(SLOW, 0, Extent::new(0, BLOCKS)),
        };
    }
    let link = lab.hosts[SLOW].link.as_mut().expect("a connection");
    if lab.world.unread(&link.wire) + link.initiator.output().len() > 1 << 18 {
        return 0;
    }
    for _ in 0..100 {
        link.initiator.ping(&[0x55; 512]);
    }
    100
}

/// Bytes that the target holds.
fn costs(lab: &Lab) -> usize {
    lab.sum(|held| held.buffers + held.core.early)
}

/// It does not answer a NOP-In that it does not take, and has some time then to take what is left.
fn is_dropped(lab: &mut Lab) {
    for _ in 0..13 {
        lab.world.pass(Duration::from_secs(10));
        lab.quiesce();
    }
    is_gone(lab);
}

/// Its connection is over, and it costs nothing.
fn is_gone(lab: &mut Lab) {
    let wire = lab.hosts[SLOW].hang_up().expect("a connection");
    assert!(wire.is_over(), "it is still connected");
    assert_eq!(costs(lab), 0, "it is gone, and still costs");
}

/// Another host reads this, and writes to a unit.
fn another_goes_on(lab: &mut Lab, extent: Extent, unit: usize) {
    for at in 0..16 {
        let user = lab.read(1, 0, extent);
        assert_eq!(lab.answer(1, user).0, 0, "another host reads");
        let user = lab.write(1, unit, Extent::new(at, 64), Pattern::Each);
        assert_eq!(lab.answer(1, user).0, 0, "another host writes");
    }
}

/// It takes everything after all, and misses nothing.
fn catches_up(lab: &mut Lab, pings: usize) {
    lab.hosts[SLOW].reads = true;
    lab.quiesce();
    let told = lab.hosts[SLOW].told.iter();
    let pongs = told.filter(|reply| matches!(reply, Reply::Nop(..))).count();
    assert_eq!(pongs, pings, "pings and answers");
}
