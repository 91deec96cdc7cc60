//! Rests between logins that an FCF ends again and again: exponential backoff.

use std::time::Duration;

use scsi::medium::Now;

/// How long the last logins have lasted.
#[derive(Debug, Default)]
pub(super) struct LoginBackoff {
    /// When the login began, while there is one.
    since: Option<Now>,
    /// Logins in a row that an FCF has ended soon.
    short: u32,
}

impl LoginBackoff {
    pub(super) const fn begun(&mut self, now: Now) {
        self.since = Some(now);
    }

    /// An FCF has ended a login, or it was of no use. Returns for how long no other one is made.
    pub(super) fn ended(&mut self, now: Now) -> Option<Duration> {
        let since = self.since.take()?;
        if now.saturating_sub(since) >= LASTING {
            self.short = 0;
            return None;
        }
        self.short += 1;
        let doublings = self.short.checked_sub(AT_ONCE + 1)?;
        Some((FIRST_REST * (1 << doublings.min(8))).min(LONGEST_REST))
    }

    /// Whether logins come and go so often that they are no news.
    pub(super) const fn is_flapping(&self) -> bool {
        self.short > AT_ONCE
    }

    /// Whether they have begun to just now.
    pub(super) const fn begins_to_flap(&self) -> bool {
        self.short == AT_ONCE + 1
    }

    /// When a login after those will have lasted.
    pub(super) fn settles_at(&self) -> Option<Now> {
        let since = self.since.filter(|_| self.is_flapping())?;
        Some(since.saturating_add(LASTING))
    }

    /// Whether one has.
    pub(super) fn has_settled(&mut self, now: Now) -> bool {
        let has_settled = self.settles_at().is_some_and(|at| at <= now);
        if has_settled {
            self.short = 0;
        }
        has_settled
    }
}

/// A login that lasts as long is none that is ended soon.
const LASTING: Duration = Duration::from_secs(10);

/// So many short logins are followed by the next one at once: a switch that is restarted may clear
/// links twice.
const AT_ONCE: u32 = 2;

/// After the next one, doubled each time.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(10);
