//! The other ports of the Ethernet: those that claimed, or that a Beacon was heard of.

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::medium::Now;

use super::announcement::Announcement;
use super::login::VirtualLink;
use super::{ANNOUNCE_WAIT, BEACON_PERIOD, FCOE_OVERHEAD, Fip, FipEvent, FipState, Mode};
use crate::wire::ethernet::Mac;
use crate::wire::fip::{Fc4Features, FipOperation};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// A port that there is a virtual link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its N_Port_ID.
    pub fc_id: FcId,
    /// Its address for FCoE frames.
    pub mac: Mac,
    /// The address of its ENode, for FIP.
    pub enode: Mac,
    /// WWPN.
    pub wwpn: Wwn,
    /// WWNN.
    pub wwnn: Wwn,
    /// The longest payload of an FC frame that fits both ends, in bytes: 256 to 2,112.
    pub payload_max: u16,
    /// Whether it said to be an FCP target; `None` if it said nothing about it.
    pub target: Option<bool>,
    /// Whether it said to be an FCP initiator.
    pub initiator: Option<bool>,
}

/// Why there is no virtual link any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlinkReason {
    /// No Beacon, or no Advertisement of the FCF, for two periods and a half.
    Silent,
    /// The FCF has cleared the virtual link.
    Cleared,
    /// The name server of the fabric does not know it any more.
    Departed,
    /// The port logged out, or we did.
    LoggedOut,
    /// The port has begun anew.
    Restarted,
    /// Its N_Port_ID is another port's, or it has another one now.
    Moved,
    /// Our N_Port_ID is another port's.
    Conflict,
    /// Point-to-point, and there is a third port.
    Crowded,
    /// Point-to-point has become multipoint.
    Mode,
    /// Our own link is down.
    LinkDown,
}

/// A port that is known of.
#[derive(Debug)]
pub(super) struct NeighbourEntry {
    pub(super) who: Neighbour,
    /// It has claimed its N_Port_ID before us, or answered our claim.
    pub(super) claimed: bool,
    /// A Beacon was heard since.
    pub(super) heard: bool,
    /// It probes for its own N_Port_ID: it begins anew, or asks a port to change the mode.
    pub(super) probing: bool,
    /// When it was heard last, of whatever.
    seen: Now,
    /// The order in which ports were met.
    met: u64,
    pub(super) link: VirtualLink,
}

/// All that are known.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    pub(super) entries: BTreeMap<FcId, NeighbourEntry>,
    /// Under which N_Port_IDs those that are known were met last, by WWPN and WWNN.
    by_name: BTreeMap<(Wwn, Wwn), FcId>,
    /// Those without a virtual link, in the order in which they were met.
    strangers: BTreeMap<u64, FcId>,
    /// How many were ever met.
    met: u64,
    /// Not later than when the first of them has something to do.
    wake: Option<Now>,
}

impl Neighbours {
    pub(super) fn linked(&self) -> impl Iterator<Item = &Neighbour> {
        let linked = self.entries.values().filter(|entry| entry.link.is_up());
        linked.map(|entry| &entry.who)
    }

    /// Whether a port of this name is there that there is no link to.
    pub(super) fn has_unlinked(&self, wwpn: Wwn) -> bool {
        let is_it = |entry: &NeighbourEntry| entry.who.wwpn == wwpn && !entry.link.is_up();
        self.entries.values().any(is_it)
    }

    pub(super) fn knows(&self, fc_id: FcId) -> bool {
        self.entries.contains_key(&fc_id)
    }

    /// Where a port that is known takes FIP.
    pub(super) fn enode(&self, fc_id: FcId) -> Option<Mac> {
        self.entries.get(&fc_id).map(|entry| entry.who.enode)
    }

    /// Ends all virtual links and returns their neighbours.
    pub(super) fn unlink_all(&mut self) -> Vec<Neighbour> {
        let strangers = &mut self.strangers;
        let entries = self.entries.values_mut();
        let ended = |entry: &mut NeighbourEntry| {
            strangers.insert(entry.met, entry.who.fc_id);
            entry.link.end().then_some(entry.who)
        };
        entries.filter_map(ended).collect()
    }

    /// Ends the virtual link to a port, if there is one. Returns the entry of the port, and
    /// whether the link was up.
    pub(super) fn unlink(&mut self, fc_id: FcId) -> Option<(&mut NeighbourEntry, bool)> {
        let entry = self.entries.get_mut(&fc_id)?;
        self.strangers.insert(entry.met, fc_id);
        let was_up = entry.link.end();
        Some((entry, was_up))
    }

