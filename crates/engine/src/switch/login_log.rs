//! How much a switch logs: a station can log in and out as often as it likes.

use std::time::Duration;

use runtime::journal::QUIET;
use scsi::medium::Now;

/// Lines about logins and logouts that one port has in a minute. Those beyond are counted.
const LINES: u32 = 64;

/// Which logins and logouts have a line of their own.
#[derive(Debug)]
pub(super) struct LoginLog {
    /// Logins and logouts at each port since then.
    counts: Vec<u32>,
    since: Now,
}

impl LoginLog {
    /// For as many ports.
    pub(super) fn new(ports: usize) -> Self {
        Self {
            counts: vec![0; ports],
            since: Now::ZERO,
        }
    }

    /// A login or logout at a port: whether it has a line of its own.
    pub(super) fn tells(&mut self, port: usize) -> bool {
        let Some(count) = self.counts.get_mut(port) else {
            return false;
        };
        *count = count.saturating_add(1);
        *count <= LINES
    }

    /// Whether a minute has passed since the last one.
    pub(super) fn is_due(&self, now: Now) -> bool {
        now.saturating_sub(self.since) >= QUIET
    }

    /// Begins another minute. Gives the ports that had more than their lines, and how many more.
    pub(super) fn sweep(&mut self, now: Now) -> Vec<(usize, u32)> {
        self.since = now;
        let counts = self.counts.iter_mut().map(std::mem::take).enumerate();
        let untold = counts.map(|(port, count)| (port, count.saturating_sub(LINES)));
        untold.filter(|(_, count)| *count > 0).collect()
    }

    /// When lines are owed.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let is_owed = self.counts.iter().any(|count| *count > LINES);
        is_owed.then(|| self.since + QUIET + Duration::from_millis(1))
    }
}
