//! A session that does not come back in time: what is then said of a write is true.

use std::time::Duration;

use scsi::medium::{Extent, MediumError};

use super::remote_units::{Use, stamp};
use crate::lab::Lab;
use crate::seeds::with_seeds;

const PLACE: Extent = Extent::new(0, 1);
const REPLACEMENT: Duration = Duration::from_secs(10);

/// Nothing moves on what there is of connections.
fn stall(lab: &Lab, stalled: bool) {
    let wires = lab.world.wires_of(0);
    wires.iter().for_each(|wire| wire.stall(stalled));
}

#[test]
fn not_ready_is_said_of_no_write_that_lands() {
    with_seeds("writes that are given up", 200, |seed| {
        let mut story = Use::of(seed, 1, REPLACEMENT);
        let write = story.write_op(PLACE, true);
        story.lab.world.submit(0, 1, write);
        let steps = story.lab.rng.below(60);
        (0..steps).for_each(|_| story.pass());
        let result = loop {
            if let Some((_, result)) = story.lab.world.next_done(0) {
                break result;
            }
            stall(&story.lab, true);
            story.pass();
        };
        stall(&story.lab, false);
        (0..500).for_each(|_| story.pass());
        let landed = story.lab.disks[0].block(0) == stamp(1);
        match result {
            Ok(_) => assert!(landed, "it is lost"),
            Err(MediumError::Gone) => assert!(!landed, "it was done"),
            Err(error) => assert_eq!(error, MediumError::Unknown),
        }
    });
}
