use bench::outcome::RunResult;

use super::*;

/// What `lunar bench --json` prints of a read of 4 KiB, with so many I/Os a row.
fn printed(ios: &[u64]) -> Vec<ResultRow> {
    let row = |ios: &u64| {
        format!(
            r#"{{"address": "iscsi://host/iqn/0", "load": {{"direction": "read", "order": "random",
            "block_bytes": 4096, "depth": 32, "jobs": 1}}, "runtime_us": 2000000, "cpu_us": 300,
            "target_cpu_us": 600, "series": [], "reads": {{"ios": {ios}, "bytes": 0, "errors": 0,
            "latency": {{"buckets_ns": [[10000, 98], [50000, 2]]}}}}, "writes": {{"ios": 0,
            "bytes": 0, "errors": 0, "latency": {{"buckets_ns": []}}}}}}"#
        )
    };
    let rows: Vec<_> = ios.iter().map(row).collect();
    let text = format!(
        r#"{{"words": "bench", "begin_unix_s": 0, "machine": {{"host": "", "processor": "",
        "cores": 2, "memory_bytes": 0, "kernel": "", "version": ""}}, "rows": [{}]}}"#,
        rows.join(",")
    );
    serde_json::from_str::<RunResult>(&text).unwrap().rows
}

#[test]
fn what_lunar_prints_is_understood() {
    let figures = Figures::of(&printed(&[100])[0]);
    assert_eq!(figures.iops, 50.0);
    assert_eq!(figures.target_us, Some(6.0));
    assert_eq!(figures.generator_us, Some(3.0));
    // Latencies are within 1 %.
    assert!((figures.p50_us - 10.0).abs() < 0.1, "{figures:?}");
    assert!((figures.p99_us - 50.0).abs() < 0.5, "{figures:?}");
}

#[test]
fn the_session_furthest_off_the_mean_counts() {
    let of = |done: &[u64]| Figures::default().with_sessions(&printed(done)).unfairness;
    assert_eq!(of(&[100, 100, 50, 110, 140]), Some(0.5));
    assert_eq!(of(&[100, 100]), Some(0.0));
    assert_eq!(of(&[]), None);
}

#[test]
fn the_round_in_the_middle_counts() {
    let column = |rounds: &[f64]| Column {
        contender: Contender::Lunar,
        rounds: rounds
            .iter()
            .map(|target_us| Figures {
                target_us: Some(*target_us),
                ..Figures::default()
            })
            .collect(),
    };
    let spread = column(&[3.0, 1.0, 2.0]).spread(|round| round.target_us);
    assert_eq!(spread, Some((1.0, 2.0, 3.0)));
    assert_eq!(column(&[]).spread(|round| round.target_us), None);
}
