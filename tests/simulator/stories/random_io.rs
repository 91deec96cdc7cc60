//! Several hosts on several cores read and write the same few blocks, on disks that are slow and
//! fail: whatever a read returns may be there, and what was acknowledged is.

use sim::{Disk, DiskKind, Rng};

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_transports;

#[test]
fn acknowledged_writes_are_there() {
    with_transports("acknowledged writes are there", 60, |seed| {
        let mut lab = Lab::any(seed);
        lab.any_pace();
        lab.log_in_hosts(4);
        lab.run(3000, &Mix::default());
        lab.leave();
    });
}

#[test]
fn failing_disks_lose_nothing_that_was_acknowledged() {
    with_transports("failing disks", 40, |seed| {
        let mut lab = Lab::any(seed);
        lab.any_pace();
        lab.world.pace.disk_errors = 5;
        lab.log_in_hosts(4);
        lab.run(3000, &Mix::with_aborts());
        lab.leave();
    });
}

#[test]
fn long_transfers_are_whole() {
    with_transports("long transfers", 6, |seed| {
        let mut shape = Shape::any(&mut Rng::new(seed));
        let kind = shape.disks[0].kind();
        // Up to 800 KiB: several segments each way.
        shape.disks = vec![Disk::new(kind, 4096, 300)];
        let mut lab = Lab::new(seed, shape);
        lab.any_pace();
        for _ in 0..3 {
            let host = lab.add_host();
            lab.log_in(host);
        }
        let mix = Mix {
            blocks: 200,
            depth: 3,
            ..Mix::with_aborts()
        };
        lab.run(1500, &mix);
        lab.leave();
    });
}

#[test]
fn one_seed_tells_one_story() {
    let tell = |seed| {
        let mut lab = Lab::new(seed, Shape::new(3, DiskKind::Apart));
        lab.any_pace();
        lab.log_in_hosts(3);
        lab.run(1500, &Mix::with_aborts());
        lab.finish();
        let told = lab.hosts.into_iter().map(|host| host.told);
        told.collect::<Vec<_>>()
    };
    assert_eq!(tell(1), tell(1));
    assert_ne!(tell(1), tell(2));
}
