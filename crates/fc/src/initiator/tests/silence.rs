//! A target is silent: when it is asked how far it has got.

use std::time::Duration;

use crate::initiator::Fate as End;
use crate::port::Fc4Layer;
use crate::remote::Fcp;
use crate::tests::pair::{Fate, Pair, all, lost_if, plain};

/// A peer that sends again what it is asked for, but does not number commands, as some arrays do.
fn unnumbered() -> Fcp {
    Fcp {
        retry_identifier: false,
        ..all()
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// When a frame of this kind left for the target, counted from the command.
fn times(pair: &mut Pair, what: &str, until: Duration) -> Vec<Duration> {
    let began = pair.now;
    let mut times = Vec::new();
    pair.settle();
    while pair.now < began + until && pair.wait() {
        pair.traced();
        pair.settle();
        let sent = pair.traced().iter().filter(|line| *line == what).count();
        times.extend(std::iter::repeat_n(pair.now - began, sent));
    }
    times
}

#[test]
fn a_lost_response_is_asked_for_soon_where_commands_are_numbered() {
    for (fcp, silence) in [(all(), ms(20)), (unnumbered(), ms(3000))] {
        let mut pair = Pair::but_one(fcp, (0, false), Fate::IsLost);
        pair.test(1);
        let began = pair.now;
        pair.until_told(1);
        assert_eq!(pair.now - began, silence);
    }
}

#[test]
fn a_lost_command_is_aborted_soon_so_that_it_may_be_repeated() {
    let mut pair = Pair::but_one(all(), (0, true), Fate::IsLost);
    pair.test(1);
    let began = pair.now;
    pair.until_told(1);
    let trace = ["> CMND 00", "> REC", "< LS_RJT 03 17", "> ABTS", "< BA_ACC"];
    assert_eq!(pair.traced(), trace);
    assert_eq!(
        (pair.failed().fate, pair.now - began),
        (End::Aborted, ms(20))
    );
}

#[test]
fn a_medium_that_takes_its_time_is_asked_ever_less_often() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    let asked = [20, 60, 140, 300, 620, 1260, 2540, 5100, 8100, 11_100];
    assert_eq!(times(&mut pair, "> REC", ms(11_000)), asked.map(ms));
    assert_eq!(pair.told.len(), 0, "it goes on");
}

#[test]
fn a_question_without_an_answer_is_put_again_after_pauses_that_double() {
    let mut pair = Pair::with(all(), |number, to_target| lost_if(to_target && number > 0));
    pair.disk.is_stopped = true;
    pair.test(1);
    let asked = [20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 8120];
    let times = times(&mut pair, "> REC", ms(100_000));
    assert_eq!(times[..10], asked.map(ms));
    assert_eq!(
        times.len(),
        16,
        "eight of them after REC_TOV, as others are asked"
    );
}

#[test]
fn a_target_that_is_silent_for_good_is_stuck_no_sooner_than_another() {
    for fcp in [all(), plain()] {
        let mut pair = Pair::with(fcp, |_, to_target| lost_if(to_target));
        pair.test(1);
        let began = pair.now;
        pair.until_told(1);
        assert!(pair.now - began >= ms(42_000));
    }
}

/// A REC is answered after so long, and the command with it.
fn answered_after(pair: &mut Pair, id: u64, took: Duration) {
    pair.test(id);
    for frame in pair.sent() {
        pair.deliver(&frame);
    }
    pair.answered();
    pair.wait();
    let rec = pair.sent();
    pair.now += took;
    pair.deliver(&rec[0]);
    pair.until_told(id as usize);
}

#[test]
fn the_pause_is_eight_round_trips() {
    let mut pair = Pair::new(all());
    answered_after(&mut pair, 1, ms(10));
    let began = pair.now;
    answered_after(&mut pair, 2, ms(10));
    assert_eq!(pair.now - began, ms(80));
}

#[test]
fn a_round_trip_becomes_shorter_by_what_a_target_asks_for_sooner() {
    let mut pair = Pair::new(all());
    answered_after(&mut pair, 1, ms(10));
    for id in 2..30 {
        pair.write(id, 0, vec![7; 512]);
        pair.until_told(id as usize);
    }
    pair.test(30);
    pair.sent();
    let next = pair.initiator.next_deadline().unwrap();
    assert_eq!(next - pair.now, ms(20));
}

#[test]
fn a_round_trip_is_learned_from_answers_that_come_behind_those_of_commands() {
    let mut pair = Pair::stopped(all());
    let asked: Vec<usize> = (1..6).map(|id| asked_within_50_ms(&mut pair, id)).collect();
    assert_eq!(asked, [2, 0, 0, 0, 0]);
}

/// Carries out a command over a way of 50 ms; how often it was asked about.
fn asked_within_50_ms(pair: &mut Pair, id: u64) -> usize {
    pair.test(id);
    let (command, answered) = (pair.sent(), pair.now + ms(50));
    let mut asked = Vec::new();
    while pair.initiator.next_deadline().unwrap() <= answered {
        pair.wait();
        asked.extend(pair.sent().into_iter().map(|rec| (pair.now, rec)));
    }
    pair.disk.is_stopped = false;
    pair.now = answered;
    pair.deliver(&command[0]);
    pair.until_told(id as usize);
    for (sent, rec) in &asked {
        pair.now = *sent + ms(50);
        pair.deliver(rec);
        pair.settle();
    }
    asked.len()
}
