//! Changes that concern many ports, told a few ports at a time.
//!
//! New zones, a port of the switch that goes down with all its logins, and what was registered
//! within 100 ms cost a look at each port for each port that is told: with 4,096 ports, a second or
//! so. Frames would wait for that, so the work is done in steps. [`Servers::next_deadline`] is due
//! until there is none left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use scsi::medium::Now;

use super::notices::{EventKinds, Pages};
use crate::fabric::servers::Servers;
use crate::fabric::servers::port::RegisteredPort;
use crate::fabric::zones::{Membership, ZoneCounts, Zones};
use crate::wire::names::FcId;

/// What is still to be told.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Ports that are gone; each is told to all that saw it.
    gone: VecDeque<GonePort>,
    /// Other zones hold.
    zones: Option<ZoneRound>,
    /// Ports have changed.
    changes: Option<ChangeRound>,
    /// Looks that were taken at a time.
    looks: (Now, usize),
}

#[derive(Debug)]
struct GonePort {
    id: FcId,
    membership: Membership,
    /// Under the zones before, if others are being told of these.
    before: Option<Membership>,
}

/// Each port is told of those that it sees, or does not see any more.
#[derive(Debug)]
struct ZoneRound {
    before: Arc<Zones>,
    waiting: VecDeque<FcId>,
}

/// Each port is told which of those that it sees have changed.
#[derive(Debug)]
struct ChangeRound {
    changes: BTreeMap<FcId, EventKinds>,
    /// Of all changes.
    kinds: EventKinds,
    /// In which zones the changes are, once that is known and while they are too many to be looked
    /// at.
    counts: Option<ZoneCounts>,
    waiting: VecDeque<FcId>,
}

impl Rounds {
    /// Whether there is something left, and since when.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let is_due = self.tells_by_zones() || self.changes.is_some();
        is_due.then_some(self.looks.0)
    }

    /// Ports that are gone, and those that are still to be told.
    pub(super) fn records(&self) -> usize {
        let zones = self.zones.as_ref().map_or(0, |round| round.waiting.len());
        let changes = self.changes.as_ref();
        let changes = changes.map_or(0, |round| round.changes.len() + round.waiting.len());
        self.gone.len() + zones + changes
    }

    /// Whether what is left depends on the zones that hold now.
    fn tells_by_zones(&self) -> bool {
        !self.gone.is_empty() || self.zones.is_some()
    }

    /// A port is gone: others are told so anyway.
    pub(super) fn forget(&mut self, id: FcId) {
        if let Some(round) = &mut self.changes {
            round.changes.remove(&id);
        }
    }

    fn next_of_zones(&mut self) -> Option<(FcId, Arc<Zones>)> {
        let round = self.zones.as_mut()?;
        let id = round.waiting.pop_front()?;
        Some((id, Arc::clone(&round.before)))
    }
}

impl Servers {
    /// A port is about to be taken away.
    pub(in crate::fabric::servers) fn tell_gone(&mut self, now: Now, gone: FcId) {
        let Some(port) = self.ports.get(&gone) else {
            return;
        };
        self.changes.forget(port);
        self.changes.rounds.gone.push_back(GonePort {
            id: gone,
            membership: port.membership.clone(),
            before: port.before.clone(),
        });
        self.tell_some(now);
        if self.changes.rounds.gone.len() > GONE_MAX {
            self.tell_all(now);
        }
    }

    /// Other zones hold.
    pub(in crate::fabric::servers) fn exchange_zones(&mut self, now: Now, zones: Arc<Zones>) {
        let before = std::mem::replace(&mut self.zones, zones);
        for port in self.ports.values_mut() {
            let after = self.zones.membership(&port.login.zone_member());
            port.before = Some(std::mem::replace(&mut port.membership, after));
        }
        if let Some(round) = &mut self.changes.rounds.changes {
            round.counts = None;
        }
        if self.changes.rounds.tells_by_zones() {
            // Some were to be told by zones before these.
            return self.tell_all(now);
        }
        let waiting = self.registered(EventKinds::FABRIC);
        self.changes.rounds.zones = Some(ZoneRound {
            before,
            waiting: waiting.into(),
        });
        self.tell_some(now);
    }

    /// Tells what has changed, once what changed before has been told.
    pub(super) fn begin_changes(&mut self, now: Now) {
        let is_due = self.changes.due.is_some_and(|due| due <= now);
        if is_due && self.changes.rounds.changes.is_none() {
            self.changes.due = None;
            let changes = std::mem::take(&mut self.changes.ports);
            let all = changes.values().copied();
            let kinds = all.fold(EventKinds::default(), EventKinds::with);
            self.changes.rounds.changes = Some(ChangeRound {
                changes,
                kinds,
                counts: None,
                waiting: self.registered(kinds).into(),
            });
        }
    }

    /// Time has passed: another step may be made.
    pub(super) fn tell_more(&mut self, now: Now) {
        self.changes.rounds.looks = (now, 0);
        self.tell_some(now);
    }

    /// Tells what there is to tell, up to so many looks at a time.
    fn tell_some(&mut self, now: Now) {
        if self.changes.rounds.looks.0 != now {
            self.changes.rounds.looks = (now, 0);
        }
        while self.changes.rounds.looks.1 < LOOKS
            && let Some(looks) = self.tell_next(now)
        {
            self.changes.rounds.looks.1 += looks;
        }
    }

