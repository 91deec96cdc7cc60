use super::*;

/// A column of one round: IOPS, CPU and p50 in microseconds.
fn column(contender: Contender, iops: f64, cpu_us: f64, p50_us: f64) -> Column {
    let round = Figures {
        iops,
        target_us: Some(cpu_us),
        p50_us,
        ..Figures::default()
    };
    Column {
        contender,
        rounds: vec![round],
    }
}

/// Whether each requirement is reached, beside a target of 100,000 IOPS that takes a core.
fn reached(depth: u32, client: LoadClient, lunar: (f64, f64), spinning_p50_us: f64) -> Vec<bool> {
    let (iops, cpu_us) = lunar;
    let columns = [
        column(OTHER, 1e5, 10.0, 20.0),
        column(Contender::Lunar, iops, cpu_us, 500.0),
        column(Contender::Spinning, 1.0, 500.0, spinning_p50_us),
    ];
    let verdicts = judge(depth, client, &columns);
    verdicts.iter().map(|verdict| verdict.good).collect()
}

#[test]
fn at_depth_1_iops_count_where_the_client_sleeps_and_p50_with_poll_always() {
    use LoadClient::{Sleeping, Spinning};
    assert_eq!(reached(1, Sleeping, (9e4, 50.0), 20.0), [true, true]);
    assert_eq!(reached(1, Sleeping, (8.9e4, 50.0), 20.1), [false, false]);
    assert_eq!(reached(1, Spinning, (1e4, 50.0), 20.0), [true]);
    assert_eq!(reached(1, Spinning, (1e6, 1.0), 20.1), [false]);
}

#[test]
fn at_depth_32_one_that_sleeps_a_third_of_the_time_may_have_a_tenth_less_iops() {
    for client in LoadClient::ALL {
        assert_eq!(reached(32, client, (1e5, 8.5), 99.0), [true, true]);
        assert_eq!(reached(32, client, (9.9e4, 8.6), 99.0), [false, false]);
        // 0.666 of a core, then 0.675.
        assert_eq!(reached(32, client, (9e4, 7.4), 99.0), [true, true]);
        assert_eq!(reached(32, client, (9e4, 7.5), 99.0), [false, true]);
        assert_eq!(reached(32, client, (8.9e4, 7.0), 99.0), [false, true]);
    }
}

#[test]
fn at_depth_128_only_the_cpu_counts() {
    for client in LoadClient::ALL {
        assert_eq!(reached(128, client, (1e4, 7.0), 99.0), [true]);
        assert_eq!(reached(128, client, (1e6, 7.1), 1.0), [false]);
    }
}

#[test]
fn a_target_without_cpu_time_is_not_judged_by_it() {
    let mut other = column(OTHER, 1e5, 10.0, 20.0);
    other.rounds[0].target_us = None;
    let columns = [other, column(Contender::Lunar, 1e5, 7.0, 20.0)];
    assert!(judge(128, LoadClient::Spinning, &columns).is_empty());
}
