//! What is said of a copy and of a measurement, event after event.

use std::time::{Duration, Instant};

use bench::LiveFigures;
use bench::outcome::{AccessOrder, DataDirection, Load};
use client::pair::CopyProgress;

use super::{Speed, StatusLine};

const MIB: u64 = 1 << 20;

#[test]
fn holes_are_no_speed_and_no_time() {
    let begin = Instant::now();
    let mut speed = Speed::new(begin);
    let mut progress = CopyProgress {
        total: 1024 * MIB,
        before: 100 * MIB,
        ..CopyProgress::default()
    };
    assert_eq!(
        speed.look(begin + Duration::from_millis(1), &progress),
        None
    );
    progress.data = 20 * MIB;
    let said = speed.look(begin + Duration::from_secs(1), &progress);
    assert_eq!(said.as_deref(), Some("20.0 MiB/s  at most 45s left"));
    progress.data = 40 * MIB;
    progress.holes = 864 * MIB;
    let said = speed.look(begin + Duration::from_secs(2), &progress);
    assert_eq!(said.as_deref(), Some("20.0 MiB/s  at most 1s left"));
}

const LOAD: Load = Load {
    direction: DataDirection::Read,
    order: AccessOrder::Random,
    block_bytes: 4096,
    depth: 32,
    jobs: 1,
};

/// The lines of these events, each a quarter of a second after the one before.
fn lines(lives: &[LiveFigures]) -> Vec<String> {
    let mut line = StatusLine::new(Duration::from_secs(10));
    let mut now = Instant::now();
    let text = |live: &LiveFigures| {
        now += Duration::from_millis(250);
        line.note(*live, now);
        line.text(*live, now)
    };
    lives.iter().map(text).collect()
}

const fn turn(lane: usize, round: u32, left: u64) -> LiveFigures {
    LiveFigures::Turn {
        lane,
        round,
        rounds: 20,
        left: Duration::from_secs(left),
    }
}

const fn measure(iops: f64, mb_per_s: f64) -> LiveFigures {
    LiveFigures::Measure {
        elapsed: Duration::from_secs(3),
        iops,
        mb_per_s,
    }
}

#[test]
fn a_measurement_tells_its_time_and_rate() {
    let told = lines(&[
        LiveFigures::Begin(LOAD),
        LiveFigures::Meet,
        LiveFigures::Ramp,
        measure(348_182.4, 1_426.1),
        LiveFigures::Drain,
    ]);
    let expected = [
        "randread 4k  connecting",
        "randread 4k  connecting",
        "randread 4k  warming up",
        "randread 4k  3 of 10 s  348,182 IOPS  1,426 MB/s",
        "randread 4k  waiting for I/O in flight",
    ];
    assert_eq!(told, expected);
}

/// A turn is as short as two lines, so that its figure stays until the next one has its own.
#[test]
fn a_race_always_has_a_figure_and_the_time_left() {
    let told = lines(&[
        LiveFigures::Begin(LOAD),
        turn(1, 0, 30),
        turn(1, 1, 28),
        measure(100_000.0, 409.6),
        turn(2, 1, 27),
        LiveFigures::Ramp,
        measure(50_000.0, 204.8),
    ]);
    let expected = [
        "randread 4k  connecting",
        "randread 4k  warming up address 1  30 s left",
        "randread 4k  round 1 of 20  28 s left",
        "randread 4k  round 1 of 20  address 1: 100,000 IOPS  409.6 MB/s  28 s left",
        "randread 4k  round 1 of 20  address 1: 100,000 IOPS  409.6 MB/s  27 s left",
        "randread 4k  round 1 of 20  address 1: 100,000 IOPS  409.6 MB/s  27 s left",
        "randread 4k  round 1 of 20  address 2: 50,000 IOPS  204.8 MB/s  27 s left",
    ];
    assert_eq!(told, expected);
}
