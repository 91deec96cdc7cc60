//! What services of the fabric answer, and what they tell by themselves.

use std::collections::BTreeMap;

use scsi::medium::Now;

use super::ports::KnownPort;
use super::requests::{FIRST_NEEDED, Question};
use super::{AskedQuestion, ClientState, NameClient, NameClientEvent};
use crate::fip::enode::FabricNotice;
use crate::fip::{Neighbour, UnlinkReason};
use crate::wire::ct::name_server::{FeatureBits, NameServerAccept, code};
use crate::wire::ct::{self, CtCode, CtHeader, CtReject, explanation};
use crate::wire::els::{Code, Reply, ServiceParameters, reason};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FrameType, RCtl};
use crate::wire::names::{FcId, Wwn};

impl AskedQuestion {
    /// Whether a frame is of the answer.
    fn is_answered_by(&self, frame: &ReceivedFrame<'_>) -> bool {
        let header = &frame.header;
        let kind = if self.question.is_els() {
            (RCtl::ELS_REPLY, FrameType::ELS)
        } else {
            (RCtl::SOLICITED_CONTROL, FrameType::CT)
        };
        let is_its = header.s_id == self.question.service() && header.ox_id == self.ox_id;
        is_its && (header.r_ctl, header.kind) == kind
    }
}

impl NameClient {
    /// A frame of a service that is no request.
    pub(in crate::port) fn receive(&mut self, now: Now, frame: &ReceivedFrame<'_>) {
        self.tick(now);
        let is_its = |asked: &&mut AskedQuestion| asked.is_answered_by(frame);
        let claim = self.asked_claim.as_mut().filter(is_its);
        let Some(asked) = claim.or_else(|| self.asked.as_mut().filter(is_its)) else {
            return;
        };
        let question = asked.question;
        if let Some(payload) = asked.answer.take(frame) {
            self.silences = 0;
            self.answer_came(question, &payload);
            self.go_on();
        }
    }

    fn answer_came(&mut self, question: Question, payload: &[u8]) {
        if matches!(question, Question::Claim(_)) {
            return self.claim_answered(payload);
        }
        self.asked = None;
        if question.is_els() {
            self.els_answered(question, payload);
        } else {
            self.ct_answered(question, payload);
        }
    }

    fn els_answered(&mut self, question: Question, payload: &[u8]) {
        let code = match question {
            Question::Plogi => Code::PLOGI,
            _ => Code::SCR,
        };
        match Reply::parse(code, payload) {
            Ok(Reply::Login(_) | Reply::Accept) => {
                self.subscribed();
                self.answered();
            }
            Ok(Reply::Reject(why)) if why.reason == reason::LOGICAL_BUSY => self.wait(question),
            Ok(Reply::Reject(reject)) => {
                self.notice(FabricNotice::ServiceRejected {
                    request: question.name(),
                    reject,
                });
                match question {
                    Question::Scr => {
                        self.needs_scr = false;
                        self.answered();
                    }
                    _ => self.fail(),
                }
            }
            _ => self.wait(question),
        }
    }

    /// Changes are told from now on; what has changed before has to be looked at.
    fn subscribed(&mut self) {
        if std::mem::take(&mut self.needs_scr) {
            self.list_soon();
        }
    }

    /// The answer is of no use: the question is asked again after E_D_TOV.
    fn wait(&mut self, question: Question) {
        self.not_before = Some(self.now.saturating_add(self.config.login.e_d_tov));
        self.unanswered(question);
    }

    fn ct_answered(&mut self, question: Question, payload: &[u8]) {
        let Ok((header, payload)) = CtHeader::parse(payload) else {
            return self.wait(question);
        };
        match header.code {
            CtCode::ACCEPT => self.accepted(question, &header, payload),
            CtCode::REJECT if header.why.reason == ct::reason::LOGICAL_BUSY => self.wait(question),
            CtCode::REJECT => self.rejected(question, header.why),
            _ => self.wait(question),
        }
    }

