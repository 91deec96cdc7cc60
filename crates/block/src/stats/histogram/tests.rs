//! Where numbers fall.

use super::*;

#[test]
fn buckets_follow_each_other_without_a_gap() {
    assert_eq!((bucket(0), last_of(0)), (0, 0));
    for at in 1..BUCKETS {
        let first = last_of(at - 1) + 1;
        assert_eq!(bucket(first), at, "{first}");
        assert_eq!(bucket(last_of(at)), at, "{at}");
        let width = last_of(at) - first;
        assert!(width <= first / 16, "{first} to {}", last_of(at));
    }
    assert_eq!(last_of(BUCKETS - 1), u64::MAX);
}

#[test]
fn percentiles_are_not_exceeded() {
    let counting = SharedHistogram::default();
    for micros in 1..=1000 {
        counting.note(Duration::from_micros(micros));
    }
    let mut all = Histogram::default();
    assert_eq!(all.percentile(0.5), None);
    counting.add_to(&mut all);
    assert_eq!(all.count(), 1000);
    for (share, micros) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
        let found = all.percentile(share).unwrap();
        let exact = Duration::from_micros(micros);
        assert!(
            found >= exact && found <= exact * 17 / 16,
            "{share}: {found:?}"
        );
    }
}
