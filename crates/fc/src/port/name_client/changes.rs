//! When ports are looked at again: after RSCNs, and after questions that came to nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use scsi::medium::Now;

use super::requests::Question;
use super::{ClientState, NameClient};
use crate::wire::els::Rscn;
use crate::wire::names::FcId;

/// What is to be looked at, and when.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// Ports that RSCNs have named.
    ports: BTreeSet<FcId>,
    /// More than single ports.
    is_all: bool,
    /// When it is looked at.
    pub(super) at: Option<Now>,
    /// When the last round began.
    last: Option<Now>,
    /// Whether something in the round under way came to nothing, and in how many before it.
    has_failed: bool,
    failures: u32,
}

impl PendingChanges {
    pub(super) fn records(&self) -> usize {
        self.ports.len()
    }

    /// A round begins.
    fn begin(&mut self, now: Now) {
        self.last = Some(now);
        if !std::mem::take(&mut self.has_failed) {
            self.failures = 0;
        }
    }

    /// Something came to nothing: how long the next round waits. One round counts once.
    fn failed(&mut self) -> Duration {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.failures += 1;
        }
        FIRST_PAUSE * (1 << (self.failures - 1).min(MAX_DOUBLINGS))
    }
}

impl NameClient {
    /// An RSCN of the fabric controller.
    pub(in crate::port) fn changed(&mut self, now: Now, rscn: &Rscn) {
        self.tick(now);
        let ours = self.config.login.fc_id;
        for (flags, fc_id) in &rscn.0 {
            if flags & ADDRESS_FORMAT != 0 || self.changes.ports.len() >= MAX_CHANGES {
                self.changes.is_all = true;
            } else if *fc_id != ours {
                self.changes.ports.insert(*fc_id);
            }
        }
        if self.changes.is_all || !self.changes.ports.is_empty() {
            self.schedule(GATHERING);
        }
        self.go_on();
    }

    /// All ports are listed at once.
    pub(super) const fn list_now(&mut self) {
        self.changes.is_all = true;
        self.changes.at = Some(self.now);
    }

    /// Something may have changed that was not told: all ports are listed.
    pub(super) fn list_soon(&mut self) {
        self.changes.is_all = true;
        self.schedule(GATHERING);
    }

    /// The round cannot be finished: all ports are listed after a while, each time a longer one.
    pub(super) fn list_later(&mut self) {
        let pause = self.changes.failed();
        self.changes.is_all = true;
        self.schedule(pause);
    }

    /// What has changed is looked at `after` that time, or sooner if that is due already, and a
    /// round after the last one.
    fn schedule(&mut self, after: Duration) {
        let changes = &mut self.changes;
        let soonest = self.now.saturating_add(after);
        let next = changes.last.map(|last| last.saturating_add(ROUND));
        let at = next.map_or(soonest, |next| next.max(soonest));
        changes.at = Some(changes.at.map_or(at, |before| before.min(at)));
    }

    /// Goes on to the next questions, if there are none left.
    pub(super) fn begin_round(&mut self) {
        if self.questions.is_empty() {
            self.look_at_changes();
        }
        if self.questions.is_empty() && std::mem::take(&mut self.scr_is_due) {
            self.questions.push_back(Question::Scr);
        }
    }

    /// Begins a round of questions if something has changed, and it is time.
    fn look_at_changes(&mut self) {
        debug_assert_eq!(self.state, ClientState::Up);
        if self.changes.at.take_if(|at| *at <= self.now).is_none() {
            return;
        }
        self.changes.begin(self.now);
        self.ask_of_changes();
        self.scr_is_due = self.needs_scr;
    }

    fn ask_of_changes(&mut self) {
        let named = std::mem::take(&mut self.changes.ports);
        let discovers = self.discovers();
        if std::mem::take(&mut self.changes.is_all) {
            if discovers || !self.ports.is_empty() {
                self.questions.push_back(Question::List);
            }
            return;
        }
        let is_of_interest = |fc_id: &FcId| discovers || self.ports.has(*fc_id);
        let named = named.into_iter().filter(is_of_interest);
        self.questions.extend(named.map(Question::Name));
    }
}

/// How much of the address in a page of an RSCN counts: 0, all of it.
pub(in crate::port) const ADDRESS_FORMAT: u8 = 3;

/// Ports that are asked for one by one; of more, all are listed.
const MAX_CHANGES: usize = 64;

/// For so long changes are gathered.
const GATHERING: Duration = Duration::from_millis(100);

/// Between two rounds of questions about changes.
const ROUND: Duration = Duration::from_secs(1);

/// After a round that came to nothing, doubled up to 64 s.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_DOUBLINGS: u32 = 5;
