//! PLOGIs from ports that are not known: the name in one is believed only if the name server has
//! the same for its N_Port_ID (GPN_ID). Access lists and the units that an initiator sees go by
//! names, and a switch vouches for the N_Port_ID of a frame, not for what a PLOGI says.
//!
//! | what comes of GPN_ID | what follows |
//! |---|---|
//! | the same name | the PLOGI is answered as that of a known port |
//! | another name, or none | LS_RJT, and a line in the log |
//! | a reject that says neither | LS_RJT, logical busy: the sender asks again |
//! | silence | the other claims first, then GPN_ID again; after three, LS_RJT, logical busy |
//! | none until the sender is about to give up its PLOGI | LS_RJT, logical busy |

use std::collections::VecDeque;

use scsi::medium::Now;

use super::answers::is_absent;
use super::requests::Question;
use super::{ClientState, NameClient, NameClientEvent};
use crate::fip::enode::FabricNotice;
use crate::remote::RequestedExchange;
use crate::wire::ct::name_server::{NameServerAccept, code};
use crate::wire::ct::{self, CtCode, CtHeader, CtReject};
use crate::wire::els::{LsRejectReason, ServiceParameters, explanation, reason};
use crate::wire::names::FcId;

/// A PLOGI whose answer waits.
#[derive(Clone, Debug)]
pub(in crate::port) struct LoginClaim {
    /// From which port.
    pub(in crate::port) from: FcId,
    /// What it says.
    pub(in crate::port) says: ServiceParameters,
    /// Its exchange.
    pub(in crate::port) exchange: RequestedExchange,
    /// When it is answered whatever the name server has said: soon after, its sender does not wait
    /// any longer.
    pub(in crate::port) until: Now,
    /// GPN_IDs about it that were not answered.
    pub(in crate::port) tries: u32,
}

impl NameClient {
    /// Asks whether a port has the name that its PLOGI tells. Of several PLOGIs of one port the
    /// last one is answered. Returns whether there was room.
    pub(in crate::port) fn claimed(&mut self, now: Now, claim: LoginClaim) -> bool {
        self.tick(now);
        let mut claims = self.claims.iter_mut();
        if let Some(before) = claims.find(|before| before.from == claim.from) {
            // A sender that asks more often than the name server is waited for is answered too.
            let tries = before.tries;
            *before = LoginClaim { tries, ..claim };
            return true;
        }
        if self.claims.len() >= MAX_CLAIMS {
            return false;
        }
        self.claims.push_back(claim);
        self.go_on();
        true
    }

    /// Asks about the first claim, as soon as the name server knows us.
    pub(super) fn ask_about_claim(&mut self) {
        let is_registered = matches!(self.state, ClientState::Subscribing | ClientState::Up);
        if !is_registered || self.asked_claim.is_some() {
            return;
        }
        if let Some(from) = self.claims.front().map(|claim| claim.from) {
            self.asked_claim = Some(self.ask(Question::Claim(from)));
        }
    }

    /// The name server has answered about the first claim.
    pub(super) fn claim_answered(&mut self, payload: &[u8]) {
        self.asked_claim = None;
        let Some(claim) = self.claims.pop_front() else {
            return;
        };
        let refused = match CtHeader::parse(payload) {
            Ok((header, payload)) if header.code == CtCode::ACCEPT => judged(&claim, payload),
            Ok((header, _)) if header.code == CtCode::REJECT => {
                let refused = of_reject(header.why);
                if refused == Some(BUSY) && header.why.reason != ct::reason::LOGICAL_BUSY {
                    let (request, reject) = (REQUEST, header.why);
                    self.notice(FabricNotice::ListRejected { request, reject });
                }
                refused
            }
            _ => Some(BUSY),
        };
        self.events.push_back(match refused {
            None => NameClientEvent::Proven(claim),
            Some(why) => NameClientEvent::Unproven(claim, why),
        });
    }

    /// When [`Self::expire_claims`] has something to do.
    pub(super) fn claims_deadline(&self) -> Option<Now> {
        let asked = self.asked_claim.as_ref().map(|asked| asked.until);
        let claims = self.claims.iter().map(|claim| claim.until);
        claims.chain(asked).min()
    }

    /// Goes on after a GPN_ID that was not answered, and answers claims that cannot wait longer.
    pub(super) fn expire_claims(&mut self) {
        let now = self.now;
        let is_late = |asked: &mut super::AskedQuestion| asked.until <= now;
        if self.asked_claim.take_if(is_late).is_some()
            && let Some(claim) = self.claims.pop_front()
        {
            self.claim_unanswered(claim);
        }
        let all = std::mem::take(&mut self.claims).into_iter();
        let (late, others): (VecDeque<_>, _) = all.partition(|claim| claim.until <= now);
        self.claims = others;
        for claim in late {
            let of_this = Question::Claim(claim.from);
            self.asked_claim.take_if(|asked| asked.question == of_this);
            self.busy(claim);
        }
    }

    /// The name server has said nothing about the claim: it is asked again, behind the others.
    fn claim_unanswered(&mut self, claim: LoginClaim) {
        let tries = claim.tries + 1;
        if tries < super::TRIES {
            return self.claims.push_back(LoginClaim { tries, ..claim });
        }
        self.notice(FabricNotice::ServiceSilent { request: REQUEST });
        self.busy(claim);
    }

    /// The sender may ask again.
    fn busy(&mut self, claim: LoginClaim) {
        self.events
            .push_back(NameClientEvent::Unproven(claim, BUSY));
    }
}

/// Why a claim is refused, by the name in an accept.
fn judged(claim: &LoginClaim, payload: &[u8]) -> Option<LsRejectReason> {
    match NameServerAccept::parse(code::GPN_ID, payload) {
        Ok(NameServerAccept::Name(wwpn)) if wwpn == claim.says.wwpn => None,
        Ok(NameServerAccept::Name(_)) => Some(LsRejectReason::OTHER_NAME),
        _ => Some(BUSY),
    }
}

/// Why a claim is refused, by a reject. A name server that does not know the request at all cannot
/// tell.
const fn of_reject(reject: CtReject) -> Option<LsRejectReason> {
    match reject.reason {
        ct::reason::NOT_SUPPORTED | ct::reason::INVALID_COMMAND => None,
        _ if is_absent(reject) => Some(LsRejectReason::NOT_ALLOWED),
        _ => Some(BUSY),
    }
}

/// What is asked about a claim.
const REQUEST: &str = "GPN_ID";

/// It is to ask again.
const BUSY: LsRejectReason = LsRejectReason::new(reason::LOGICAL_BUSY, explanation::NONE);

/// PLOGIs that wait for the name server. Further ones are rejected for lack of resources
/// (09h/29h).
const MAX_CLAIMS: usize = 256;
