//! Turns of a core, some of whose sessions have much to say: all of them are served alike.

mod blocks;

use ::io::ring::RingKind;
use iscsi::target::TargetLimits;

use super::BLOCK;
use super::rig::{Host, Rig};
use crate::cdb;
use crate::initiator::Data;

const SESSIONS: usize = 12;
/// Commands that each session has under way.
const DEPTH: usize = 32;

#[test]
fn a_turn_answers_few_at_once() {
    let Some(mut rig) = rig(RingKind::Uring) else {
        return;
    };
    rig.hosts.iter_mut().for_each(ask);
    rig.wait();
    let mut answered = Vec::new();
    for _ in 0..3 {
        rig.turn();
        rig.wait();
        answered.extend(answers(&mut rig).iter().map(|answers| answers / DEPTH));
    }
    let turns: Vec<_> = answered.chunks(SESSIONS).collect();
    let four_more = [[1; 4], [0; 4], [0; 4]].concat();
    assert_eq!(turns[0], four_more);
    assert_eq!(turns[1], [&four_more[8..], &four_more[..8]].concat());
    assert_eq!(turns[2], [&four_more[4..], &four_more[..4]].concat());
}

#[test]
fn who_asks_again_at_once_is_heard_after_the_others() {
    for kind in [RingKind::Uring, RingKind::Epoll] {
        let Some(mut rig) = rig(kind) else {
            continue;
        };
        rig.hosts.iter_mut().for_each(ask);
        let mut sums = [0; SESSIONS];
        for _ in 0..50 {
            rig.wait();
            let answers = answers(&mut rig);
            for ((host, answers), sum) in rig.hosts.iter_mut().zip(answers).zip(&mut sums) {
                *sum += answers;
                (0..answers).for_each(|_| command(host));
                host.say();
            }
            let [least, most] = [sums.iter().min(), sums.iter().max()].map(Option::unwrap);
            assert!(*most <= least + DEPTH, "{sums:?}");
            rig.turn();
        }
        assert!(sums.iter().all(|sum| *sum > DEPTH), "{sums:?}");
    }
}

/// Hosts whose windows have grown; `None` where the kernel does not have the ring.
fn rig(kind: RingKind) -> Option<Rig> {
    let mut rig = Rig::new(kind, SESSIONS as u32, 1 << 20, TargetLimits::default())?;
    for depth in 1..=DEPTH {
        for host in &mut rig.hosts {
            (0..depth).for_each(|_| command(host));
        }
        rig.answers();
    }
    Some(rig)
}

/// How many answers have come to each host.
fn answers(rig: &mut Rig) -> Vec<usize> {
    let answers = rig.hosts.iter_mut().map(|host| {
        host.hear();
        std::iter::from_fn(|| host.initiator.poll()).count()
    });
    answers.collect()
}

fn command(host: &mut Host) {
    host.command(&cdb::read(0, 1), Data::In(BLOCK));
}

/// Asks for as much as it may.
fn ask(host: &mut Host) {
    (0..DEPTH).for_each(|_| command(host));
    host.say();
}
