use super::{Measured, slowest_fastest};

#[test]
fn the_session_furthest_off_the_mean_counts() {
    let of = |done: &[u64]| Measured {
        slowest_fastest: slowest_fastest(done),
        ..Measured::default()
    };
    let slow = of(&[100, 100, 50, 110, 140]);
    assert_eq!(slow.slowest_fastest, (0.5, 1.4));
    assert_eq!(slow.unfairness(), 0.5);
    assert_eq!(of(&[5]).unfairness(), 0.0);
}

#[test]
fn who_never_slept_has_no_ios_a_sleep() {
    let with = |sleeps| Measured {
        iops: 1000.0,
        target_sleeps: sleeps,
        ..Measured::default()
    };
    let cases = [(None, None), (Some(0.0), None), (Some(10.0), Some(100.0))];
    for (sleeps, expected) in cases {
        assert_eq!(with(sleeps).ios_a_sleep(), expected);
    }
}
