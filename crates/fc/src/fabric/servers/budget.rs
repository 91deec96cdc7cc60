//! How much a port may ask.
//!
//! A port that joins a large fabric asks once for all ports and once for each, and is silent then.
//! One that never stops would hold the core on which logins are made, so what it asks is counted in
//! time, and rejected as "busy" while it has used up more than its share.

use std::time::Duration;

use scsi::medium::Now;

/// What a port may still ask: a token bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestBudget {
    /// When it is full again.
    full_at: Now,
}

impl RequestBudget {
    /// Takes what a request costs, if there is something left.
    pub(super) fn take(&mut self, now: Now) -> bool {
        let may_ask = self.full_at < now + BURST;
        if may_ask {
            self.full_at = self.full_at.max(now) + REQUEST;
        }
        may_ask
    }

    /// Takes what a request has cost besides, in ports, entries or 64 bytes that were looked at.
    pub(super) fn charge(&mut self, steps: usize) {
        self.full_at += STEP * u32::try_from(steps).unwrap_or(u32::MAX);
    }
}

/// 4,000 requests a second, and 8,000 at once: GFF_ID of as many ports as a fabric has.
const REQUEST: Duration = Duration::from_micros(250);

/// 64,000 ports looked at in a second.
const STEP: Duration = Duration::from_micros(16);

/// What may be used up at once.
const BURST: Duration = Duration::from_secs(2);
