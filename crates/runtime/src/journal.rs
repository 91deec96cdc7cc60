//! The log of what peers can bring about again and again: at most one line a rule and peer a
//! minute, with a count, and at most [`LINES`] a rule, as addresses cost nothing to forge. Logins
//! and ends of sessions have at most [`SESSION_LINES`] a host a minute.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use scsi::medium::Now;
use scsi::violation::Violation;

/// How long a rule and a peer are quiet after a line.
pub const QUIET: Duration = Duration::from_secs(60);

/// Peers of which one rule has lines of their own in a minute. Those beyond are counted together,
/// so that neither the log nor memory is for scanners to fill.
const LINES: u32 = 16;

/// Lines about sessions that a host has in a minute. Those beyond are counted.
const SESSION_LINES: u32 = 64;

/// The log of broken rules, for all cores. It locks, but only when a rule is broken.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    pairs: HashMap<(Violation, PeerName), JournalEntry>,
    rules: HashMap<Violation, RuleOffenders>,
    /// Logins and ends of sessions by host, since the instant of the last sweep that counted them.
    sessions: HashMap<IpAddr, u32>,
    sessions_since: Now,
    /// How often each rule was broken, by all peers.
    counts: BTreeMap<&'static str, u64>,
}

/// The peers that break one rule.
#[derive(Debug, Default)]
struct RuleOffenders {
    /// When its first line was written.
    since: Now,
    /// Peers that have lines of their own since.
    told: u32,
    /// How often all others broke the rule.
    untold: u32,
}

/// The peer that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// A host of iSCSI.
    Host(IpAddr),
    /// One whose login failed, with what it said it was: the name that access lists name it by,
    /// and its CHAP user.
    Claimed(IpAddr, String),
    /// An Ethernet port.
    Port(Mac),
    /// A port of Fibre Channel, by the WWPN that access lists name it by.
    NPort(Mac, Wwn),
}

impl PeerName {
    /// Where it is, whatever it says it was.
    fn place(&self) -> Self {
        match self {
            Self::Claimed(host, _) => Self::Host(*host),
            other => other.clone(),
        }
    }
}

impl From<IpAddr> for PeerName {
    fn from(host: IpAddr) -> Self {
        Self::Host(host)
    }
}

impl From<Mac> for PeerName {
    fn from(port: Mac) -> Self {
        Self::Port(port)
    }
}

impl From<(Mac, Option<Wwn>)> for PeerName {
    fn from((port, wwpn): (Mac, Option<Wwn>)) -> Self {
        wwpn.map_or(Self::Port(port), |wwpn| Self::NPort(port, wwpn))
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Claimed(host, name) => write!(f, "{host} as {name}"),
            Self::Port(port) => port.fmt(f),
            Self::NPort(port, wwpn) => write!(f, "{wwpn} ({port})"),
        }
    }
}

#[derive(Debug)]
struct JournalEntry {
    /// When its last line was written.
    since: Now,
    /// How often the rule was broken since.
    untold: u32,
}

impl Journal {
    /// A peer broke a rule: the line to write, if it is time for one.
    pub fn tell(
        &self,
        now: Now,
        peer: impl Into<PeerName>,
        violation: Violation,
    ) -> Option<String> {
        let peer = peer.into();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // A name is the peer's to choose: it must not take the lines of others.
        let pair = (violation, peer.place());
        *entries.counts.entry(violation.rule).or_default() += 1;
        if let Some(entry) = entries.pairs.get_mut(&pair) {
            if now.saturating_sub(entry.since) < QUIET {
                entry.untold += 1;
                return None;
            }
            let line = line(&peer, violation, entry.untold);
            *entry = JournalEntry {
                since: now,
                untold: 0,
            };
            return Some(line);
        }
        let new = RuleOffenders {
            since: now,
            ..RuleOffenders::default()
        };
        let crowd = entries.rules.entry(violation).or_insert(new);
        if crowd.told == LINES {
            crowd.untold = crowd.untold.saturating_add(1);
            return None;
        }
        crowd.told += 1;
        let first = JournalEntry {
            since: now,
            untold: 0,
        };
        let line = line(&peer, violation, 0);
        entries.pairs.insert(pair, first);
        Some(line)
    }

    /// A host logged in, or a session with it ended: whether that has a line of its own.
    pub fn tells_of_session(&self, host: IpAddr) -> bool {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let count = entries.sessions.entry(host).or_default();
        *count = count.saturating_add(1);
        *count <= SESSION_LINES
    }

    /// How often each rule was broken until now.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.counts.clone()
    }

    /// Whether no line is owed.
    pub fn is_empty(&self) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.pairs.is_empty() && entries.rules.is_empty() && entries.sessions.is_empty()
    }

    /// The lines for counts of which a minute has passed; to be called now and then, as a rule that
    /// is not broken again would keep its count for ever.
    pub fn sweep(&self, now: Now) -> Vec<String> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = entries.sweep_sessions(now);
        entries.rules.retain(|violation, crowd| {
            let is_over = now.saturating_sub(crowd.since) >= QUIET;
            if is_over && crowd.untold > 0 {
                lines.push(line("others", *violation, crowd.untold - 1));
            }
            !is_over
        });
        entries.pairs.retain(|(violation, peer), entry| {
            if now.saturating_sub(entry.since) < QUIET {
                return true;
            }
            let untold = std::mem::take(&mut entry.untold);
            if untold == 0 {
                return false;
            }
            lines.push(line(peer, *violation, untold - 1));
            entry.since = now;
            true
        });
        lines
    }
}

impl Entries {
    fn sweep_sessions(&mut self, now: Now) -> Vec<String> {
        if now.saturating_sub(self.sessions_since) < QUIET {
            return Vec::new();
        }
        self.sessions_since = now;
        let counts = self.sessions.drain();
        let untold = counts.filter(|(_, count)| *count > SESSION_LINES);
        let line = |(host, count)| {
            let more = count - SESSION_LINES;
            format!("{host}: {more} more logins and logouts within a minute")
        };
        untold.map(line).collect()
    }
}

/// The log of reservations that could not be saved: each command of a peer that changes some may
/// fail anew, so at most one line a unit a minute, with a count.
#[derive(Debug, Default)]
pub struct UnsavedReservations(BTreeMap<u32, JournalEntry>);

impl UnsavedReservations {
    /// The reservations of a unit could not be saved: the line to write, if it is time for one.
    pub fn tell(&mut self, now: Now, unit: u32, cause: &io::Error) -> Option<String> {
        let before = self.0.get_mut(&unit);
        let untold = match before {
            Some(entry) if now.saturating_sub(entry.since) < QUIET => {
                entry.untold += 1;
                return None;
            }
            Some(entry) => entry.untold,
            None => 0,
        };
        self.0.insert(
            unit,
            JournalEntry {
                since: now,
                untold: 0,
            },
        );
        Some(format!(
            "cannot save the reservations of unit {unit}, so the command fails: {cause}; check the \
             state directory{}",
            times_more(untold)
        ))
    }
}

fn line(peer: impl fmt::Display, Violation { rule, clause }: Violation, more: u32) -> String {
    format!("{peer}: {rule} ({clause}){}", times_more(more))
}

fn times_more(more: u32) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}
