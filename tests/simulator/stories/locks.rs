//! Locks on machines of many cores: sessions come and go while others lock blocks, and no change is
//! lost; and a command with a lock costs as many messages as there are cores with a session.

use std::time::Duration;

use sim::{DiskKind, Rng};
use tests::cdb;

use super::compare::{Counter, HOSTS, LBA, UNIT, counter, lab};
use super::sessions::end_connection;
use crate::host::{What, out};
use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_transports;

/// Longer than a silent session is kept.
const SILENCE: Duration = Duration::from_secs(45);

#[test]
fn no_change_is_lost_where_sessions_come_and_go() {
    with_transports("locks while sessions come and go", 60, |seed| {
        let mut rng = Rng::new(seed);
        let cores = *rng.pick(&[2, 3, 4, 8, 64]);
        let kind = *rng.pick(&[DiskKind::Apart, DiskKind::Memory]);
        let mut lab = lab(seed, Shape::new(cores, kind));
        let slowest = *lab.rng.pick(&[1, 4]);
        lab.slow_mail(slowest);
        let counters = count(&mut lab);
        let counted = counter(&lab.disks[UNIT].block(LBA));
        let good: u64 = counters.iter().map(|one| one.good).sum();
        let unknown: u64 = counters.iter().map(|one| one.unknown).sum();
        let may_be = good..=good + unknown;
        assert!(may_be.contains(&counted), "{counted}, not of {may_be:?}");
        assert!(good > 0, "never GOOD");
    });
}

/// All hosts count, and each is away now and then: it comes back to the core with the fewest
/// sessions.
fn count(lab: &mut Lab) -> Vec<Counter> {
    let mut counters: Vec<_> = (0..HOSTS).map(Counter::new).collect();
    for _ in 0..6000 {
        lab.run(1, &Mix::default());
        if lab.rng.one_in(8) {
            let which = lab.rng.below(HOSTS);
            if counters[which].is_idle() {
                counters[which].go_on(lab);
            }
        }
        if lab.rng.one_in(150) {
            let which = lab.rng.below(HOSTS);
            match lab.hosts[which].link {
                None => lab.dial(which),
                Some(_) => end_connection(lab, which),
            }
        }
        counters.iter_mut().for_each(|one| one.hear(lab));
        for (host, one) in counters.iter_mut().enumerate() {
            if lab.hosts[host].link.is_none() {
                one.cut_off();
            }
        }
    }
    // A lock waits for data that a host owes, until the target takes that for gone.
    for host in 0..HOSTS {
        if lab.hosts[host].link.is_none() {
            lab.dial(host);
        }
    }
    lab.finish();
    counters.iter_mut().for_each(|one| one.hear(lab));
    lab.log_out_all();
    for _ in 0..3 {
        lab.world.pass(SILENCE);
        lab.quiesce();
    }
    lab.is_left_by_all();
    counters
}

/// The first host is on the core of the owners, the second on another one.
fn messages_for_a_command(cores: u16) -> u64 {
    let mut lab = Lab::new(1, Shape::new(cores, DiskKind::Memory));
    lab.unwatched.push(0);
    for _ in 0..2 {
        let host = lab.add_host();
        lab.log_in(host);
        // The first lock in a place is told to every core.
        lab.insist(host, swap_zeros(host));
        lab.quiesce();
    }
    let before = lab.world.mailed();
    lab.insist(1, swap_zeros(1));
    lab.quiesce();
    lab.world.mailed() - before
}

/// COMPARE AND WRITE of a block of zeros, which stays one.
fn swap_zeros(host: usize) -> impl Fn(&mut Lab) -> u64 {
    move |lab| {
        let data = out(vec![0; 2 * 512]);
        let cdb = cdb::compare_and_write(LBA, 1);
        lab.hosts[host].command(1, 0, &cdb, data, What::Other)
    }
}

/// Lock: request, publication, acknowledgement, answer; the same without an acknowledgement where
/// it is given back.
#[test]
fn a_command_with_a_lock_costs_the_same_on_many_cores() {
    assert_eq!(messages_for_a_command(2), 7);
    assert_eq!(messages_for_a_command(64), 7);
}
