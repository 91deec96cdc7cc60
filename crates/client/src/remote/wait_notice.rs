//! Notices to a user while a target does not answer.

use std::time::{Duration, Instant};

/// Tells once in the log what is waited for, when that takes a while.
#[derive(Debug)]
pub(crate) struct WaitNotice {
    awaited: String,
    since: Instant,
    is_told: bool,
}

/// Where nothing is wrong, each step takes milliseconds; a person begins to wonder about now.
const SILENCE: Duration = Duration::from_secs(3);

impl WaitNotice {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            awaited: String::new(),
            since: now,
            is_told: false,
        }
    }

    /// This is waited for now.
    pub(crate) fn wait(&mut self, now: Instant, awaited: String) {
        if let Some(line) = self.line(now, awaited) {
            tracing::info!("{line}");
        }
    }

    fn line(&mut self, now: Instant, awaited: String) -> Option<String> {
        if self.awaited != awaited {
            (self.awaited, self.since, self.is_told) = (awaited, now, false);
        }
        if self.is_told || now.duration_since(self.since) < SILENCE {
            return None;
        }
        self.is_told = true;
        Some(format!("waiting for {}", self.awaited))
    }

    /// How long until there is something to tell, if nothing happens.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = SILENCE.saturating_sub(now.duration_since(self.since));
        (!self.is_told).then_some(left)
    }
}

#[cfg(test)]
mod tests;
