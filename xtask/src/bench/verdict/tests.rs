use super::*;

/// A column with rounds of so many microseconds of CPU, at 100,000 IOPS.
fn column(who: Who, rounds: &[f64]) -> Column {
    let round = |cpu_us: &f64| Measured {
        iops: 1e5,
        target_load: Some(cpu_us / 10.0),
        p50_us: cpu_us * 2.0,
        p99_us: cpu_us * 4.0,
        slowest_fastest: (0.9375, 1.0),
        ..Measured::default()
    };
    let rounds = rounds.iter().map(round).collect();
    Column { who, rounds }
}

#[test]
fn the_round_in_the_middle_counts() {
    let spread = column(Who::Lunar, &[3.0, 1.0, 2.0]).spread(Measured::cpu_us);
    let expected = Spread {
        min: 1.0,
        median: 2.0,
        max: 3.0,
    };
    assert_eq!(spread, Some(expected));
    assert_eq!(column(Who::Lunar, &[]).spread(Measured::cpu_us), None);
}

#[test]
fn each_requirement_holds_on_one_side_of_its_limit() {
    let columns = [
        column(Who::Lunar, &[2.0]),
        column(Who::Floor, &[1.6]),
        column(Who::Tgtd, &[20.0]),
        column(Who::Digests, &[1.0]),
    ];
    for (want, good) in [
        (Want::Cpu(Who::Floor, 1.25), true),
        (Want::Cpu(Who::Floor, 1.24), false),
        (Want::Beyond(Who::Digests, Who::Floor, 0.625), true),
        (Want::Beyond(Who::Digests, Who::Floor, 0.62), false),
        (Want::TimesLess(Who::Tgtd, 10.0), true),
        (Want::TimesLess(Who::Tgtd, 10.1), false),
        (Want::Time(Who::Floor, 1.25), true),
        (Want::Time(Who::Floor, 1.2), false),
        (Want::P50(4.0), true),
        (Want::P50(3.9), false),
        (Want::P99(8.0), true),
        (Want::P99(7.9), false),
        (Want::Fair(0.0625), true),
        (Want::Fair(0.06), false),
    ] {
        let verdict = want.judge(&columns).map(|verdict| verdict.good);
        assert_eq!(verdict, Some(good), "{want:?}");
    }
}

#[test]
fn who_was_not_measured_is_no_measure() {
    let columns = [column(Who::Lunar, &[2.0]), column(Who::Floor, &[])];
    assert_eq!(Want::Cpu(Who::Floor, 1.0).judge(&columns), None);
    assert_eq!(Want::Cpu(Who::Tgtd, 1.0).judge(&columns), None);
}

#[test]
fn a_verdict_tells_figure_and_limit() {
    let columns = [column(Who::Lunar, &[2.0]), column(Who::Floor, &[1.6])];
    let verdict = Want::Cpu(Who::Floor, 1.2).judge(&columns).unwrap();
    let expected = "MISSED  1.25 times the CPU an I/O of floor, required 1.2";
    assert_eq!(verdict.to_string(), expected);
}
