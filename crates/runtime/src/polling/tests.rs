use std::time::Duration;

use super::{OF_A_SERVER as WORTH_SPINNING, PollMode, Polling};

const SLEEP: Option<Duration> = Some(Duration::from_secs(30));
const SPIN: Option<Duration> = Some(Duration::ZERO);

/// A reactor that was idle for so long, a hundred times; and the time.
fn after_idling(mode: PollMode, idle: Duration) -> (Polling, Duration) {
    let mut polling = Polling::new(mode, WORTH_SPINNING);
    let mut now = Duration::ZERO;
    for _ in 0..100 {
        polling.timeout(now, SLEEP);
        now += idle;
        polling.arrived(now);
        now += Duration::from_millis(1);
    }
    (polling, now)
}

#[test]
fn a_busy_reactor_spins_until_it_no_longer_pays() {
    let (mut polling, now) = after_idling(PollMode::Adaptive, Duration::from_micros(5));
    assert_eq!(polling.timeout(now, SLEEP), SPIN);
    assert_eq!(polling.timeout(now + WORTH_SPINNING, SLEEP), SLEEP);
}

#[test]
fn a_reactor_with_little_to_do_sleeps() {
    let (mut polling, now) = after_idling(PollMode::Adaptive, 2 * WORTH_SPINNING);
    assert_eq!(polling.timeout(now, SLEEP), SLEEP);
}

#[test]
fn a_new_reactor_sleeps() {
    let mut polling = Polling::new(PollMode::Adaptive, WORTH_SPINNING);
    assert_eq!(polling.timeout(Duration::ZERO, SLEEP), SLEEP);
}

#[test]
fn never_and_always_are_what_they_say() {
    let (mut polling, now) = after_idling(PollMode::Never, Duration::from_micros(1));
    assert_eq!(polling.timeout(now, None), None);
    let mut polling = Polling::new(PollMode::Always, WORTH_SPINNING);
    assert_eq!(polling.timeout(now, None), SPIN);
}

#[test]
fn who_spun_in_vain_a_few_times_sleeps() {
    let (mut polling, mut now) = after_idling(PollMode::Adaptive, Duration::ZERO);
    for _ in 0..3 {
        polling.timeout(now, SLEEP);
        now += WORTH_SPINNING;
        polling.timeout(now, SLEEP);
        polling.arrived(now);
    }
    assert_eq!(polling.timeout(now, SLEEP), SLEEP);
}

#[test]
fn what_a_sleep_is_late_does_not_count() {
    let (mut polling, now) = after_idling(PollMode::Adaptive, WORTH_SPINNING * 5 / 4);
    assert_eq!(polling.timeout(now, SLEEP), SPIN);
}

#[test]
fn a_reactor_does_not_spin_where_its_time_is_rationed() {
    let within = |mode: PollMode, quota, threads| mode.within(quota, threads);
    assert_eq!(within(PollMode::Adaptive, Some(0.5), 1), PollMode::Never);
    assert_eq!(within(PollMode::Adaptive, Some(2.0), 4), PollMode::Never);
    assert_eq!(within(PollMode::Adaptive, Some(2.0), 2), PollMode::Adaptive);
    assert_eq!(within(PollMode::Adaptive, None, 64), PollMode::Adaptive);
    assert_eq!(within(PollMode::Always, Some(0.5), 1), PollMode::Always);
}
