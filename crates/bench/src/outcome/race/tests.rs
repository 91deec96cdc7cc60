//! Verdicts in words.

use super::{Contender, Quantity, Race, TurnResult};
use crate::outcome::spread::RatioFinding;
use crate::outcome::{AccessOrder, DataDirection, Load};

const LOAD: Load = Load {
    direction: DataDirection::Read,
    order: AccessOrder::Random,
    block_bytes: 4096,
    depth: 8,
    jobs: 1,
};

/// Turns of a second with so many I/Os, each of which took so long.
fn lane(address: &str, ios: &[u64], cpu_us: Option<u64>) -> Contender {
    let turn = |&ios: &u64| TurnResult {
        runtime_us: 1_000_000,
        ios,
        bytes: ios * 4096,
        cpu_us: cpu_us.map(|us| us * ios),
        target_cpu_us: None,
    };
    Contender {
        address: address.to_owned(),
        turns: ios.iter().map(turn).collect(),
        losses: None,
    }
}

fn race(first: Contender, second: Contender) -> Race {
    Race {
        load: LOAD,
        lanes: vec![first, second],
    }
}

const STEADY: [u64; 8] = [1000, 1010, 990, 1000, 1005, 995, 1000, 1000];

#[track_caller]
fn says(race: &Race, expected: &str) {
    assert_eq!(race.verdict(&race.lanes[1]), expected);
}

#[test]
fn faster_and_slower_are_said_with_what_they_cost() {
    let fast = STEADY.map(|ios| ios * 3 / 2);
    let race_of = |a: &[u64], b: &[u64]| race(lane("a", a, Some(10)), lane("b", b, Some(20)));
    says(
        &race_of(&STEADY, &fast),
        "b is faster than a: 1.50 times its IOPS (1.50 to 1.50); CPU time per I/O of this process: \
         more, 2.00 times (2.00 to 2.00)",
    );
    says(
        &race_of(&fast, &STEADY),
        "b is slower than a: 0.67 times its IOPS (0.67 to 0.67); CPU time per I/O of this process: \
         more, 2.00 times (2.00 to 2.00)",
    );
}

#[test]
fn what_chance_would_do_is_no_difference() {
    let mut other = STEADY;
    other.reverse();
    says(
        &race(lane("a", &STEADY, None), lane("b", &other, None)),
        "b and a: no significant difference in speed, 0.99 to 1.01 times the IOPS",
    );
}

#[test]
fn a_drift_that_hits_both_is_no_difference() {
    let drift = [1000, 800, 600, 500, 400, 300, 200, 100];
    let wobble = [1010, 792, 606, 495, 404, 297, 202, 99];
    let race = race(lane("a", &drift, None), lane("b", &wobble, None));
    let spread = race.ratio(&race.lanes[1], Quantity::Iops).unwrap();
    assert_eq!(spread.finding(), RatioFinding::Level);
    assert!(spread.lowest > 0.98 && spread.highest < 1.02, "{spread:?}");
}

#[test]
fn too_few_rounds_and_empty_turns_are_no_verdict() {
    says(
        &race(lane("a", &STEADY[..3], None), lane("b", &[9000; 3], None)),
        "b: 3 rounds are too few for a comparison: give a longer --runtime or a shorter --turn",
    );
    let mut stuck = STEADY;
    stuck[4] = 0;
    says(
        &race(lane("a", &stuck, None), lane("b", &STEADY, None)),
        "b: no comparison, because some turns completed no I/O: give a longer --turn",
    );
}

#[test]
fn one_round_is_too_few() {
    says(
        &race(lane("a", &STEADY[..1], None), lane("b", &[9000; 1], None)),
        "b: 1 round is too few for a comparison: give a longer --runtime or a shorter --turn",
    );
}

#[test]
fn a_file_has_counts_and_verdict_and_is_read_again() {
    let race = race(lane("a", &STEADY, Some(10)), lane("b", &STEADY, Some(10)));
    let json = serde_json::to_value(&race).unwrap();
    assert_eq!(json["against_first"][0]["iops"]["median"], 1.0);
    assert_eq!(
        json["against_first"][0]["verdict"],
        race.verdict(&race.lanes[1])
    );
    let again: Race = serde_json::from_value(json).unwrap();
    assert_eq!(again.lanes[0].turns, race.lanes[0].turns);
}
