//! The fabric controller: who is told of changes, by RSCN (FC-LS-2).
//!
//! | change | told |
//! |---|---|
//! | a port is there | 100 ms after its RFF_ID or SCR, or 2 s after its login: it is asked at once, and then has registered all that it will be asked about |
//! | a port is gone | at once, if not many are gone with it |
//! | what it registered is other than before | 100 ms later |
//! | zones | to ports that see others than before, at once or, where they are many, one after the other |
//!
//! A port is told if it has registered by SCR and shares a zone with the port that changed. It has
//! one RSCN at a time to answer, and gets one each 100 ms at most: what changes meanwhile is told
//! in the next one. So the RSCNs of a port that changes without end are bounded. What it does not
//! answer is told again after E_D_TOV, and from the third time on each 10 s for as long as it is
//! logged in: it would never learn of the change otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scsi::medium::Now;

use super::port::RegisteredPort;
use super::service::Service;
use super::{Asked, Servers};
use crate::wire::els::{Code, Els, LsRejectReason, Reply, Rscn, explanation, reason};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::names::FcId;

mod notices;
mod rounds;

pub(super) use self::notices::Notices;
use self::notices::{EventKinds, Pages};
use self::rounds::Rounds;

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
    /// What is being told to many.
    rounds: Rounds,
}

impl Changes {
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let first = |set: &BTreeSet<(Now, FcId)>| set.first().map(|(at, _)| *at);
        let sets = [first(&self.unannounced), first(&self.notices)];
        let rounds = self.rounds.next_deadline();
        let all = sets.into_iter().flatten().chain(self.due);
        all.chain(rounds).min()
    }

    /// Ports that changed, and those that are to be told.
    pub(super) fn records(&self) -> usize {
        let waiting = self.unannounced.len() + self.notices.len();
        self.ports.len() + waiting + self.rounds.records()
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
        self.rounds.forget(id);
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

    /// Time has passed.
    pub(super) fn expire_changes(&mut self, now: Now) {
        while let Some(id) = Changes::take_due(&mut self.changes.unannounced, now) {
            self.announce(now, id);
        }
        self.begin_changes(now);
        self.tell_more(now);
        while let Some(id) = Changes::take_due(&mut self.changes.notices, now) {
            self.notify(now, id);
        }
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

/// SCR with a function that is not defined.
const UNKNOWN_FUNCTION: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::NONE);
