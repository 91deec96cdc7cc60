//! When a core spins in place of sleeping.

use std::time::Duration;

use scsi::medium::Now;

use super::options::PollMode;

/// Decides before each wait for how long the ring may sleep.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    mode: PollMode,
    /// When something last arrived.
    last: Now,
    /// How long it takes, on average, until something arrives.
    gap: Duration,
}

/// Waking a sleeping thread takes a few microseconds on bare metal and some twenty in a virtual
/// machine; spinning for longer than that costs more than it saves.
const WORTH_SPINNING: Duration = Duration::from_micros(25);

impl Polling {
    pub(super) fn new(mode: PollMode) -> Self {
        Self {
            mode,
            last: Duration::ZERO,
            gap: Duration::MAX,
        }
    }

    /// For how long to wait, at most `patience`.
    pub(super) fn timeout(&self, now: Now, patience: Option<Duration>) -> Option<Duration> {
        let spin = match self.mode {
            PollMode::Never => false,
            PollMode::Always => true,
            PollMode::Adaptive => {
                self.gap < WORTH_SPINNING && now.saturating_sub(self.last) < WORTH_SPINNING
            }
        };
        if spin { Some(Duration::ZERO) } else { patience }
    }

    /// Tells whether anything had arrived by `now`.
    pub(super) fn waited(&mut self, now: Now, busy: bool) {
        if busy {
            let gap = now.saturating_sub(self.last);
            self.gap = (self.gap.min(4 * WORTH_SPINNING) * 7 + gap.min(4 * WORTH_SPINNING)) / 8;
            self.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
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
}
