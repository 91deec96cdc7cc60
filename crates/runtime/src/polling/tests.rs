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
        polling.arrived(now, 0, Duration::default);
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
        polling.arrived(now, 0, Duration::default);
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

/// A reactor under a load, with what it has done of it.
struct Loaded {
    polling: Polling,
    now: Duration,
    done: u64,
    busy: Duration,
}

/// How much of a load found the reactor spinning.
struct Shares {
    /// Of what arrived.
    spun: f64,
    /// Of the time.
    spinning: f64,
}

const US: Duration = Duration::from_micros(1);

/// What a command takes, and a sleep.
const WORK: Duration = Duration::from_micros(10);
const SLEEP_COST: Duration = Duration::from_micros(25);

impl Loaded {
    fn new() -> Self {
        Self {
            polling: Polling::new(PollMode::Adaptive, WORTH_SPINNING),
            now: Duration::ZERO,
            done: 0,
            busy: Duration::ZERO,
        }
    }

    /// So many times something arrives, `gap` after it was waited for: that knows how long is
    /// spun.
    fn arrivals(&mut self, count: u32, mut gap: impl FnMut(bool) -> Duration) -> Shares {
        let (begun, mut spun, mut spinning) = (self.now, 0, Duration::ZERO);
        for _ in 0..count {
            let since = self.now;
            let spins = |one: &mut Self| one.polling.timeout(one.now, SLEEP) == SPIN;
            let mut is_awake = spins(self);
            let mut end = since + gap(is_awake);
            while is_awake && self.now < end {
                self.now = end.min(self.now + 5 * US);
                if self.now < end && !spins(self) {
                    is_awake = false;
                    end = end.max(since + gap(false));
                }
            }
            spinning += self.now - since;
            self.busy += self.now - since + WORK;
            if !is_awake {
                self.busy += SLEEP_COST;
            }
            spun += u32::from(is_awake);
            self.now = end;
            self.done += 1;
            let busy = self.busy;
            self.polling.arrived(end, self.done, || busy);
            self.now += WORK;
        }
        Shares {
            spun: f64::from(spun) / f64::from(count),
            spinning: spinning.as_secs_f64() / (self.now - begun).as_secs_f64(),
        }
    }
}

/// Peers in lock-step: what is answered later comes back later, by both wakeups.
fn lock_step(spins: bool) -> Duration {
    if spins { 60 * US } else { 160 * US }
}

#[test]
fn a_reactor_spins_where_more_gets_done() {
    let mut loaded = Loaded::new();
    assert!(
        loaded.arrivals(1000, lock_step).spun > 0.5,
        "the first 0.1 s"
    );
    assert!(loaded.arrivals(100_000, lock_step).spun > 0.99);
}

#[test]
fn a_reactor_sleeps_where_no_more_gets_done() {
    let mut loaded = Loaded::new();
    loaded.arrivals(1000, |_| 120 * US);
    assert!(loaded.arrivals(100_000, |_| 120 * US).spinning < 0.01);
}

#[test]
fn arrivals_by_chance_are_seldom_taken_for_a_gain() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut loaded = Loaded::new();
    let mut gap = |_| (-120.0 * random.f64().max(1e-9).ln()) as u32 * US;
    loaded.arrivals(1000, &mut gap);
    assert!(loaded.arrivals(100_000, gap).spinning < 0.05);
}

#[test]
fn trials_that_come_to_nothing_are_seldom() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut loaded = Loaded::new();
    // About as long as is tried at all.
    let mut gap = |_| random.u32(0..300) * US;
    loaded.arrivals(1000, &mut gap);
    assert!(loaded.arrivals(100_000, gap).spinning < 0.05);
}

#[test]
fn a_reactor_does_not_spin_for_a_thousand_a_second() {
    let mut loaded = Loaded::new();
    assert!(loaded.arrivals(10_000, |_| 990 * US).spun < 1e-9);
    loaded.arrivals(10_000, lock_step);
    let shares = loaded.arrivals(10_000, |_| 990 * US);
    assert!(shares.spinning < 0.005, "after another load");
}

#[test]
fn a_reactor_does_not_spin_for_a_small_gain() {
    let mut loaded = Loaded::new();
    // Peers at their own pace, which sleeping is a little too slow for.
    let pace = |spins| if spins { 140 * US } else { 160 * US };
    loaded.arrivals(1000, pace);
    assert!(loaded.arrivals(100_000, pace).spinning < 0.01);
}

#[test]
fn a_pause_amid_a_trial_does_not_put_the_next_one_off() {
    let mut loaded = Loaded::new();
    let mut left = 200;
    let mut paused = |spins| {
        left -= 1;
        if left == 0 {
            60_000_000 * US
        } else {
            lock_step(spins)
        }
    };
    loaded.arrivals(200, &mut paused);
    assert!(loaded.arrivals(100_000, lock_step).spun > 0.5);
}

#[test]
fn a_trial_amid_noise_does_not_decide_for_long() {
    let pace = |spins| if spins { 30 * US } else { 160 * US };
    for seed in 0..100 {
        let mut loaded = Loaded::new();
        let mut random = fastrand::Rng::with_seed(seed);
        // Others have the CPUs for some milliseconds now and then, while the first trial is made.
        let disturbed = |spins| {
            let away = random.u8(..) < 8;
            pace(spins) + if away { 2000 * US } else { Duration::ZERO }
        };
        loaded.arrivals(600, disturbed);
        loaded.arrivals(10_000, pace);
        assert!(loaded.arrivals(1000, pace).spun > 0.9, "{seed}");
    }
}
