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
mod tests;
