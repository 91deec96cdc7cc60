//! Cores are added up, and a time is found again in the bucket that it fell into.

use std::time::Duration;

use super::*;

fn ticks(us: u64) -> ClockTicks {
    Now::from_micros(us).into()
}

/// Of a command that was at its volume for half of the time.
fn us(us: u64) -> CommandTime {
    let front = ticks(us);
    CommandTime {
        front,
        medium: ClockTicks(front.0 / 2),
    }
}

#[test]
fn cores_are_added_up() {
    let of_unit = UnitStatistics::default();
    of_unit.count(CoreId(0), OperationClass::Read, 8, us(10));
    of_unit.count(CoreId(63), OperationClass::Read, 1, us(30));
    of_unit.count(CoreId(64), OperationClass::Write, 2, us(5));
    of_unit.count_error(CoreId(1), OperationClass::Write, us(7));
    let totals = of_unit.totals();
    assert_eq!((totals.reads, totals.blocks_read), (2, 9));
    assert_eq!((totals.writes, totals.blocks_written), (1, 2));
    let writes = of_unit.class(OperationClass::Write);
    assert_eq!((writes.operations(), writes.errors), (2, 1));
    assert_eq!(writes.latency.sum(), Duration::from_micros(12));
    let at_medium = of_unit.medium(OperationClass::Write);
    assert_eq!(at_medium.sum(), Duration::from_micros(6));
    assert_eq!(at_medium.count(), writes.operations());
    assert_eq!(of_unit.class(OperationClass::Other), ClassCount::default());
}

#[test]
fn a_class_without_commands_has_no_memory() {
    let of_unit = UnitStatistics::default();
    of_unit.count(CoreId(3), OperationClass::Other, 0, us(1));
    let made = of_unit.cores.iter().flat_map(|core| &core.latency);
    assert_eq!(made.filter(|latency| latency.get().is_some()).count(), 1);
}

#[test]
fn each_time_is_below_the_end_of_its_bucket_and_not_far_below() {
    let ends = [
        (0, 1_000),
        (1, 1_250),
        (3, 3_500),
        (999, 1_024_000),
        (1_024, 1_280_000),
        (1 << 40, 83_886_080_000),
    ];
    for (took, end_ns) in ends {
        let of_unit = UnitStatistics::default();
        of_unit.count(CoreId(0), OperationClass::Read, 1, us(took));
        let latency = of_unit.class(OperationClass::Read).latency;
        let buckets: Vec<_> = latency.buckets().collect();
        assert_eq!(buckets, [(Duration::from_nanos(end_ns), 1)], "{took} us");
    }
    assert_eq!(Latency::default().buckets().count(), 0);
}

#[test]
fn a_coarse_histogram_has_powers_of_four_as_bounds() {
    let mut latency = CoarseLatency::default();
    let took = [0, 1, 3, 4, 15, 16, (1 << 22) - 1, 1 << 22, 1 << 40];
    took.iter().for_each(|took| latency.count(ticks(*took)));
    let counted: Vec<_> = latency.buckets().map(|(_, count)| count).collect();
    assert_eq!(counted, [1, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    let ends: Vec<_> = latency.buckets().map(|(end, _)| end.as_micros()).collect();
    assert!(ends.is_sorted() && ends.iter().all(|end| end.is_power_of_two()));
    assert_eq!((ends[0], ends[1], ends[11]), (1, 4, 1 << 22));
    assert_eq!(latency.operations(), took.len() as u64);

    let mut sum = latency;
    sum.add(&latency);
    assert_eq!(sum.operations(), 2 * latency.operations());
}

#[test]
fn powers_of_two_are_exact_bounds() {
    let of_unit = UnitStatistics::default();
    for took in [0, 1, 3, 4, 63, 64, 1 << 26] {
        of_unit.count(CoreId(0), OperationClass::Other, 0, us(took));
    }
    let latency = of_unit.class(OperationClass::Other).latency;
    for (octave, below) in [(0, 1), (2, 3), (6, 5), (26, 6)] {
        let bound = Duration::from_micros(1 << octave);
        let within = latency.buckets().take_while(|(end, _)| *end <= bound);
        assert_eq!(
            within.map(|(_, count)| count).sum::<u64>(),
            below,
            "{octave}"
        );
    }
}
