//! Nexuses that come and go, and what changes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::super::{CommandStatus, Fate};
use super::unit::{BLOCK, Rig, Unit, flush, write, write_at, zeros};
use crate::medium::{Extent, HeapLease, MediumError, MediumOp, ReadMemory};
use crate::wire::sense::SenseKey;
use crate::wire::sense::Status;

#[test]
fn what_was_under_way_is_done_once_more_on_the_next_nexus() {
    let mut rig = Rig::default();
    let id = rig.submit(write());
    rig.client.lost();
    rig.run();
    assert_eq!(rig.take_asked(), [""; 0], "nothing is sent without a nexus");
    let later = rig.submit(write_at(2, false));
    rig.begin();
    let writes = rig.asked.iter().filter(|cdb| cdb.starts_with("2a"));
    assert_eq!(writes.count(), 2);
    let mut done: Vec<u64> = rig.results.iter().map(|(done, _)| *done).collect();
    done.sort_unstable();
    assert_eq!(done, [id, later]);
}

#[test]
fn an_answer_of_the_old_nexus_ends_nothing_twice() {
    let mut rig = Rig::default();
    rig.go(write()).unwrap();
    let answer = CommandStatus {
        status: 0,
        sense: &[],
        moved: 0,
    };
    rig.client.answered(rig.now, 0, &answer);
    rig.client.answered(rig.now, 77, &answer);
    rig.run();
    assert!(rig.results.is_empty());
}

#[test]
fn another_unit_in_its_place_is_not_written() {
    let mut rig = Rig::default();
    rig.submit(write());
    rig.client.lost();
    rig.unit.serial = "s2";
    rig.begin();
    rig.tells(["refused: a different unit answers at this address now"]);
    assert!(matches!(
        rig.results.pop(),
        Some((1, Err(MediumError::Gone)))
    ));
    assert!(matches!(rig.go(write()), Err(MediumError::Gone)));
}

#[test]
fn a_unit_that_came_back_smaller_is_refused_and_a_larger_one_is_told() {
    let mut rig = Rig::default();
    rig.client.lost();
    rig.unit.blocks = 4096;
    rig.begin();
    rig.tells(["4096 blocks, cached", "ready"]);
    rig.client.lost();
    rig.unit.blocks = 4095;
    rig.begin();
    rig.tells(["refused: it has 4095 blocks, and had 4096"]);
}

#[test]
fn growth_is_announced_and_looked_at() {
    let mut rig = Rig::default();
    rig.unit.blocks = 4096;
    rig.ends(SenseKey::UnitAttention, 0x2a09);
    rig.go(write()).unwrap();
    rig.tells(["4096 blocks, cached", "ready"]);
    assert_eq!(rig.client.facts().unwrap().traits.blocks, 4096);
}

#[test]
fn a_reset_before_the_flush_is_told_by_the_flush() {
    let mut rig = Rig::default();
    rig.go(write()).unwrap();
    rig.client.lost();
    rig.ends(SenseKey::UnitAttention, 0x2901);
    rig.begin();
    rig.tells(["cache lost", "ready"]);
    assert!(matches!(rig.go(flush()), Err(MediumError::Write)));
    rig.go(flush()).unwrap();
}

#[test]
fn a_reset_after_the_flush_lost_nothing() {
    let mut rig = Rig::default();
    rig.go(write()).unwrap();
    rig.go(flush()).unwrap();
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.go(write_at(2, false)).unwrap();
    rig.go(flush()).unwrap();
    rig.tells(["ready"]);
}

#[test]
fn what_ends_every_nexus_is_given_up() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x2a);
    rig.submit(write());
    for _ in 0..16 {
        rig.run();
        assert!(rig.results.is_empty());
        rig.client.lost();
        rig.client.begin();
    }
    rig.run();
    assert_eq!(rig.error(), MediumError::Write);
}

#[test]
fn a_nexus_that_did_not_carry_a_command_does_not_count_for_it() {
    let mut rig = Rig::default();
    rig.client.lost();
    rig.submit(write());
    for _ in 0..40 {
        rig.client.begin();
        rig.client.lost();
    }
    rig.begin();
    assert!(matches!(rig.results.pop(), Some((_, Ok(_)))));
}

#[test]
fn a_command_is_late_four_times_at_most() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x2a);
    rig.submit(write());
    for _ in 0..4 {
        rig.run();
        assert!(rig.results.is_empty());
        let id = rig.unanswered.pop().unwrap();
        rig.client.late(rig.now, id);
    }
    rig.run();
    assert_eq!(rig.error(), MediumError::Write);
}

#[test]
fn a_question_what_the_unit_is_is_late_four_times_at_most() {
    let mut rig = Rig::new(Unit::default());
    rig.unit.silent.push(0x12);
    rig.client.begin();
    for _ in 0..4 {
        rig.run();
        rig.tells([""; 0]);
        let id = rig.unanswered.pop().unwrap();
        rig.client.late(rig.now, id);
    }
    rig.run();
    assert!(rig.unanswered.is_empty(), "it is not asked again");
    assert_eq!(rig.take_told().len(), 1, "it is refused");
}

