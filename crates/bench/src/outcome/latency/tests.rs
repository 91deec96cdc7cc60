use super::Latency;

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
