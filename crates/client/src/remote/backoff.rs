//! Reconnect policy: exponential backoff with jitter.

use std::time::Duration;

use scsi::medium::Now;

use super::SessionEnvironment;

/// When to try again.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Since when there is no session.
    pub(super) since: Option<Now>,
    /// Not before this.
    pub(super) next: Option<Now>,
    pub(super) failed: u32,
    /// How often in turn the target has sent us elsewhere.
    pub(super) redirections: u8,
}

/// How often a target may send us elsewhere in turn.
pub(super) const REDIRECTIONS: u8 = 4;

/// The pause after the first attempt that failed; it doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(4);

impl Backoff {
    /// An attempt or its session has failed, and the target asks for no new one before `wait`.
    pub(super) fn fail(&mut self, now: Now, wait: Duration, outside: SessionEnvironment) {
        self.since.get_or_insert(now);
        let pause = PAUSE.saturating_mul(1 << self.failed.min(16)).min(LONGEST);
        self.failed += 1;
        let mut chance = [0; 1];
        // Without randomness the pause only has less jitter.
        let _ = (outside.random)(&mut chance);
        let pause = pause.mul_f64(0.5 + f64::from(chance[0]) / 512.0);
        self.next = Some(now + pause.max(wait));
    }

    /// When commands that wait for a session fail.
    pub(super) fn limit(&self, replacement: Duration) -> Option<Now> {
        self.since.map(|since| since.saturating_add(replacement))
    }
}
