//! The fabric controller: who is told of changes, by RSCN (FC-LS-2).
//!
//! | change | told |
//! |---|---|
//! | a port is there | 100 ms after its RFF_ID or SCR, or 2 s after its login: it is asked at once, and then has registered all that it will be asked about |
//! | a port is gone | at once |
//! | what it registered is other than before | 100 ms later |
//! | zones | at once, to ports that see others than before |
//!
//! A port is told if it has registered by SCR and shares a zone with the port that changed. It has
//! one RSCN at a time to answer, and gets one each 100 ms at most: what changes meanwhile is told
//! in the next one. So the RSCNs of a port that changes without end are bounded. What it does not
//! answer is told again after E_D_TOV, and from the third time on each 10 s for as long as it is
//! logged in: it would never learn of the change otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;

use super::port::RegisteredPort;
use super::service::Service;
use super::{Asked, Servers};
use crate::fabric::zones::{Membership, Zones};
use crate::wire::els::{Code, Els, LsRejectReason, Reply, Rscn, explanation, reason};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::names::FcId;

mod notices;

pub(super) use self::notices::Notices;
use self::notices::{EventKinds, Pages};

/// What is to be told to many ports, and when.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Ports that changed, and what kind of event that is.
    ports: BTreeMap<FcId, EventKinds>,
    /// When they are told.
    due: Option<Now>,
    /// Ports that are not told as there yet, and when they are.
    unannounced: BTreeSet<(Now, FcId)>,
    /// Ports that are to be told something, and when.
    notices: BTreeSet<(Now, FcId)>,
}

impl Changes {
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let first = |set: &BTreeSet<(Now, FcId)>| set.first().map(|(at, _)| *at);
        let sets = [first(&self.unannounced), first(&self.notices)];
        sets.into_iter().flatten().chain(self.due).min()
    }

    /// The next of `set` that is due.
    fn take_due(set: &mut BTreeSet<(Now, FcId)>, now: Now) -> Option<FcId> {
        let due = *set.first().filter(|(at, _)| *at <= now)?;
        set.remove(&due);
        Some(due.1)
    }

    /// A port that is gone needs nothing.
    fn forget(&mut self, port: &RegisteredPort) {
        let id = port.fc_id();
        self.ports.remove(&id);
        if let Some(at) = port.notices.announced_at {
            self.unannounced.remove(&(at, id));
        }
        if let Some(at) = port.notices.armed {
            self.notices.remove(&(at, id));
        }
    }
}

impl Servers {
    /// What the fabric controller is asked, beside logins. None of it needs one: Linux sends SCR
    /// without.
    pub(super) fn controller_service(
        &mut self,
        now: Now,
        asked: Asked,
        els: &Els,
    ) -> Option<Result<Reply, LsRejectReason>> {
        Some(match els {
            Els::Scr(function) => self.register_for_changes(now, asked.from, *function),
            Els::Rscn(Rscn(pages)) => {
                if pages.iter().any(|(_, id)| *id == asked.from) {
                    self.changed(now, asked.from, EventKinds::N_PORT);
                }
                Ok(Reply::Accept)
            }
            Els::Other(Code::LIRR) => Ok(Reply::Accept),
            _ => return None,
        })
    }

    fn register_for_changes(
        &mut self,
        now: Now,
        from: FcId,
        function: u8,
    ) -> Result<Reply, LsRejectReason> {
        let kinds = EventKinds::of(function).ok_or(UNKNOWN_FUNCTION)?;
        if let Some(port) = self.ports.get_mut(&from) {
            port.notices.register(kinds);
        }
        self.arm(from);
        self.announce(now, from);
        Ok(Reply::Accept)
    }

    /// A port logged in: it is told as there when it has registered, or after a while.
    pub(super) fn await_registration(&mut self, now: Now, id: FcId) {
        if let Some(port) = self.ports.get_mut(&id) {
            let at = now + ANNOUNCED_AFTER;
            port.notices.announced_at = Some(at);
            self.changes.unannounced.insert((at, id));
        }
    }

    /// A port has registered all that it registers, as far as can be known.
    pub(super) fn announce(&mut self, now: Now, id: FcId) {
        let port = self.ports.get_mut(&id);
        let at = port.and_then(|port| port.notices.announced_at.take());
        if let Some(at) = at {
            self.changes.unannounced.remove(&(at, id));
            self.changed(now, id, EventKinds::FABRIC);
        }
    }

    /// What is registered of a port is other than before.
    pub(super) fn registration_changed(&mut self, now: Now, id: FcId) {
        let port = self.ports.get(&id);
        if port.is_some_and(|port| port.notices.announced_at.is_none()) {
            self.changed(now, id, EventKinds::FABRIC);
        }
    }

    fn changed(&mut self, now: Now, id: FcId, kinds: EventKinds) {
        let known = self.changes.ports.entry(id).or_default();
        *known = known.with(kinds);
        self.changes.due.get_or_insert(now + GATHERED);
    }