    fn rejected(&mut self, question: Question, reject: CtReject) {
        match question {
            Question::Register(number) => {
                let is_needed = number >= FIRST_NEEDED;
                self.notice(FabricNotice::RegistrationRejected {
                    request: question.name(),
                    reject,
                    is_needed,
                });
                if is_needed {
                    return self.fail();
                }
            }
            Question::List if is_empty(reject) => self.listed(&[], true),
            Question::List => self.list_refused(question, reject),
            Question::Name(fc_id) if is_absent(reject) => self.lose(fc_id, UnlinkReason::Departed),
            // The list tells whether it is there.
            Question::Name(_) => self.list_later(),
            // It is gone again.
            Question::Features(..) if is_absent(reject) => {}
            // A name server that does not keep features.
            Question::Features(fc_id, wwpn) => self.find(fc_id, wwpn, None),
            Question::Plogi | Question::Scr | Question::Claim(_) => {}
        }
        self.answered();
    }

    /// Says nothing about which ports there are: what is known stays. Nothing more is looked for
    /// but when it is asked again.
    fn list_refused(&mut self, question: Question, reject: CtReject) {
        self.has_listed = true;
        if self.refusal.replace(reject) != Some(reject) {
            let request = question.name();
            self.notice(FabricNotice::ListRejected { request, reject });
        }
        self.list_later();
    }

    fn accepted(&mut self, question: Question, header: &CtHeader, payload: &[u8]) {
        let to = match question {
            Question::List => code::GPN_FT,
            Question::Name(_) => code::GPN_ID,
            Question::Features(..) => code::GFF_ID,
            _ => return self.answered(),
        };
        match (question, NameServerAccept::parse(to, payload)) {
            (_, Ok(NameServerAccept::Names(ports))) => self.listed(&ports, header.size == 0),
            (Question::Name(fc_id), Ok(NameServerAccept::Name(wwpn))) => self.named(fc_id, wwpn),
            (Question::Features(fc_id, wwpn), Ok(NameServerAccept::Features(features))) => {
                self.find(fc_id, wwpn, Some(features.of(FrameType::FCP)));
            }
            _ => return self.wait(question),
        }
        self.answered();
    }

