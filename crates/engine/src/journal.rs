//! The log of broken rules: at most one line a rule and peer address a minute, with a count.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iscsi::login::Violation;
use scsi::medium::Now;

/// How long a rule and a peer are quiet after a line.
pub const QUIET: Duration = Duration::from_secs(60);

/// How many pairs of rule and peer are remembered. Beyond, the oldest are forgotten, which costs
/// a line more; the memory that scanners can take is bounded.
const PAIRS: usize = 4096;

/// The log of broken rules, for all cores. It locks, but only when a rule is broken.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<Entries>,
}

type Entries = HashMap<(Violation, IpAddr), Entry>;

#[derive(Debug)]
struct Entry {
    /// When its last line was written.
    since: Now,
    /// How often the rule was broken since.
    untold: u32,
}

impl Journal {
    /// A peer broke a rule: the line to write, if it is time for one.
    pub fn tell(&self, now: Now, peer: IpAddr, violation: Violation) -> Option<String> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get_mut(&(violation, peer)) {
            if now.saturating_sub(entry.since) < QUIET {
                entry.untold += 1;
                return None;
            }
            let line = line(peer, violation, entry.untold);
            *entry = Entry {
                since: now,
                untold: 0,
            };
            return Some(line);
        }
        make_room(&mut entries, now);
        entries.insert(
            (violation, peer),
            Entry {
                since: now,
                untold: 0,
            },
        );
        Some(line(peer, violation, 0))
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// The lines for counts of which a minute has passed; to be called now and then, as a rule that
    /// is not broken again would keep its count for ever.
    pub fn sweep(&self, now: Now) -> Vec<String> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        entries.retain(|(violation, peer), entry| {
            if now.saturating_sub(entry.since) < QUIET {
                return true;
            }
            let untold = std::mem::take(&mut entry.untold);
            if untold == 0 {
                return false;
            }
            lines.push(line(*peer, *violation, untold - 1));
            entry.since = now;
            true
        });
        lines
    }
}

fn make_room(entries: &mut Entries, now: Now) {
    if entries.len() < PAIRS {
        return;
    }
    entries.retain(|_, entry| now.saturating_sub(entry.since) < QUIET);
    while entries.len() >= PAIRS {
        let oldest = entries
            .iter()
            .min_by_key(|(_, entry)| entry.since)
            .map(|(key, _)| *key);
        oldest.and_then(|key| entries.remove(&key));
    }
}

fn line(peer: IpAddr, violation: Violation, more: u32) -> String {
    let Violation { rule, clause } = violation;
    let clause = if clause.is_empty() {
        String::new()
    } else {
        format!(" ({clause})")
    };
    let more = if more == 0 {
        String::new()
    } else {
        format!(", {more} times more")
    };
    format!("{peer}: {rule}{clause}{more}")
}
