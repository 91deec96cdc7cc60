//! The target stops in the middle of everything: hosts are asked to log out, those that do not are
//! cut off when their time is over, every core leaves, and everything is flushed. And one that has
//! nothing to do keeps nothing that it does not need.

use std::time::Duration;

use iscsi::wire::control::event;
use scsi::medium::Extent;
use sim::DiskKind;
use tests::initiator::Reply;

use crate::lab::{Lab, Mix, Shape};
use crate::oracle::Pattern;
use crate::seeds::with_transports;

/// What hosts have to log out.
const GRACE: Duration = Duration::from_secs(5);
const HOSTS: usize = 5;

#[test]
fn every_core_leaves_within_the_grace_with_all_flushed() {
    with_transports("stops", 80, |seed| {
        let mut lab = Lab::any(seed);
        lab.any_pace();
        lab.log_in_hosts(HOSTS);
        let steps = lab.rng.below(1500);
        lab.run(steps, &Mix::with_aborts());
        begin_logins(&mut lab);
        lab.world.stop();
        let began = lab.world.now();
        lab.world.connect().map(drop).expect_err("nobody listens");
        while lab.world.now() < began + GRACE {
            say_good_bye(&mut lab);
            let steps = lab.rng.below(400);
            lab.run(steps, &Mix::default());
            lab.world.pass(GRACE / 20);
        }
        lab.quiesce();
        assert!(lab.world.has_left(), "a core has not left");
        assert_eq!(lab.world.not_flushed(), 0, "volumes not flushed");
        assert!(lab.disks.iter().all(sim::Disk::is_flushed));
        lab.is_left_by_all();
    });
}

/// Some have not logged in when the stop comes, some are just moving to their core, and some take
/// the place of older sessions.
fn begin_logins(lab: &mut Lab) {
    for _ in 0..lab.rng.below(3) {
        let host = lab.rng.below(HOSTS);
        lab.hosts[host].hang_up();
        lab.dial(host);
    }
    let steps = lab.rng.below(60);
    lab.run(steps, &Mix::default());
}

/// Those who are asked to log out do it, but for one.
fn say_good_bye(lab: &mut Lab) {
    let is_request = |reply: &Reply| *reply == Reply::Async(event::LOGOUT_REQUEST);
    for host in lab.hosts.iter_mut().skip(1) {
        let asked = host.told.iter().any(is_request);
        if asked && host.logged_in {
            host.told.clear();
            host.log_out();
        }
    }
}

#[test]
fn buffers_of_an_idle_core_are_given_back() {
    with_transports("idle", 5, |seed| {
        let mut lab = Lab::new(seed, Shape::new(1, DiskKind::Apart));
        lab.log_in_hosts(1);
        for _ in 0..2 {
            lab.insist(0, |lab| lab.write(0, 0, Extent::new(0, 16), Pattern::Each));
            lab.quiesce();
            let is_kept = lab.world.resident() > 0;
            assert!(is_kept, "a buffer is kept for the next one");
            for _ in 0..3 {
                lab.world.pass(Duration::from_secs(1));
                lab.quiesce();
            }
            assert_eq!(lab.world.resident(), 0);
        }
        lab.leave();
    });
}