    /// The virtual link to a port is up.
    pub(super) fn link(&mut self, fc_id: FcId) -> Option<&mut NeighbourEntry> {
        let entry = self.entries.get_mut(&fc_id)?;
        self.strangers.remove(&entry.met);
        Some(entry)
    }

    /// Records of all kinds.
    pub(super) fn records(&self) -> usize {
        self.entries.len() + self.by_name.len() + self.strangers.len()
    }

    pub(super) const fn next_deadline(&self) -> Option<Now> {
        self.wake
    }

    /// Something is to be done at `at`, if not before.
    pub(super) fn wake_at(&mut self, at: Now) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Under which N_Port_ID this one was known that now has another, or whom the N_Port_ID was of.
    fn stale(&self, from: &Announcement) -> Option<FcId> {
        let same = |who: &Neighbour| who.wwpn == from.wwpn && who.wwnn == from.wwnn;
        match self.entries.get(&from.fc_id) {
            Some(entry) if same(&entry.who) && entry.who.enode == from.enode => None,
            Some(entry) => Some(entry.who.fc_id),
            None => {
                let known = self.by_name.get(&(from.wwpn, from.wwnn)).copied();
                known.filter(|fc_id| self.knows(*fc_id))
            }
        }
    }

    fn insert(&mut self, from: &Announcement) {
        self.met += 1;
        self.entries
            .insert(from.fc_id, NeighbourEntry::new(from, self.met));
        self.strangers.insert(self.met, from.fc_id);
        self.by_name.insert((from.wwpn, from.wwnn), from.fc_id);
    }

    fn remove(&mut self, fc_id: FcId) -> Option<NeighbourEntry> {
        let entry = self.entries.remove(&fc_id)?;
        self.strangers.remove(&entry.met);
        let name = (entry.who.wwpn, entry.who.wwnn);
        if self.by_name.get(&name) == Some(&fc_id) {
            self.by_name.remove(&name);
        }
        Some(entry)
    }

    /// Of those without a virtual link, the one that was met first.
    fn oldest_stranger(&self) -> Option<FcId> {
        self.strangers.values().next().copied()
    }
}

impl Fip {
    /// Sends our own names to a port that claims. The padding shows whether frames of the size that
    /// both can take pass the Ethernet between them.
    pub(super) fn answer(&mut self, from: &Announcement) {
        let least = from.max_fcoe.map_or(0, |max| max.min(self.config.max_fcoe));
        self.send_padded(FipOperation::ClaimResponse, from.enode, usize::from(least));
    }

    /// A probe for an N_Port_ID that is not ours. If it is that of a neighbour, a claim that
    /// follows tells that the neighbour has begun anew.
    pub(super) fn note_probe(&mut self, from: &Announcement) {
        if let Some(entry) = self.neighbours.entries.get_mut(&from.fc_id) {
            entry.probing = entry.who.enode == from.enode;
        }
    }

    /// A claim, or the response to ours: what there is to know about a port.
    pub(super) fn meet(&mut self, from: &Announcement) -> Result<(), Violation> {
        let ours = self.config.max_fcoe;
        let entry = self.know(from)?;
        if from.operation == FipOperation::ClaimNotification && std::mem::take(&mut entry.probing) {
            self.unlink(from.fc_id, UnlinkReason::Restarted);
        }
        let entry = self.know(from)?;
        let max_fcoe = from.max_fcoe.map_or(ours, |theirs| theirs.min(ours));
        entry.claimed = true;
        entry.who.payload_max = max_fcoe.saturating_sub(FCOE_OVERHEAD as u16) & !3;
        entry.who.target = from.fc4.as_ref().map(Fc4Features::is_target);
        entry.who.initiator = from.fc4.as_ref().map(Fc4Features::is_initiator);
        self.log_in(from.fc_id);
        Ok(())
    }

    /// A Beacon. From a port that has not claimed since we are up, ours makes it tell more.
    pub(super) fn hear(&mut self, from: &Announcement) -> Result<(), Violation> {
        let entry = self.know(from)?;
        entry.heard = true;
        entry.probing = false;
        entry.link.begin_anew();
        if entry.claimed {
            self.log_in(from.fc_id);
        } else if self.state == FipState::Up
            && self.now > ANNOUNCE_WAIT.saturating_add(self.claimed)
        {
            self.claim();
        }
        Ok(())
    }

