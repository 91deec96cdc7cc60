//! Races of volumes of this process.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::{RacePlan, order};
use crate::load::tests::{subject, words};
use crate::load::{LoadResources, LoadWaits, RunError};
use crate::load_threads::{LiveFigures, RunObserver};
use crate::outcome::RunResult;
use crate::plan::FioOptions;
use crate::run;

fn plan(addresses: &[&str], words: &FioOptions) -> RacePlan {
    RacePlan {
        plan: run::RunPlan {
            words: words.clone(),
            subjects: addresses
                .iter()
                .map(|address| subject(address, words))
                .collect(),
            machinery: LoadResources {
                waits: LoadWaits::default(),
                targets: Vec::new(),
            },
            fill: false,
            floor: None,
        },
        turn: words.runtime / 4,
        losses: None,
    }
}

fn race(
    plan: &RacePlan,
    mut live: impl FnMut(LiveFigures, &AtomicBool),
) -> (RunResult, Result<(), RunError>) {
    let (mut outcome, stop) = (RunResult::default(), AtomicBool::new(false));
    let live = &mut |what| live(what, &stop);
    let watch = &mut RunObserver { stop: &stop, live };
    let result = plan.run(&mut outcome, watch);
    (outcome, result)
}

#[test]
fn everybody_begins_as_often_and_follows_each_other() {
    let rounds = (0..6).map(|round| order(round, 3).collect());
    let rounds: Vec<Vec<_>> = rounds.collect();
    for round in &rounds {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
    }
    for lane in 0..3 {
        let first = rounds.iter().filter(|round| round[0] == lane);
        assert_eq!(first.count(), 2, "{rounds:?}");
    }
    let pairs = rounds.iter().flat_map(|round| round.windows(2));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 6, "{rounds:?}");
}

#[test]
fn a_race_of_two_has_both_in_each_round() {
    let words = FioOptions {
        jobs: 2,
        block_sizes: vec![512, 4096],
        ..words("randrw")
    };
    let (turns, lefts) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let (outcome, result) = race(&plan(&["ram:1M", "null:1M"], &words), |live, _| {
        if let LiveFigures::Turn {
            lane, round, left, ..
        } = live
        {
            turns.borrow_mut().push((round, lane));
            lefts.borrow_mut().push(left);
        }
    });
    assert!(result.is_ok(), "{result:?}");
    let lanes: Vec<_> = turns.borrow()[..8].iter().map(|(_, lane)| *lane).collect();
    assert_eq!(lanes, [1, 2, 2, 1, 1, 2, 2, 1]);
    let rounds: Vec<_> = turns.borrow()[..8]
        .iter()
        .map(|(round, _)| *round)
        .collect();
    assert_eq!(rounds, [0, 0, 1, 1, 2, 2, 3, 3]);
    let warm = words.ramp;
    let turn = words.runtime / 4 * 5 / 4;
    let load = warm * 2 + turn * 8;
    let lefts = lefts.borrow();
    assert_eq!(lefts[..3], [load * 2, load * 2 - warm, load + turn * 8]);
    assert_eq!(lefts.last(), Some(&turn), "the last turn of the last load");
    assert_eq!((outcome.rows.len(), outcome.races.len()), (4, 2));
    for race in &outcome.races {
        for lane in &race.lanes {
            assert_eq!(lane.turns.len(), 4);
            let mut rows = outcome.rows.iter().filter(|row| row.load == race.load);
            let row = rows.find(|row| row.address == lane.address).unwrap();
            assert_eq!(row.series.len(), 4);
            let ios: u64 = lane.turns.iter().map(|turn| turn.ios).sum();
            assert_eq!(row.ios(), ios);
            assert_eq!(row.latency().count(), row.ios());
            assert!(row.ios() > 0 && row.cpu_us.is_some());
        }
    }
}

#[test]
fn the_first_failure_ends_it_and_is_told() {
    let plan = plan(&["ram:1M", "fault:read=0.01(ram:1M)"], &words("randread"));
    let (outcome, result) = race(&plan, |_, _| {});
    let Err(failure) = result else {
        panic!("no failure");
    };
    assert!(failure.to_string().contains("fault:"), "{failure}");
    let turns = outcome.races[0].lanes.iter().map(|lane| lane.turns.len());
    let turns: Vec<_> = turns.collect();
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().all(|turns| *turns < 4), "{turns:?}");
}

#[test]
fn who_stops_it_gets_the_turns_that_were_whole() {
    let words = FioOptions {
        runtime: Duration::from_secs(3600),
        ..words("randread")
    };
    let mut plan = plan(&["ram:1M", "ram:1M"], &words);
    plan.turn = Duration::from_millis(10);
    let (outcome, result) = race(&plan, |live, stop| {
        if let LiveFigures::Turn { lane, round, .. } = live {
            stop.fetch_or((lane, round) == (1, 3), Relaxed);
        }
    });
    assert!(result.is_ok(), "{result:?}");
    let turns = outcome.races[0].lanes.iter().map(|lane| lane.turns.len());
    assert_eq!(turns.collect::<Vec<_>>(), [2, 3]);
}
