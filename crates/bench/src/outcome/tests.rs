//! What latencies and spreads say, and that they do not say too much.

use super::Latency;
use super::spread::{RatioFinding, RatioSpread, rank};

fn of(latencies_ns: impl IntoIterator<Item = u64>) -> Latency {
    let mut latency = Latency::default();
    latencies_ns.into_iter().for_each(|ns| latency.record(ns));
    latency
}

/// Within the 1 % that is promised.
#[track_caller]
fn near(told: u64, true_value: u64) {
    let off = told.abs_diff(true_value) as f64 / true_value as f64;
    assert!(off < 0.01, "{told} instead of {true_value}");
}

#[test]
fn percentiles_are_near_what_was_measured() {
    let latency = of((1..=100_000).map(|us| us * 1_000));
    assert_eq!(latency.count(), 100_000);
    near(latency.min_ns(), 1_000);
    near(latency.percentile_ns(50.0), 50_000_000);
    near(latency.percentile_ns(99.9), 99_900_000);
    near(latency.max_ns(), 100_000_000);
    near(latency.mean_ns() as u64, 50_000_500);
}

#[test]
fn nothing_measured_is_all_zeros() {
    let none = Latency::default();
    assert_eq!((none.count(), none.min_ns(), none.max_ns()), (0, 0, 0));
    assert_eq!((none.mean_ns(), none.percentile_ns(99.0)), (0.0, 0));
}

#[test]
fn hours_count_as_one_hour() {
    near(of([u64::MAX]).max_ns(), 3_600_000_000_000);
}

#[test]
fn jobs_add_up() {
    let mut sum = of([10_000, 20_000]);
    sum.add(&of([30_000_000]));
    assert_eq!(sum, of([10_000, 20_000, 30_000_000]));
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    let latency = of((0..1_000).map(|n| n * n * 137 + 90));
    let text = serde_json::to_string(&latency).unwrap();
    let again: Latency = serde_json::from_str(&text).unwrap();
    assert_eq!(again, latency);
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}

fn spread(ratios: &[f64]) -> RatioSpread {
    RatioSpread::of(ratios.to_vec()).unwrap()
}

#[test]
fn ranks_are_those_of_the_sign_test() {
    // As tables of the sign test have them, two-sided, 5 %.
    let rounds = [0, 1, 5, 6, 8, 9, 12, 20, 25];
    assert_eq!(rounds.map(rank), [0, 0, 0, 1, 1, 2, 3, 6, 8]);
    // Half of it, less 0.98 roots.
    assert_eq!(rank(10_000), 4_902);
}

#[test]
fn the_median_lies_in_the_middle() {
    let odd = spread(&[3.0, 1.0, 2.0]);
    let told = (odd.median, odd.lowest, odd.highest, odd.rounds);
    assert_eq!(told, (2.0, 1.0, 3.0, 3));
    assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
    assert_eq!(RatioSpread::of(Vec::new()), None);
}

#[test]
fn few_rounds_say_nothing_however_clear_they_look() {
    assert_eq!(spread(&[2.0; 5]).finding(), RatioFinding::Unknown);
    assert_eq!(spread(&[2.0; 6]).finding(), RatioFinding::More);
    assert_eq!(spread(&[0.5; 6]).finding(), RatioFinding::Less);
}

#[test]
fn one_disturbed_round_changes_little() {
    let mut ratios = [1.1; 20];
    ratios[7] = 0.01;
    assert_eq!(spread(&ratios).finding(), RatioFinding::More);
    assert_eq!(spread(&ratios).sure, Some((1.1, 1.1)));
}

#[test]
fn of_two_that_are_alike_a_difference_is_claimed_in_one_of_twenty_races_at_most() {
    let mut random = fastrand::Rng::with_seed(1);
    // Long tails on both sides, as of a machine that others use too.
    let mut noise = || f64::from(random.u32(1..=1_000)) / f64::from(random.u32(1..=1_000));
    let races = 2_000;
    let claims = (0..races)
        .map(|_| spread(&(0..20).map(|_| noise()).collect::<Vec<_>>()))
        .filter(|spread| spread.finding() != RatioFinding::Level)
        .count();
    assert!(claims > 0 && claims * 20 <= races, "{claims} of {races}");
}