    /// A port is about to be taken away.
    pub(super) fn tell_gone(&mut self, now: Now, gone: FcId) {
        let Some(port) = self.ports.get(&gone) else {
            return;
        };
        self.changes.forget(port);
        let told = self
            .visible(gone)
            .filter(|port| port.fc_id() != gone && port.notices.wants(EventKinds::FABRIC));
        let told: Vec<_> = told.map(RegisteredPort::fc_id).collect();
        for id in told {
            self.tell(now, id, &Pages::of(gone));
        }
    }

    /// Other zones hold. Each pair of ports is looked at once for either end that is to be told.
    pub(super) fn exchange_zones(&mut self, now: Now, zones: Arc<Zones>) {
        let before = std::mem::replace(&mut self.zones, zones);
        let ports = self.ports.values_mut();
        let memberships = ports.map(|port| {
            let after = self.zones.membership(&port.login.zone_member());
            let before = std::mem::replace(&mut port.membership, after);
            (port.fc_id(), before)
        });
        let memberships: BTreeMap<_, _> = memberships.collect();
        let told = self.registered();
        for id in told {
            let pages = self.pages_of_zones(id, &before, &memberships);
            self.tell(now, id, &pages);
        }
    }

    fn pages_of_zones(
        &self,
        id: FcId,
        before: &Zones,
        memberships: &BTreeMap<FcId, Membership>,
    ) -> Pages {
        let mut pages = Pages::default();
        let Some(own) = memberships.get(&id) else {
            return pages;
        };
        for port in self.ports.values().filter(|port| port.fc_id() != id) {
            let other = memberships.get(&port.fc_id());
            let saw = other.is_some_and(|other| before.join(own, other));
            if saw != self.sees(id, port) {
                pages.add(port.fc_id());
            }
            if pages.is_whole_fabric() {
                break;
            }
        }
        pages
    }

    /// Ports that are told of changes.
    fn registered(&self) -> Vec<FcId> {
        let ports = self.ports.values();
        let registered = ports.filter(|port| port.notices.wants(EventKinds::ALL));
        registered.map(RegisteredPort::fc_id).collect()
    }

    /// Time has passed.
    pub(super) fn expire_changes(&mut self, now: Now) {
        while let Some(id) = Changes::take_due(&mut self.changes.unannounced, now) {
            self.announce(now, id);
        }
        if self.changes.due.is_some_and(|due| due <= now) {
            self.changes.due = None;
            let changes = std::mem::take(&mut self.changes.ports);
            for id in self.registered() {
                let pages = self.pages_of_changes(id, &changes);
                self.tell(now, id, &pages);
            }
        }
        while let Some(id) = Changes::take_due(&mut self.changes.notices, now) {
            self.notify(now, id);
        }
    }

    /// What a port is to be told of these changes. Where more ports changed than are looked at, it
    /// is told that something did.
    fn pages_of_changes(&self, id: FcId, changes: &BTreeMap<FcId, EventKinds>) -> Pages {
        let mut pages = Pages::default();
        let notices = self.ports.get(&id).map(|port| &port.notices);
        if changes.len() > LOOKED_AT {
            return Pages::WHOLE_FABRIC;
        }
        for (changed, kinds) in changes {
            let wants = notices.is_some_and(|notices| notices.wants(*kinds));
            if wants && *changed != id && self.visible_id(id, *changed).is_some() {
                pages.add(*changed);
            }
        }
        pages
    }

    /// Adds to what a port is to be told, and sends it if it may be sent now.
    fn tell(&mut self, now: Now, id: FcId, pages: &Pages) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.notices.add(now, pages);
        }
        self.notify(now, id);
    }

    /// Sends what is due to a port.
    fn notify(&mut self, now: Now, id: FcId) {
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        let frame_max = port.frame_max(Some(Service::Controller));
        if let Some(rscn) = port.notices.take_due(now, frame_max) {
            let from = FcId::FABRIC_CONTROLLER;
            let ox_id = self.outbox.request(from, id, &Els::Rscn(rscn));
            port.notices.sent(ox_id, now, self.config.e_d_tov);
        }
        self.arm(id);
    }

    /// An answer to an RSCN came, or to a LOGO, which needs none.
    pub(super) fn els_reply(&mut self, frame: &ReceivedFrame<'_>) {
        let (id, ox_id) = (frame.header.s_id, frame.header.ox_id);
        if let Some(port) = self.ports.get_mut(&id)
            && frame.header.d_id == FcId::FABRIC_CONTROLLER
        {
            port.notices.answered(ox_id);
            self.arm(id);
        }
    }

    /// Sees to it that a port is looked at when something is due.
    fn arm(&mut self, id: FcId) {
        let Some(port) = self.ports.get_mut(&id) else {
            return;
        };
        let deadline = port.notices.deadline();
        let before = std::mem::replace(&mut port.notices.armed, deadline);
        if let Some(at) = before {
            self.changes.notices.remove(&(at, id));
        }
        if let Some(at) = deadline {
            self.changes.notices.insert((at, id));
        }
    }
}

/// How long changes are gathered before they are told.
const GATHERED: Duration = Duration::from_millis(100);

/// After this time a port that registers nothing is told as there.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(2);

/// Changes of 100 ms that are looked at for each port.
const LOOKED_AT: usize = 512;

/// SCR with a function that is not defined.
const UNKNOWN_FUNCTION: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::NONE);
