//! What spreads say, and that they do not say too much.

use super::{RatioFinding, RatioSpread, rank};

fn spread(ratios: &[f64]) -> RatioSpread {
    RatioSpread::of(ratios.to_vec()).unwrap()
}

#[test]
fn ranks_are_those_of_the_sign_test() {
    // As tables of the sign test have them, two-sided, 5 %.
    let table = [
        (0, 0),
        (1, 0),
        (5, 0),
        (6, 1),
        (8, 1),
        (9, 2),
        (12, 3),
        (20, 6),
        (25, 8),
    ];
    for (rounds, k) in table {
        assert_eq!(rank(rounds), k, "{rounds} rounds");
    }
    // Half of it, less 0.98 roots.
    assert_eq!(rank(10_000), 4_902);
}

#[test]
fn the_median_lies_in_the_middle() {
    let odd = spread(&[3.0, 1.0, 2.0]);
    assert_eq!(
        (odd.median, odd.lowest, odd.highest, odd.rounds),
        (2.0, 1.0, 3.0, 3)
    );
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