    /// One step, and how many looks it has cost.
    fn tell_next(&mut self, now: Now) -> Option<usize> {
        let all = self.ports.len().max(1);
        if let Some(gone) = self.changes.rounds.gone.pop_front() {
            for id in self.saw(&gone) {
                self.tell(now, id, &Pages::of(gone.id));
            }
            return Some(all);
        }
        if let Some((id, before)) = self.changes.rounds.next_of_zones() {
            let pages = self.pages_of_zones(id, &before);
            self.tell(now, id, &pages);
            return Some(all);
        }
        if self.changes.rounds.zones.is_some() {
            self.end_zone_round();
            return Some(all);
        }
        let mut round = self.changes.rounds.changes.take()?;
        let Some(id) = round.waiting.pop_front() else {
            return Some(1);
        };
        if round.changes.len() > LOOKED_AT && round.counts.is_none() {
            round.counts = Some(self.counts_of(&round.changes));
        }
        let pages = self.pages_of_changes(id, &round);
        self.tell(now, id, &pages);
        let looks = round.changes.len().clamp(1, LOOKED_AT);
        self.changes.rounds.changes = Some(round);
        Some(looks)
    }

    /// Has all ports ask for all, in place of what was still to be told by zones.
    fn tell_all(&mut self, now: Now) {
        self.changes.rounds.gone.clear();
        self.end_zone_round();
        for id in self.registered(EventKinds::FABRIC) {
            self.tell(now, id, &Pages::WHOLE_FABRIC);
        }
    }

    fn end_zone_round(&mut self) {
        self.changes.rounds.zones = None;
        for port in self.ports.values_mut() {
            port.before = None;
        }
    }

    /// Registered ports that see a port which is gone, or saw it and have not been told of the
    /// zones.
    fn saw(&self, gone: &GonePort) -> Vec<FcId> {
        let round = self.changes.rounds.zones.as_ref();
        let saw_before = |port: &RegisteredPort| {
            let both = gone.before.as_ref().zip(port.before.as_ref());
            let zones = round.zip(both);
            zones.is_some_and(|(round, (a, b))| round.before.join(a, b))
        };
        let others = self.ports.values().filter(|port| port.fc_id() != gone.id);
        let wanting = others.filter(|port| port.notices.wants(EventKinds::FABRIC));
        let saw = wanting
            .filter(|port| self.zones.join(&gone.membership, &port.membership) || saw_before(port));
        saw.map(RegisteredPort::fc_id).collect()
    }

    /// Ports that a port sees and did not see before, or the other way round. Those that have
    /// logged in meanwhile are told as there when they have registered.
    fn pages_of_zones(&self, id: FcId, before: &Zones) -> Pages {
        let mut pages = Pages::default();
        let port = self.ports.get(&id);
        let wanting = port.filter(|port| port.notices.wants(EventKinds::FABRIC));
        let Some(own) = wanting.and_then(|port| port.before.as_ref()) else {
            return pages;
        };
        for port in self.ports.values().filter(|port| port.fc_id() != id) {
            let other = port.before.as_ref();
            if other.is_some_and(|other| before.join(own, other) != self.sees(id, port)) {
                pages.add(port.fc_id());
            }
            if pages.is_whole_fabric() {
                break;
            }
        }
        pages
    }

    /// What a port is to be told of these changes. Where more ports changed than are looked at, it
    /// is told that something did, if one of them is in a zone of its own.
    fn pages_of_changes(&self, id: FcId, round: &ChangeRound) -> Pages {
        let mut pages = Pages::default();
        let port = self.ports.get(&id);
        let Some(port) = port.filter(|port| port.notices.wants(round.kinds)) else {
            return pages;
        };
        if let Some(counts) = &round.counts {
            let has_changed = round.changes.contains_key(&id);
            let sees_one = self.zones.meet(counts, &port.membership, has_changed);
            return if sees_one { Pages::WHOLE_FABRIC } else { pages };
        }
        for (changed, kinds) in &round.changes {
            let is_wanted = *changed != id && port.notices.wants(*kinds);
            if is_wanted && self.visible_id(id, *changed).is_some() {
                pages.add(*changed);
            }
        }
        pages
    }

    /// In which zones these ports are.
    fn counts_of(&self, changes: &BTreeMap<FcId, EventKinds>) -> ZoneCounts {
        let mut counts = ZoneCounts::default();
        let ports = changes.keys().filter_map(|id| self.ports.get(id));
        ports.for_each(|port| counts.add(&port.membership));
        counts
    }

    /// Ports that are told of events of these kinds.
    fn registered(&self, kinds: EventKinds) -> Vec<FcId> {
        let ports = self.ports.values();
        let registered = ports.filter(|port| port.notices.wants(kinds));
        registered.map(RegisteredPort::fc_id).collect()
    }
}

/// Ports that are gone and of which others are not told yet: more than may be logged in, so only
/// where ports come and go faster than that is told.
const GONE_MAX: usize = 8_192;

/// Changes of 100 ms that are looked at for each port.
const LOOKED_AT: usize = 512;

/// Looks at a port that are taken before frames are forwarded again: some 0.5 ms.
pub(in crate::fabric::servers) const LOOKS: usize = 16_384;
