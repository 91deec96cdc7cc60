//! A target that has nothing to do keeps nothing that it does not need.

use std::time::Duration;

use scsi::medium::Extent;
use sim::DiskKind;

use crate::lab::{Lab, Shape};
use crate::oracle::Pattern;
use crate::seeds::with_seeds;

#[test]
fn buffers_of_an_idle_core_are_given_back() {
    with_seeds("idle", 5, |seed| {
        let mut lab = Lab::new(seed, Shape::new(1, DiskKind::Apart));
        lab.log_in_hosts(1);
        for _ in 0..2 {
            lab.insist(0, |lab| lab.write(0, 0, Extent::new(0, 16), Pattern::Each));
            lab.quiesce();
            assert!(
                lab.world.resident() > 0,
                "a buffer is kept for the next one"
            );
            for _ in 0..3 {
                lab.world.pass(Duration::from_secs(1));
                lab.quiesce();
            }
            assert_eq!(lab.world.resident(), 0);
        }
        lab.finish();
        lab.leave();
    });
}
