use std::time::Duration;

use super::{Polling, WORTH_SPINNING};
use crate::serve::options::PollMode;

const SLEEP: Option<Duration> = Some(Duration::from_secs(30));
const SPIN: Option<Duration> = Some(Duration::ZERO);

fn after_events(mode: PollMode, gap: Duration) -> (Polling, Duration) {
    let mut polling = Polling::new(mode);
    for number in 0..100 {
        polling.waited(gap * number, true);
    }
    (polling, gap * 99)
}

#[test]
fn a_busy_core_spins_until_it_no_longer_pays() {
    let (polling, now) = after_events(PollMode::Adaptive, Duration::from_micros(5));
    assert_eq!(polling.timeout(now, SLEEP), SPIN);
    assert_eq!(polling.timeout(now + WORTH_SPINNING, SLEEP), SLEEP);
}

#[test]
fn a_core_with_little_to_do_sleeps() {
    let (polling, now) = after_events(PollMode::Adaptive, Duration::from_micros(200));
    assert_eq!(polling.timeout(now, SLEEP), SLEEP);
}

#[test]
fn never_and_always_are_what_they_say() {
    let (polling, now) = after_events(PollMode::Never, Duration::from_micros(1));
    assert_eq!(polling.timeout(now, None), None);
    let polling = Polling::new(PollMode::Always);
    assert_eq!(polling.timeout(now, None), SPIN);
}
