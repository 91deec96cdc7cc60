use super::*;

/// A column with rounds of so many microseconds of CPU, at 100,000 IOPS.
fn column(contender: Contender, rounds: &[f64]) -> Column {
    let round = |cpu_us: &f64| Figures {
        iops: 1e5,
        target_us: Some(*cpu_us),
        p50_us: cpu_us * 2.0,
        p99_us: cpu_us * 4.0,
        unfairness: Some(0.0625),
        ..Figures::default()
    };
    let rounds = rounds.iter().map(round).collect();
    Column { contender, rounds }
}

#[test]
fn each_requirement_holds_on_one_side_of_its_limit() {
    let columns = [
        column(Contender::Lunar, &[2.0]),
        column(Contender::Floor, &[1.6]),
        column(Contender::Tgtd, &[20.0]),
        column(Contender::Digests, &[1.0]),
    ];
    for (want, good) in [
        (Want::Cpu(Contender::Floor, 1.25), true),
        (Want::Cpu(Contender::Floor, 1.24), false),
        (
            Want::Beyond(Contender::Digests, Contender::Floor, 0.625),
            true,
        ),
        (
            Want::Beyond(Contender::Digests, Contender::Floor, 0.62),
            false,
        ),
        (Want::TimesLess(Contender::Tgtd, 10.0), true),
        (Want::TimesLess(Contender::Tgtd, 10.1), false),
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
fn a_contender_that_was_not_measured_is_no_measure() {
    let columns = [
        column(Contender::Lunar, &[2.0]),
        column(Contender::Floor, &[]),
    ];
    assert_eq!(Want::Cpu(Contender::Floor, 1.0).judge(&columns), None);
    assert_eq!(Want::Cpu(Contender::Tgtd, 1.0).judge(&columns), None);
}

#[test]
fn a_verdict_tells_figure_and_limit() {
    let columns = [
        column(Contender::Lunar, &[2.0]),
        column(Contender::Floor, &[1.6]),
    ];
    let verdict = Want::Cpu(Contender::Floor, 1.2).judge(&columns).unwrap();
    let expected = "MISSED  1.25 times the CPU an I/O of floor, required 1.2";
    assert_eq!(verdict.to_string(), expected);
}
