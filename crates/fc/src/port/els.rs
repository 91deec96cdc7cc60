//! Extended link services: the remote port's own, or those about an exchange of FCP (FC-LS-2).

use super::{Fc4Layer, Port};
use crate::remote::{OxIds, RemoteId, RemotePort, RequestedExchange, Role};
use crate::wire::els::{Code, Els, LinkErrors, LsRejectReason, Reply, ServicePage};
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::names::FcId;
use scsi::violation::Violation;

impl<F: Fc4Layer> Port<F> {
    pub(super) fn els_request(&mut self, id: RemoteId, is_up: bool, frame: &ReceivedFrame<'_>) {
        let code = Code(frame.payload.first().copied().unwrap_or_default());
        if is_up && F::ROLE == Role::Target && matches!(code, Code::REC | Code::RRQ) {
            return self.fc4.receive(self.now, id, frame);
        }
        if !is_whole(frame) {
            return self.remark_on(id, NOT_WHOLE);
        }
        if code == Code::PLOGI && self.is_news(id, frame) {
            return self.plogi_from_unknown(frame);
        }
        let asked = RequestedExchange {
            ox_id: frame.header.ox_id,
            rx_id: frame.header.rx_id,
        };
        match Els::parse(frame.payload) {
            Ok(Els::Rls(_)) => {
                let errors = Reply::Rls(self.link_errors());
                self.queue(id, asked.answered(&errors));
            }
            Ok(Els::Tprlo(pages)) => self.third_party_logout(id, asked, &pages),
            Ok(els) => self.with_id(id, |remote, cx| remote.request_came(cx, asked, els)),
            Err(_) => {
                self.remark_on(id, UNREADABLE);
                self.queue(id, asked.answered(&Reply::Reject(LsRejectReason::LENGTH)));
            }
        }
    }

    pub(super) fn els_reply(&mut self, id: RemoteId, is_up: bool, frame: &ReceivedFrame<'_>) {
        let ox_id = frame.header.ox_id;
        if !OxIds::has(ox_id) {
            if is_up {
                self.fc4.receive(self.now, id, frame);
            }
        } else if is_whole(frame) {
            let payload = frame.payload;
            self.with_id(id, |remote, cx| remote.answer_came(cx, ox_id, payload));
        }
    }

    /// TPRLO ends image pairs that other ports have with us. They learn of it by the LOGO that
    /// answers their next command.
    fn third_party_logout(
        &mut self,
        id: RemoteId,
        asked: RequestedExchange,
        pages: &[ServicePage],
    ) {
        if !self.remotes.get(id).is_some_and(RemotePort::is_logged_in) {
            return self.queue(id, asked.answered(&Reply::Reject(LsRejectReason::NO_LOGIN)));
        }
        let answers = pages.iter().map(|page| {
            if page.concerns_fcp() {
                page.logged_out(ServicePage::EXECUTED)
            } else {
                page.logged_out(ServicePage::INVALID)
            }
        });
        self.queue(id, asked.answered(&Reply::Process(answers.collect())));
        let mut meant = self.meant(id, pages);
        meant.retain(|id| self.remotes.get(*id).is_some_and(RemotePort::is_up));
        if meant.iter().any(|other| *other != id) {
            self.remark_on(id, THIRD_PARTY);
        }
        for id in meant {
            self.with_id(id, RemotePort::unpaired);
        }
    }

    /// Whose image pairs a TPRLO is to end; where it names none, its sender's.
    fn meant(&self, sender: RemoteId, pages: &[ServicePage]) -> Vec<RemoteId> {
        let pages = || pages.iter().filter(|page| page.concerns_fcp());
        if pages().any(|page| page.flags & ServicePage::GLOBAL != 0) {
            return self.remotes().map(RemotePort::id).collect();
        }
        let named = pages().filter_map(|page| match page.flags & ServicePage::THIRD_PARTY {
            0 => Some(sender),
            _ => self.remotes.at(FcId(page.parameters & 0xff_ffff)),
        });
        named.collect()
    }

    /// The link error status block (FC-LS-2, RLS; FC-BB-6 says what it means on Ethernet). Word 6
    /// counts Ethernet frames with a wrong FCS, which come no farther than the interface; FC frames
    /// with a wrong CRC are in [`super::PortStatistics::bad_crc`].
    pub(super) fn link_errors(&self) -> LinkErrors {
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        LinkErrors {
            link_failures: short(self.fip.statistics().link_downs),
            sync_losses: short(self.fip.statistics().link_failures),
            ..LinkErrors::default()
        }
    }
}

/// Whether a frame is a whole sequence.
pub(super) fn is_whole(frame: &ReceivedFrame<'_>) -> bool {
    let delimiters = (frame.sof, frame.eof) == (Sof::I3, Eof::T);
    delimiters && frame.header.f_ctl.end_sequence()
}

const NOT_WHOLE: Violation = Violation {
    rule: "an extended link service in more than one frame",
    clause: "FC-LS-2",
};

const THIRD_PARTY: Violation = Violation {
    rule: "a TPRLO, which logged out other ports",
    clause: "FC-LS-2",
};

const UNREADABLE: Violation = Violation {
    rule: "an extended link service with inconsistent lengths",
    clause: "FC-LS-2",
};
