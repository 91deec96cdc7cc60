//! PREEMPT AND ABORT, CLEAR TASK SET (of the host's own set) and resets, with any order of messages
//! between cores: once they are answered, nothing of what they end comes to the medium, and a host
//! that was preempted cannot write.

use iscsi::wire::task_management::function;
use sim::Rng;
use tests::cdb::Reserve;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_transports;

const HOSTS: usize = 4;

#[test]
fn nothing_lands_behind_a_fence() {
    with_transports("fences", 80, |seed| {
        let mut rng = Rng::new(seed);
        let mut shape = Shape::any(&mut rng);
        shape.cores = 2 + rng.below(3) as u16;
        let mut lab = Lab::new(seed, shape);
        lab.log_in_hosts(HOSTS);
        for host in 0..HOSTS {
            register(&mut lab, host);
        }
        lab.insist(0, |lab| lab.reserve(0, 0, Reserve::Reserve, (key(0), 0)));
        lab.slow_mail(8);
        for _ in 0..6 {
            let steps = 200 + lab.rng.below(300);
            lab.run(steps, &Mix::default());
            fence_once(&mut lab);
        }
        lab.leave();
    });
}

const fn key(host: usize) -> u64 {
    0x1000 + host as u64
}

fn register(lab: &mut Lab, host: usize) {
    lab.insist(host, |lab| {
        lab.reserve(host, 0, Reserve::RegisterAndIgnore, (0, key(host)))
    });
    lab.hosts[host].fenced = false;
}

/// One host ends what others do, by one means or another.
fn fence_once(lab: &mut Lab) {
    let host = lab.rng.below(HOSTS);
    lab.prompt = Some(host);
    match lab.rng.below(5) {
        0 => end_by_function(lab, host, |lab| lab.clear_set(host, 0)),
        1 => end_by_function(lab, host, |lab| lab.reset_unit(host, 0)),
        2 => end_by_function(lab, host, |lab| lab.reset_target(host)),
        _ => preempt(lab, host),
    }
    lab.prompt = None;
    for host in 0..HOSTS {
        lab.give_up_vanished(host);
    }
}

fn end_by_function(lab: &mut Lab, host: usize, send: impl Fn(&mut Lab)) {
    send(lab);
    let is_set = |code: u8| code != function::ABORT_TASK;
    let busy = |lab: &Lab| {
        let mut functions = lab.hosts[host].functions.values();
        functions.any(|function| is_set(function.code))
    };
    while busy(lab) {
        lab.run(1, &Mix::default());
    }
    lab.run(200, &Mix::default());
}

/// Until somebody registers again, all that it does is in vain.
fn preempt(lab: &mut Lab, host: usize) {
    let victim = (host + 1 + lab.rng.below(HOSTS - 1)) % HOSTS;
    lab.tell(|| format!("host {host} preempts {victim}"));
    lab.insist(host, |lab| {
        let keys = (key(host), key(victim));
        let user = lab.reserve(host, 0, Reserve::PreemptAndAbort, keys);
        for _ in 0..lab.rng.below(40) {
            lab.issue_from_others(host, &Mix::default());
        }
        user
    });
    lab.fence(victim);
    lab.run(300, &Mix::default());
    // What it sent before may be carried out when it is registered again.
    lab.give_up_vanished(victim);
    lab.until("an end", |lab| lab.hosts[victim].tasks.is_empty());
    register(lab, victim);
    if victim == 0 || lab.rng.one_in(4) {
        // Whoever held the reservation does so no more: it is free or somebody else's.
        let user = lab.reserve(host, 0, Reserve::Reserve, (key(host), 0));
        lab.answer(host, user);
    }
}
