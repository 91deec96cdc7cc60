use std::time::{Duration, Instant};

use client::pair::CopyProgress;

use super::Speed;

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
