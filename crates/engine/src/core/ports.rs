//! Initiator ports that had a session since the target started, and have none now.

use std::collections::BTreeMap;

use iscsi::target::Identity;
use scsi::nexus::Heard;

/// What each had heard. One that is forgotten is told as much as one that was never there.
#[derive(Default)]
pub(super) struct Ports {
    away: BTreeMap<Identity, Heard>,
}

/// How many are kept. A peer can come by as many names as it likes, and a unit takes 16 octets of
/// each.
const MOST: usize = 4096;

impl Ports {
    pub(super) fn go_away(&mut self, port: Identity, heard: Heard) {
        if self.away.len() >= MOST {
            self.away.pop_first();
        }
        self.away.insert(port, heard);
    }

    /// What it had heard. From now on its session knows.
    pub(super) fn come_back(&mut self, port: Option<&Identity>) -> Option<Heard> {
        self.away.remove(port?)
    }
}
