//! Initiator ports that had a session since the target started, and have none now.

use std::collections::BTreeMap;

use iscsi::target::Identity;
use scsi::nexus::Heard;

/// What each had heard. One that is forgotten is told as much as one that was never there.
#[derive(Default)]
pub(super) struct Ports {
    away: BTreeMap<Identity, Away>,
    departures: u64,
}

struct Away {
    /// How many had gone away before.
    since: u64,
    heard: Heard,
}

/// How many are kept. A peer can come by as many names as it likes, and a unit takes 16 octets of
/// each.
const MOST: usize = 4096;

impl Ports {
    pub(super) fn go_away(&mut self, port: Identity, heard: Heard) {
        if self.away.len() >= MOST && !self.away.contains_key(&port) {
            let oldest = self.away.iter().min_by_key(|(_, away)| away.since);
            if let Some(oldest) = oldest.map(|(port, _)| port.clone()) {
                self.away.remove(&oldest);
            }
        }
        let since = self.departures;
        self.departures += 1;
        self.away.insert(port, Away { since, heard });
    }

    /// What it had heard. From now on its session knows.
    pub(super) fn come_back(&mut self, port: Option<&Identity>) -> Option<Heard> {
        self.away.remove(port?).map(|away| away.heard)
    }
}

#[cfg(test)]
mod tests;