    /// The entry of a port, which may be a new one.
    fn know(&mut self, from: &Announcement) -> Result<&mut NeighbourEntry, Violation> {
        while let Some(stale) = self.neighbours.stale(from) {
            self.forget(stale, UnlinkReason::Moved);
        }
        let is_new = !self.neighbours.knows(from.fc_id);
        if is_new && self.neighbours.entries.len() >= LIMIT {
            let stranger = self.neighbours.oldest_stranger().ok_or(TOO_MANY)?;
            self.forget(stranger, UnlinkReason::Crowded);
        }
        let mut others = self
            .neighbours
            .entries
            .keys()
            .filter(|fc_id| **fc_id != from.fc_id);
        let crowded = self.mode == Mode::PointToPoint && others.next().is_some();
        if crowded {
            self.part();
        }
        self.neighbours.wake_at(self.now.saturating_add(SILENCE));
        if is_new {
            self.neighbours.insert(from);
        }
        let entry = self.neighbours.entries.get_mut(&from.fc_id);
        let entry = entry.ok_or(TOO_MANY)?;
        entry.seen = self.now;
        if crowded { Err(CROWDED) } else { Ok(entry) }
    }

    /// In point-to-point mode there is no link as long as there are more than two ports.
    fn part(&mut self) {
        self.unlink_all(UnlinkReason::Crowded);
    }

    /// Ends all virtual links.
    pub(super) fn unlink_all(&mut self, why: UnlinkReason) {
        for who in self.neighbours.unlink_all() {
            self.lost(&who, why);
        }
    }

    /// The virtual link to a port is gone.
    pub(super) fn lost(&mut self, who: &Neighbour, why: UnlinkReason) {
        self.budget.release([who.enode, who.mac]);
        self.events.push_back(FipEvent::Lost(who.fc_id, why));
    }

    pub(super) fn forget(&mut self, fc_id: FcId, why: UnlinkReason) {
        let known = self.neighbours.remove(fc_id);
        if let Some(entry) = known.filter(|entry| entry.link.is_up()) {
            self.lost(&entry.who, why);
        }
    }

    /// Lets go of those that are silent, and asks again those that do not answer.
    pub(super) fn expire_neighbours(&mut self) {
        if self.neighbours.wake.is_none_or(|wake| wake > self.now) {
            return;
        }
        let now = self.now;
        let all = self.neighbours.entries.iter();
        let due: Vec<_> = all
            .filter(|(_, entry)| entry.deadline() <= now)
            .map(|(fc_id, entry)| (*fc_id, entry.seen.saturating_add(SILENCE) <= now))
            .collect();
        for (fc_id, silent) in due {
            if silent {
                self.silence(fc_id);
            } else {
                self.log_in_again(fc_id);
            }
        }
        let next = self
            .neighbours
            .entries
            .values()
            .map(NeighbourEntry::deadline)
            .min();
        let earliest = now.saturating_add(ROUND);
        self.neighbours.wake = next.map(|next| next.max(earliest));
    }

    fn silence(&mut self, fc_id: FcId) {
        let entry = self.neighbours.entries.get(&fc_id);
        let linked = entry.is_some_and(|entry| entry.link.is_up());
        self.statistics.link_failures += u64::from(linked);
        self.forget(fc_id, UnlinkReason::Silent);
    }
}

impl NeighbourEntry {
    const fn new(from: &Announcement, met: u64) -> Self {
        Self {
            who: Neighbour {
                fc_id: from.fc_id,
                mac: super::vn_mac(from.fc_id),
                enode: from.enode,
                wwpn: from.wwpn,
                wwnn: from.wwnn,
                payload_max: 0,
                target: None,
                initiator: None,
            },
            claimed: false,
            heard: false,
            probing: false,
            seen: Now::ZERO,
            met,
            link: VirtualLink::new(),
        }
    }

    /// When it has been silent for too long, or is to be asked again.
    fn deadline(&self) -> Now {
        let silent = self.seen.saturating_add(SILENCE);
        self.link.deadline().map_or(silent, |at| at.min(silent))
    }
}

/// Two periods of Beacons and a half.
const SILENCE: Duration = Duration::from_millis(BEACON_PERIOD.as_millis() as u64 * 5 / 2);

/// All entries are looked at no more often than this: with 4,096 ports, whose deadlines are not the
/// same, looking whenever one of them has passed took up to a tenth of a core.
const ROUND: Duration = Duration::from_millis(10);

/// How many ports are known at most.
const LIMIT: usize = 4096;

const TOO_MANY: Violation = Violation {
    rule: "more than 4,096 VN_Ports on one Ethernet",
    clause: "a limit of Lunar",
};

const CROWDED: Violation = Violation {
    rule: "a third VN_Port on an Ethernet in point-to-point mode",
    clause: "FC-BB-6, VN2VN",
};
