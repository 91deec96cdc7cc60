//! FLOGI and LOGO between the ports of VN2VN: they travel inside FIP, and an FLOGI that is accepted
//! makes the virtual link.
//!
//! | link | FLOGI comes | ours is accepted | ours is rejected | no answer for 2 s | LOGO comes |
//! |---|---|---|---|---|---|
//! | none | up | | | | none |
//! | asked | crossed | up | rejected | asked again; none after four | none |
//! | rejected | up | | | asked again; none after four | none |
//! | crossed | crossed | up | up | up | none |
//! | up | lost, then up | | | | lost |
//! | left | rejected | | | | none |
//!
//! Every LOGO of a neighbour is accepted, and every FLOGI but before we are up, and after we have
//! logged out, until its next Beacon: Linux logs in again at once. Was that accepted, or no answer
//! left, it would wait for 8 s before it listens to a port that takes our place with the same
//! N_Port_ID. A port whose request crossed another waits for the answer to its own, as the other
//! one takes nothing else before it has come (Linux is busy until then). One whose request was
//! rejected has its answer: it accepts the other's, and has to hear the PLOGI that follows at once.
//! Linux does so with a port that is back after a restart, and would ask again after 8 s only.

use std::time::Duration;

use scsi::medium::Now;

use super::els::encapsulated;
use super::neighbour::{Neighbour, NeighbourEntry};
use super::{Fip, FipEvent, FipState, Mode, UnlinkReason};
use crate::wire::els::{Code, Els, Logo, LsRejectReason, Reply, explanation, reason};
use crate::wire::ethernet::{self, Mac};
use crate::wire::fip::{DescriptorType, Encapsulated, FipMessage};
use crate::wire::frame::OxId;
use crate::wire::names::FcId;
use scsi::violation::Violation;

/// What there is between a neighbour and us.
#[derive(Debug)]
pub(super) struct VirtualLink {
    state: LinkState,
    /// The neighbour's last FLOGI, and until when another of that number is the same one again.
    answered: Option<(OxId, Now)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    None,
    /// Our FLOGI, which is not answered.
    Asked {
        ox_id: OxId,
        until: Now,
        tries: u32,
    },
    /// It was rejected, and may be repeated then.
    Rejected {
        until: Now,
        tries: u32,
    },
    /// Both have sent one, and ours is not answered.
    Crossed {
        ox_id: OxId,
        until: Now,
    },
    Up,
    /// We have logged out.
    Left,
}

