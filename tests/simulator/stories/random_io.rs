//! Several hosts on several cores read and write the same few blocks, on disks that are slow and
//! fail: whatever a read returns may be there, and what was acknowledged is.

use engine::sim::Rng;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_seeds;

#[test]
fn acknowledged_writes_are_there() {
    with_seeds("acknowledged writes are there", 60, |seed| {
        let mut lab = Lab::new(seed, Shape::any(&mut Rng::new(seed)));
        lab.any_pace();
        lab.log_in_hosts(4);
        lab.run(3000, &Mix::default());
        lab.finish();
        lab.leave();
    });
}

#[test]
fn failing_disks_lose_nothing_that_was_acknowledged() {
    with_seeds("failing disks", 40, |seed| {
        let mut lab = Lab::new(seed, Shape::any(&mut Rng::new(seed)));
        lab.any_pace();
        lab.world.pace.disk_errors = 5;
        lab.log_in_hosts(4);
        lab.run(3000, &Mix::with_aborts());
        lab.finish();
        lab.leave();
    });
}
