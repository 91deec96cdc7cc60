//! Initiator ports without a nexus now that had one since the target started.

use std::collections::BTreeMap;

use scsi::nexus::AttentionHistory;

/// What each had heard, by its name, `N`. One that is forgotten is told as much as one that was
/// never there: that power was off, which says all that it could.
pub(super) struct DepartedInitiators<N> {
    away: BTreeMap<N, DepartedInitiator>,
    departures: u64,
}

struct DepartedInitiator {
    /// How many had gone away before.
    since: u64,
    heard: AttentionHistory,
}

/// How many are kept. A peer can come by as many names as it likes, and a unit takes 16 bytes of
/// each.
const MOST: usize = 4096;

impl<N> Default for DepartedInitiators<N> {
    fn default() -> Self {
        Self {
            away: BTreeMap::new(),
            departures: 0,
        }
    }
}

impl<N: Ord + Clone> DepartedInitiators<N> {
    pub(super) fn go_away(&mut self, port: N, heard: AttentionHistory) {
        if self.away.len() >= MOST && !self.away.contains_key(&port) {
            let oldest = self.away.iter().min_by_key(|(_, away)| away.since);
            if let Some(oldest) = oldest.map(|(port, _)| port.clone()) {
                self.away.remove(&oldest);
            }
        }
        let since = self.departures;
        self.departures += 1;
        self.away.insert(port, DepartedInitiator { since, heard });
    }

    /// What it had heard. From now on its session knows.
    pub(super) fn come_back(&mut self, port: Option<&N>) -> Option<AttentionHistory> {
        self.away.remove(port?).map(|away| away.heard)
    }
}

#[cfg(test)]
mod tests;