impl VirtualLink {
    pub(super) const fn new() -> Self {
        Self {
            state: LinkState::None,
            answered: None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Neither end has any more to do with what was before.
    pub(super) fn begin_anew(&mut self) {
        if self.state == LinkState::Left {
            self.state = LinkState::None;
        }
    }

    /// Whether it was up.
    pub(super) fn end(&mut self) -> bool {
        let was_up = self.is_up();
        *self = Self::new();
        was_up
    }

    pub(super) const fn deadline(&self) -> Option<Now> {
        match self.state {
            LinkState::Asked { until, .. }
            | LinkState::Rejected { until, .. }
            | LinkState::Crossed { until, .. } => Some(until),
            LinkState::None | LinkState::Up | LinkState::Left => None,
        }
    }
}

impl Fip {
    /// Asks for a virtual link to a port, if both are ready for it and none is in progress.
    pub(super) fn log_in(&mut self, fc_id: FcId) {
        let crowded = self.mode == Mode::PointToPoint && self.neighbours.entries.len() > 1;
        if self.state != FipState::Up || crowded || self.is_leaving {
            return;
        }
        let entry = self.neighbours.entries.get(&fc_id);
        let ready = |entry: &NeighbourEntry| {
            entry.claimed && entry.heard && entry.link.state == LinkState::None
        };
        if entry.is_some_and(ready) {
            self.ask(fc_id, 1);
        }
    }

    fn ask(&mut self, fc_id: FcId, tries: u32) {
        let Some(enode) = self.neighbours.enode(fc_id) else {
            return;
        };
        let flogi = Els::Flogi(self.service_parameters());
        let ox_id = self.request(DescriptorType::FLOGI, enode, fc_id, &flogi);
        let until = self.now.saturating_add(PATIENCE);
        self.neighbours.wake_at(until);
        if let Some(entry) = self.neighbours.entries.get_mut(&fc_id) {
            entry.link.state = LinkState::Asked {
                ox_id,
                until,
                tries,
            };
        }
    }

    /// Our FLOGI was not answered in time, or the rejected one may be repeated.
    pub(super) fn log_in_again(&mut self, fc_id: FcId) {
        let Some(entry) = self.neighbours.entries.get_mut(&fc_id) else {
            return;
        };
        match entry.link.state {
            LinkState::Asked { tries, .. } | LinkState::Rejected { tries, .. } if tries < TRIES => {
                self.ask(fc_id, tries + 1);
            }
            LinkState::Asked { .. } | LinkState::Rejected { .. } => {
                // The next Beacon begins anew, with a claim of ours: it goes to all, so that
                // switches learn again where we are.
                entry.link.end();
                (entry.heard, entry.claimed) = (false, false);
            }
            LinkState::Crossed { .. } => self.linked(fc_id),
            LinkState::None | LinkState::Up | LinkState::Left => {}
        }
    }

    fn linked(&mut self, fc_id: FcId) {
        if let Some(entry) = self.neighbours.link(fc_id) {
            entry.link.state = LinkState::Up;
            self.budget.reserve([entry.who.enode, entry.who.mac]);
            self.events.push_back(FipEvent::Found(entry.who));
        }
    }

    /// Logs out of a neighbour, as when the N_Port is to go. What it answers is not waited for.
    /// Its next Beacon begins anew.
    pub fn log_out(&mut self, now: Now, fc_id: FcId) {
        self.tick(now);
        if let Some(enode) = self.unlink(fc_id, UnlinkReason::LoggedOut) {
            let logo = Logo {
                fc_id: self.fc_id,
                wwpn: self.config.wwpn,
            };
            self.request(DescriptorType::LOGO, enode, fc_id, &Els::Logo(logo));
        }
        if let Some(entry) = self.neighbours.entries.get_mut(&fc_id) {
            entry.link.state = LinkState::Left;
        }
    }

    /// Ends the link to a port that is known, and gives the address of its ENode.
    pub(super) fn unlink(&mut self, fc_id: FcId, why: UnlinkReason) -> Option<Mac> {
        let (entry, was_up) = self.neighbours.unlink(fc_id)?;
        entry.heard = false;
        let who = entry.who;
        if was_up {
            self.lost(&who, why);
        }
        Some(who.enode)
    }

    pub(super) fn els_request(
        &mut self,
        ethernet: &ethernet::EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let els = encapsulated(message)?;
        if ethernet.dst != self.config.mac {
            return Ok(());
        }
        if self.state != FipState::Up {
            self.not_yet(ethernet.src, &els);
            return Ok(());
        }
        let Some(who) = self.sender(ethernet, &els)? else {
            self.reject(ethernet.src, &els, NOT_NEIGHBOUR);
            return Ok(());
        };
        match (els.kind, Els::parse(els.payload)) {
            (DescriptorType::FLOGI, Ok(Els::Flogi(login))) if login.wwpn == who.wwpn => {
                self.flogi_request(&who, &els);
            }
            (DescriptorType::FLOGI, Ok(Els::Flogi(_))) => {
                self.reject(ethernet.src, &els, OTHER_NAME);
            }
            (DescriptorType::LOGO, Ok(Els::Logo(_))) => {
                self.unlink(who.fc_id, UnlinkReason::LoggedOut);
                self.accept(&who, &els, &Reply::Accept);
            }
            (_, Err(_)) => self.reject(ethernet.src, &els, TOO_SHORT),
            _ => self.reject(ethernet.src, &els, UNSUPPORTED),
        }
        Ok(())
    }

    /// While we claim, a port that logs in means what we were before. Our Beacon will tell it so,
    /// and an answer that it need not wait: without one Linux does for 8 s, with one for 2 s.
    fn not_yet(&mut self, from: Mac, els: &Encapsulated<'_>) {
        if els.kind == DescriptorType::FLOGI && els.header.d_id == self.fc_id {
            self.reject(from, els, NOT_YET);
        }
    }

    /// Which neighbour an ELS is from. It comes from the ENode that claimed the N_Port_ID, to ours.
    fn sender(
        &self,
        ethernet: &ethernet::EthernetHeader,
        els: &Encapsulated<'_>,
    ) -> Result<Option<Neighbour>, Violation> {
        if els.header.d_id != self.fc_id && els.header.d_id != FcId::FABRIC_F {
            return Err(OTHER_ID);
        }
        let entry = self.neighbours.entries.get(&els.header.s_id);
        let Some(entry) = entry.filter(|entry| entry.claimed) else {
            return Ok(None);
        };
        if entry.who.enode != ethernet.src {
            return Err(OTHER_ENODE);
        }
        Ok(Some(entry.who))
    }

    fn flogi_request(&mut self, who: &Neighbour, els: &Encapsulated<'_>) {
        let Some(entry) = self.neighbours.entries.get_mut(&who.fc_id) else {
            return;
        };
        if entry.link.state == LinkState::Left || self.is_leaving {
            return self.reject(who.enode, els, LEAVING);
        }
        let ox_id = els.header.ox_id;
        let again = entry.link.answered;
        let again = again.is_some_and(|(id, until)| id == ox_id && self.now < until);
        entry.link.answered = Some((ox_id, self.now.saturating_add(PATIENCE)));
        let before = entry.link.state;
        if let LinkState::Asked { ox_id, until, .. } = before {
            entry.link.state = LinkState::Crossed { ox_id, until };
        }
        self.accept(who, els, &Reply::Login(self.service_parameters()));
        match before {
            LinkState::None | LinkState::Rejected { .. } => self.linked(who.fc_id),
            LinkState::Up if !again => {
                self.lost(who, UnlinkReason::Restarted);
                self.linked(who.fc_id);
            }
            _ => {}
        }
    }

    pub(super) fn els_reply(
        &mut self,
        ethernet: &ethernet::EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let els = encapsulated(message)?;
        let known = ethernet.dst == self.config.mac && self.state == FipState::Up;
        let Some(who) = known
            .then(|| self.sender(ethernet, &els))
            .transpose()?
            .flatten()
        else {
            return Ok(());
        };
        let Some(entry) = self.neighbours.entries.get_mut(&who.fc_id) else {
            return Ok(());
        };
        let accepted = matches!(Reply::parse(Code::FLOGI, els.payload), Ok(Reply::Login(_)));
        match entry.link.state {
            LinkState::Asked {
                ox_id,
                until,
                tries,
            } if ox_id == els.header.ox_id && !accepted => {
                entry.link.state = LinkState::Rejected { until, tries };
            }
            LinkState::Asked { ox_id, .. } | LinkState::Crossed { ox_id, .. }
                if ox_id == els.header.ox_id =>
            {
                self.linked(who.fc_id);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The reason code of FC-BB-6 for what is wrong in FIP.
const FIP_ERROR: u8 = 0x20;
const NOT_NEIGHBOUR: LsRejectReason = LsRejectReason::new(FIP_ERROR, explanation::NOT_NEIGHBOUR);
const OTHER_NAME: LsRejectReason = LsRejectReason::new(reason::LOGICAL_ERROR, explanation::NONE);
const TOO_SHORT: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::PAYLOAD_LENGTH);
const NOT_YET: LsRejectReason = LsRejectReason::new(reason::LOGICAL_BUSY, explanation::NONE);
const LEAVING: LsRejectReason = LsRejectReason::new(reason::UNABLE, explanation::NONE);
const UNSUPPORTED: LsRejectReason = LsRejectReason::new(reason::NOT_SUPPORTED, explanation::NONE);

/// E_D_TOV, for which an FLOGI may be on its way, and its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// So often it is sent, then the next Beacon is waited for.
const TRIES: u32 = 4;

const OTHER_ID: Violation = Violation {
    rule: "an ELS in FIP for another N_Port_ID",
    clause: "FC-BB-6, VN2VN",
};

const OTHER_ENODE: Violation = Violation {
    rule: "an ELS in FIP from an ENode other than the one that claimed its S_ID",
    clause: "FC-BB-6, VN2VN",
};
