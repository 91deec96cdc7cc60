//! A session that does not come back in time, or is not waited for: what is then said of a write
//! is true.

use std::time::Duration;

use block::lease::BlockLease;
use scsi::medium::{Extent, MediumError, MediumOp, MediumResult};

use super::remote_units::{PATIENCE, Use, stamp};
use crate::lab::read_op;
use crate::seeds::with_transports;

const PLACE: Extent = Extent::new(0, 1);
const REPLACEMENT: Duration = Duration::from_secs(10);

/// Lets an operation end, and counts the steps that it takes.
fn end(story: &mut Use, op: MediumOp<BlockLease>) -> usize {
    story.lab.world.submit(0, 0, op);
    for steps in 0.. {
        if let Some((0, result)) = story.lab.world.next_done(0) {
            result.expect("no error");
            return steps;
        }
        story.pass();
    }
    unreachable!()
}

/// A write has been under way for some steps, up to as many as the one before it took; of one seed
/// in four without a session.
fn write_under_way(seed: u64, sessions: u16, replacement: Duration) -> Use {
    let mut story = Use::of(seed, sessions, replacement);
    let mut steps = 0;
    if !seed.is_multiple_of(4) {
        for _ in 0..2 {
            let write = story.write_op(PLACE, true);
            steps = end(&mut story, write);
        }
    }
    let write = story.write_op(PLACE, true);
    story.lab.world.submit(0, 1, write);
    let steps = story.lab.rng.below(steps + 1);
    (0..steps).for_each(|_| story.pass());
    story
}

/// The version of [`PLACE`] that was written last.
fn has_landed(story: &Use) -> bool {
    story.lab.disks[0].block(0) == stamp(story.begun(PLACE.lba))
}

fn result(story: &mut Use) -> Option<MediumResult<BlockLease>> {
    story.lab.world.next_done(0).map(|(_, result)| result)
}

#[test]
fn not_ready_is_said_of_no_write_that_lands() {
    with_transports("writes that are given up", 200, |seed| {
        let mut story = write_under_way(seed, 1, REPLACEMENT);
        let result = loop {
            if let Some(result) = result(&mut story) {
                break result;
            }
            story.lab.stall(0, .., true);
            story.pass();
        };
        story.lab.stall(0, .., false);
        (0..500).for_each(|_| story.pass());
        match result {
            Ok(_) => assert!(has_landed(&story), "it is lost"),
            Err(MediumError::Gone) => assert!(!has_landed(&story), "it was done"),
            Err(error) => assert_eq!(error, MediumError::Unknown),
        }
    });
}

/// With several sessions, its blocks are not in doubt either.
#[test]
fn what_waits_for_a_session_is_given_up_at_once_and_never_lands() {
    with_transports("writes that nobody wants", 200, |seed| {
        let mut story = write_under_way(seed, 1 + (seed / 4 % 3) as u16, PATIENCE);
        let ended = has_landed(&story);
        story.lab.world.cancel(0, &(1..2));
        match result(&mut story) {
            Some(Err(MediumError::Cancelled)) => {
                assert!(!ended, "it was done");
                let before = story.lab.disks[0].block(0);
                (0..500).for_each(|_| story.pass());
                assert!(story.lab.disks[0].block(0) == before, "it is done");
            }
            _ => assert!(!seed.is_multiple_of(4), "it waits for a session"),
        }
        end(&mut story, read_op(PLACE));
    });
}