/// What an operation ends with of which a command was taken by a transport, and ended so.
fn given_up_after(op: MediumOp<HeapLease>, ends: impl Fn(&mut Rig, u32)) -> MediumError {
    let mut rig = Rig::default();
    rig.unit.silent.extend([0x28, 0x2a, 0x35, 0x93]);
    rig.submit(op);
    rig.run();
    let id = rig.sent();
    ends(&mut rig, id);
    rig.client.lost();
    rig.client.abandon();
    rig.run();
    rig.results.pop().unwrap().1.unwrap_err()
}

#[test]
fn what_was_sent_in_vain_and_is_sent_again_is_a_retry() {
    let mut rig = Rig::default();
    let retries = Arc::new(AtomicU64::new(0));
    rig.client = std::mem::take(&mut rig.client).counting(Arc::clone(&retries));
    rig.unit.silent.push(0x2a);
    rig.submit(write());
    rig.run();

    // What no transport has taken was not sent; a busy one has not taken it.
    let id = rig.unanswered.pop().unwrap();
    rig.answers(id, Status::Busy, 0);
    rig.wait();
    assert_eq!(retries.load(Relaxed), 0);

    // Twice the unit asks for it again, and then the nexus is lost.
    let id = rig.sent();
    rig.answers(id, Status::Busy, 0);
    assert_eq!(retries.load(Relaxed), 0, "it is waited first");
    rig.wait();
    let id = rig.sent();
    rig.answers(id, Status::TaskAborted, 0);
    assert_eq!(retries.load(Relaxed), 2);
    rig.sent();
    rig.client.lost();
    rig.begin();
    assert_eq!(retries.load(Relaxed), 3);

    // It goes well, and the next one at once.
    rig.unit.silent.clear();
    let id = rig.sent();
    rig.answers(id, Status::Good, BLOCK as usize);
    assert!(matches!(rig.results.pop(), Some((_, Ok(_)))));
    rig.go(write()).unwrap();
    assert_eq!(retries.load(Relaxed), 3);
}

#[test]
fn only_of_a_write_that_was_on_its_way_the_outcome_is_unknown() {
    let same = zeros(2);
    let untold = |_: &mut Rig, _| {};
    for op in [write(), same] {
        assert_eq!(given_up_after(op, untold), MediumError::Unknown);
    }
    let (extent, memory) = (Extent::new(0, 1), ReadMemory::Lent);
    for op in [MediumOp::Read { extent, memory }, flush()] {
        assert_eq!(given_up_after(op, untold), MediumError::Gone);
    }
    let fates = [
        (Fate::NeverSent, MediumError::Gone),
        (Fate::Unknown, MediumError::Unknown),
        (Fate::Aborted, MediumError::Unknown),
    ];
    for (fate, error) in fates {
        let told = |rig: &mut Rig, id| rig.client.unanswered(id, fate);
        assert_eq!(given_up_after(write(), told), error, "{fate:?}");
    }
}

#[test]
fn what_a_status_says_was_not_done_was_not() {
    let ended = |status: Status| {
        given_up_after(write(), move |rig, id| {
            let (status, sense, moved) = (status as u8, &[][..], 0);
            let answer = CommandStatus {
                status,
                sense,
                moved,
            };
            rig.client.answered(rig.now, id, &answer);
        })
    };
    assert_eq!(ended(Status::Busy), MediumError::Gone);
    assert_eq!(ended(Status::TaskAborted), MediumError::Unknown);
}

#[test]
fn of_a_write_that_is_half_done_the_outcome_is_unknown() {
    let mut rig = Rig::with(|unit| unit.max_transfer = 1);
    rig.endings.push_back((Status::Good, None));
    rig.ends(SenseKey::NotReady, 0x3a00);
    let ended = rig.write(0, &[7; 2 * BLOCK as usize], false);
    assert_eq!(ended.unwrap_err(), MediumError::Unknown);
}

#[test]
fn a_unit_that_is_away_for_now_may_come_back() {
    let mut rig = Rig::default();
    rig.client.lost();
    rig.unit.unknown.push(0x12);
    rig.begin();
    let told = rig.take_told();
    assert!(told[0].starts_with("not now: no such LUN"));
    rig.client.lost();
    rig.unit.unknown.clear();
    rig.begin();
    rig.tells(["ready"]);
}

#[test]
fn what_is_given_up_ends() {
    let mut rig = Rig::default();
    let id = rig.submit(write());
    rig.client.give_up();
    rig.run();
    let ended = rig.results.pop();
    assert!(matches!(ended, Some((done, Err(MediumError::Gone))) if done == id));
    rig.begin();
    assert!(rig.take_asked().is_empty());
}
