//! Requests of the other end, and answers to ours: to whom they are for.

use super::{Cx, RemotePort, RemoteState, RequestedExchange};
use crate::wire::els::{Adisc, Code, Els, LsRejectReason, NodeId, Reply, TimeOuts};
use crate::wire::frame::OxId;

impl RemotePort {
    /// A request that is neither FIP's nor about an exchange of FCP.
    pub(crate) fn request_came(&mut self, cx: &mut Cx<'_>, asked: RequestedExchange, els: Els) {
        match els {
            Els::Plogi(theirs) => self.plogi_asked(cx, asked, &theirs),
            Els::Logo(logo) => self.logo_asked(cx, asked, &logo),
            Els::Prli(pages) => self.prli_asked(cx, asked, pages),
            Els::Prlo(pages) => self.prlo_asked(cx, asked, &pages),
            // SCR is for fabric controllers.
            Els::Flogi(_) | Els::Fdisc(_) | Els::Scr(_) | Els::Other(_) => {
                self.refuse(cx, asked, LsRejectReason::NOT_SUPPORTED);
            }
            Els::Echo(data) => self.answer(cx, asked, &Reply::Echo(data)),
            Els::Rtv => self.answer(cx, asked, &Reply::Rtv(cx.local.time_outs())),
            Els::Rnid(_) => self.answer(cx, asked, &Reply::Rnid(cx.local.node_id())),
            Els::Rscn(_) => self.answer(cx, asked, &Reply::Accept),
            _ if !self.is_logged_in() => self.refuse(cx, asked, LsRejectReason::NO_LOGIN),
            Els::Pdisc(_) | Els::Adisc(_) if self.lacks_nexus(cx.local) => {
                self.refuse(cx, asked, LsRejectReason::NO_LOGIN);
            }
            Els::Pdisc(theirs) if theirs.wwpn == self.wwpn() => {
                self.answer(cx, asked, &Reply::Login(cx.local.parameters()));
            }
            Els::Pdisc(_) => self.refuse(cx, asked, LsRejectReason::OTHER_NAME),
            Els::Adisc(theirs) if theirs.wwpn != self.wwpn() => {
                self.refuse(cx, asked, LsRejectReason::OTHER_NAME);
            }
            Els::Adisc(_) => self.answer(cx, asked, &Reply::Adisc(cx.local.adisc())),
            _ => self.refuse(cx, asked, LsRejectReason::NO_EXCHANGE),
        }
    }

    /// An answer, which may be to a request that is not waited for any more.
    pub(crate) fn answer_came(&mut self, cx: &mut Cx<'_>, ox_id: OxId, payload: &[u8]) {
        if self.asked != Some(ox_id) {
            return;
        }
        let code = match self.state {
            RemoteState::Plogi => Code::PLOGI,
            RemoteState::Open => Code::ADISC,
            _ => Code::PRLI,
        };
        match Reply::parse(code, payload) {
            Ok(Reply::Login(theirs)) => self.plogi_answered(cx, &theirs),
            Ok(Reply::Process(pages)) => self.prli_answered(cx, &pages),
            Ok(Reply::Adisc(theirs)) => self.adisc_answered(cx, &theirs),
            Ok(Reply::Reject(why)) => self.refused(cx, why),
            _ if self.state == RemoteState::Open => self.unverified(cx),
            _ => {
                self.remark(cx, "a malformed response to PLOGI or PRLI", "FC-LS-2");
                self.again(cx, cx.local.e_d_tov);
            }
        }
    }
}

impl super::LocalPort {
    pub(crate) fn time_outs(&self) -> TimeOuts {
        let ms = |time: std::time::Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        TimeOuts {
            r_a_tov_ms: ms(self.r_a_tov),
            e_d_tov: ms(self.e_d_tov),
            qualifier: 0,
        }
    }

    /// Format 0: the common data alone.
    pub(crate) fn node_id(&self) -> NodeId {
        NodeId {
            format: 0,
            names: Some((self.wwpn, self.wwnn)),
            specific: Vec::new(),
        }
    }

    pub(super) fn adisc(&self) -> Adisc {
        Adisc {
            hard_address: crate::wire::names::FcId::UNIDENTIFIED,
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            fc_id: self.address.fc_id,
        }
    }
}