    /// These ports of FCP there are, and no others if the list `is_whole`.
    fn listed(&mut self, ports: &[(FcId, Wwn)], is_whole: bool) {
        (self.has_listed, self.refusal) = (true, None);
        let listed: BTreeMap<FcId, Wwn> = ports.iter().copied().collect();
        let known: Vec<(FcId, KnownPort)> = self.ports.iter().collect();
        for (fc_id, port) in known {
            match listed.get(&fc_id) {
                Some(wwpn) if *wwpn == port.wwpn => {
                    self.ports.list(fc_id);
                    // Whatever the list is asked for: what it stands in for may have been about it.
                    self.events.push_back(NameClientEvent::Changed(fc_id));
                }
                Some(_) => self.lose(fc_id, UnlinkReason::Moved),
                None if !is_whole => {}
                None if port.is_listed => self.lose(fc_id, UnlinkReason::Departed),
                // It has logged in to us, and may be there all the same.
                None => self.questions.push_back(Question::Name(fc_id)),
            }
        }
        if self.discovers() {
            self.silent.retain(|fc_id| listed.contains_key(fc_id));
            let is_silent = |(fc_id, _): &(FcId, Wwn)| self.silent.contains(fc_id);
            let (last, first): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_silent);
            for (fc_id, wwpn) in first.into_iter().chain(last) {
                self.look_at(fc_id, wwpn);
            }
        }
    }

    /// A port that is there, and not known or of no use until now.
    fn look_at(&mut self, fc_id: FcId, wwpn: Wwn) {
        let is_us = fc_id == self.config.login.fc_id || wwpn == self.config.parameters.wwpn;
        let is_port = !fc_id.is_well_known() && fc_id != FcId::UNIDENTIFIED;
        let has_room = self.questions.len() <= super::ports::MAX_PORTS;
        let is_news = !self.ports.has(fc_id) || self.ports.is_no_target(fc_id);
        if !is_us && is_port && has_room && is_news {
            self.questions.push_back(Question::Features(fc_id, wwpn));
        }
    }

    /// Who has an N_Port_ID that was named by an RSCN, or is known by a login alone.
    fn named(&mut self, fc_id: FcId, wwpn: Wwn) {
        match self.ports.name(fc_id) {
            Some(known) if known == wwpn => {
                self.events.push_back(NameClientEvent::Changed(fc_id));
                if self.discovers() {
                    self.look_at(fc_id, wwpn);
                }
            }
            known => {
                if known.is_some() {
                    self.lose(fc_id, UnlinkReason::Moved);
                }
                if self.discovers() {
                    self.look_at(fc_id, wwpn);
                }
            }
        }
    }

    /// There is a port, with these features of FCP if they are known.
    fn find(&mut self, fc_id: FcId, wwpn: Wwn, features: Option<u8>) {
        self.silent.remove(&fc_id);
        // A port that says nothing of FCP may be either.
        let has = |bit| {
            features
                .filter(|bits| *bits != 0)
                .map(|bits| bits & bit != 0)
        };
        let is_target = has(FeatureBits::FCP_TARGET);
        if self.ports.has(fc_id) {
            if self.ports.is_no_target(fc_id) && is_target != Some(false) {
                self.events.push_back(NameClientEvent::IsTarget(fc_id));
            }
            return self.ports.learn(fc_id, is_target);
        }
        if let Some(before) = self.ports.id(wwpn) {
            self.lose(before, UnlinkReason::Moved);
        }
        if self.is_full() {
            return;
        }
        let known = KnownPort {
            wwpn,
            is_listed: true,
            is_target,
        };
        self.ports.insert(fc_id, known);
        let neighbour = Neighbour {
            target: is_target,
            initiator: has(FeatureBits::FCP_INITIATOR),
            ..self.neighbour(fc_id, wwpn, Wwn(0))
        };
        self.events.push_back(NameClientEvent::Found(neighbour));
    }

    /// A port has sent PLOGI that is not known, or by another name, which is its own. Gives what
    /// there is to know of it; `None` if it is one too many.
    pub(in crate::port) fn introduce(
        &mut self,
        fc_id: FcId,
        says: &ServiceParameters,
    ) -> Option<Neighbour> {
        self.lose(fc_id, UnlinkReason::Moved);
        if let Some(before) = self.ports.id(says.wwpn) {
            self.lose(before, UnlinkReason::Moved);
        }
        if self.is_full() {
            return None;
        }
        let known = KnownPort {
            wwpn: says.wwpn,
            is_listed: false,
            is_target: None,
        };
        self.ports.insert(fc_id, known);
        Some(self.neighbour(fc_id, says.wwpn, says.wwnn))
    }

    /// Whether no more ports are taken in, which is told once.
    fn is_full(&mut self) -> bool {
        let is_full = self.ports.is_full();
        if is_full && !std::mem::replace(&mut self.is_full_told, true) {
            self.notice(FabricNotice::TooManyPorts);
        }
        is_full
    }

    const fn neighbour(&self, fc_id: FcId, wwpn: Wwn, wwnn: Wwn) -> Neighbour {
        let login = &self.config.login;
        Neighbour {
            fc_id,
            mac: login.fcf,
            enode: login.fcf,
            wwpn,
            wwnn,
            payload_max: login.payload_max,
            target: None,
            initiator: None,
        }
    }

    fn lose(&mut self, fc_id: FcId, why: UnlinkReason) {
        if self.ports.remove(fc_id) {
            self.events.push_back(NameClientEvent::Lost(fc_id, why));
        }
    }

    /// A LOGO of the name server.
    pub(in crate::port) fn logged_out(&mut self, now: Now) {
        self.tick(now);
        if self.state != ClientState::LoggingIn {
            self.log_in_again();
        }
    }
}

/// Whether a reject of GPN_FT says that there are no ports of FCP.
const fn is_empty(reject: CtReject) -> bool {
    reject.reason == ct::reason::UNABLE
        && reject.explanation == explanation::FC4_TYPES_NOT_REGISTERED
}

/// Whether a reject says that no port that may be seen has this N_Port_ID.
pub(super) const fn is_absent(reject: CtReject) -> bool {
    reject.reason == ct::reason::UNABLE
        && matches!(
            reject.explanation,
            explanation::PORT_ID_NOT_REGISTERED
                | explanation::PORT_NAME_NOT_REGISTERED
                | explanation::ACCESS_DENIED
                | explanation::UNACCEPTABLE_PORT_ID
        )
}
