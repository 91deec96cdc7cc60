//! Further N_Ports of an ENode (NPIV; FC-LS-2, FDISC): each has its own WWPN and N_Port_ID.
//!
//! The ENode logs in by FLOGI, which is another machine of the same MAC address; this one comes
//! after it by FDISC. Both hear what FCFs tell the ENode, so they choose the same FCF. This one
//! learns from the answer to that FLOGI when it is its turn, and when its own login is over: an
//! FLOGI ends all logins of an ENode before it.
//!
//! | in a further N_Port | |
//! |---|---|
//! | login | FDISC in place of FLOGI, 100 ms later |
//! | LS_RJT, login required | the next FCF, as the ENode may be at that; after the last one 1 s of rest, then the next VLAN if those are discovered, and nothing is told |
//! | LS_ACC of an FLOGI of the ENode | from every state before the login: FDISC to that FCF; after it: the login is over, and FDISC |
//! | up | keep alives of the VN_Port alone |
//!
//! Replies are told apart by their OX_ID: each of these N_Ports has some of its own.

use std::time::Duration;

use super::{Enode, EnodeState, FabricNotice, UnlinkReason};
use crate::wire::els::{Code, Features, LsRejectReason, Reply, explanation};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{DescriptorType, Encapsulated};
use crate::wire::frame::OxId;

impl Enode {
    /// Whether it is a further N_Port of its ENode (NPIV).
    #[must_use]
    pub const fn is_further(&self) -> bool {
        self.further.is_some()
    }

    /// What the login is asked for by.
    pub(super) const fn login_kind(&self) -> DescriptorType {
        match self.further {
            None => DescriptorType::FLOGI,
            Some(_) => DescriptorType::FDISC,
        }
    }

    /// The next OX_ID; those of further N_Ports are 64 each.
    pub(super) const fn take_ox_id(&mut self) -> OxId {
        let (first, count) = match self.further {
            None => (0, OxId::UNASSIGNED.0),
            Some(number) => (number % NUMBERS * OX_IDS, OX_IDS),
        };
        let next = self.next_ox_id % count;
        self.next_ox_id = (next + 1) % count;
        OxId(first + next)
    }

    /// Whether an FDISC was rejected only because the ENode has not logged in, or not there.
    pub(super) fn awaits_flogi(&self, reject: LsRejectReason) -> bool {
        self.further.is_some() && reject.explanation == explanation::LOGIN_REQUIRED
    }

    /// The ENode has not logged in to this FCF.
    pub(super) fn await_flogi(&mut self, fcf: Mac) {
        self.fcfs.tried(fcf);
        match self.fcfs.choose(&self.config.fabric) {
            super::fcf::FcfChoice::Best(next) => self.log_in(next, 1),
            _ => {
                // It may be in another VLAN: those are asked for again, the next one first.
                self.has_refusal |= self.config.fabric.discovers_vlan;
                self.rest(AWAITED);
            }
        }
    }

    /// An FCF has accepted an FLOGI of the ENode.
    pub(super) fn flogi_answered(&mut self, ethernet: &EthernetHeader, els: &Encapsulated<'_>) {
        let Ok(Reply::Login(says)) = Reply::parse(Code::FLOGI, els.payload) else {
            return;
        };
        let fcf = ethernet.src;
        let is_to_us = ethernet.dst == self.config.mac && self.may_follow(fcf);
        let ox_id = Some(els.header.ox_id);
        if !is_to_us || self.is_leaving || std::mem::replace(&mut self.flogi, ox_id) == ox_id {
            return;
        }
        if !says.features.has(Features::NPIV) {
            return self.tell_problem(FabricNotice::NoNpiv { fcf });
        }
        match self.state {
            EnodeState::Up { .. } => {
                self.release(UnlinkReason::Restarted);
                self.log_in(fcf, 1);
            }
            EnodeState::Soliciting { .. } | EnodeState::Resting { .. } => self.log_in(fcf, 1),
            _ => {}
        }
    }

    /// Whether the ENode can have logged in there: any station can send what looks like an answer.
    fn may_follow(&self, fcf: Mac) -> bool {
        let wanted = &self.config.fabric;
        let known = self.fcfs.get(fcf);
        let is_choice = known.is_some_and(|fcf| fcf.is_usable() && fcf.is_wanted(wanted));
        is_choice && self.login().is_none_or(|login| login.fcf == fcf)
    }

    /// Whether a reply is one to an FLOGI of the ENode.
    pub(super) fn is_flogi_of_enode(&self, els: &Encapsulated<'_>) -> bool {
        self.further.is_some() && els.kind == DescriptorType::FLOGI
    }
}

/// How long it is waited for the FLOGI of the ENode, whose answer may be lost.
const AWAITED: Duration = Duration::from_secs(1);

/// After the choice of an ENode, which has the same FCFs.
pub(super) const BEHIND: Duration = Duration::from_millis(100);

/// OX_IDs of each further N_Port, and how many of those can be told apart.
const OX_IDS: u16 = 64;
const NUMBERS: u16 = 1023;
