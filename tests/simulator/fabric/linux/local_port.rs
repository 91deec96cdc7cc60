//! The N_Port of a Linux ENode once it has an N_Port_ID: the services of the fabric, and others.
//!
//! It registers names and types, registers for changes without a login to the fabric controller,
//! lists the ports of FCP and sends PLOGI to each of them, whatever they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fc::tests::frame;
use fc::wire::ct::name_server::{
    AddressScope, Fc4Types, FeatureBits, NameServerAccept, NameServerRequest, SymbolicName, code,
};
use fc::wire::ct::{CtCode, CtHeader};
use fc::wire::els::{Adisc, Code, Els, LsRejectReason, Reply, Rscn, explanation, reason};
use fc::wire::ethernet::{self, EthernetHeader};
use fc::wire::fcoe::{self, Eof, ReceivedFrame, Sof};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;

use super::{E_D_TOV, Linux, RETRIES};

/// What it asks services of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Plogi,
    /// RNN_ID, RSNN_NN, RSPN_ID, RFT_ID, RFF_ID.
    Register(usize),
    Scr,
    List,
    Name(FcId),
}

/// A request that is outstanding.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ox_id: OxId,
    until: Now,
    tries: u32,
}

/// Its view of the fabric.
#[derive(Debug, Default)]
pub(crate) struct LocalPort {
    questions: VecDeque<Question>,
    asked: Option<Asked>,
    /// Ports that the name server has told of.
    pub(crate) seen: BTreeMap<FcId, Wwn>,
    /// PLOGI to them.
    asking: BTreeMap<FcId, Asked>,
    /// Those that have accepted it.
    pub(crate) logged_in: BTreeSet<FcId>,
    /// Whether it has listed all ports once.
    pub(crate) is_ready: bool,
}

impl LocalPort {
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let asked = self.asking.values().chain(&self.asked);
        asked.map(|asked| asked.until).min()
    }

    /// Whether it has nothing left to ask.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_ready && self.questions.is_empty() && self.asking.is_empty()
    }
}

impl Linux {
    pub(super) fn begin_services(&mut self) {
        let registrations = (0..5).map(Question::Register);
        let first = [Question::Plogi].into_iter().chain(registrations);
        let questions = first.chain([Question::Scr, Question::List]).collect();
        self.port.local_port = LocalPort {
            questions,
            ..LocalPort::default()
        };
        self.ask(1);
    }

    /// Asks what is first.
    fn ask(&mut self, tries: u32) {
        let (Some(question), Some((fc_id, _))) = (
            self.port.local_port.questions.front().copied(),
            self.granted(),
        ) else {
            return;
        };
        let ox_id = self.take_ox_id();
        let (kind, to, payload) = match question {
            Question::Plogi => (ELS, FcId::DIRECTORY, Els::Plogi(self.parameters()).encode()),
            Question::Scr => (ELS, FcId::FABRIC_CONTROLLER, Els::Scr(3).encode()),
            Question::Register(number) => (CT, FcId::DIRECTORY, self.registration(fc_id, number)),
            Question::List => {
                let all = AddressScope { domain: 0, area: 0 };
                let list = NameServerRequest::GpnFt(all, FrameType::FCP);
                (CT, FcId::DIRECTORY, list.encode())
            }
            Question::Name(fc_id) => {
                let name = NameServerRequest::GpnId(fc_id);
                (CT, FcId::DIRECTORY, name.encode())
            }
        };
        self.request(kind, to, ox_id, &payload);
        self.port.local_port.asked = Some(self.asked(ox_id, tries));
    }

    fn asked(&self, ox_id: OxId, tries: u32) -> Asked {
        let until = self.now + E_D_TOV;
        Asked {
            ox_id,
            until,
            tries,
        }
    }

    fn registration(&self, fc_id: FcId, number: usize) -> Vec<u8> {
        let name = SymbolicName::new(b"fcoe v0.1 over eth0");
        let request = match number {
            0 => NameServerRequest::RnnId(fc_id, self.port.wwnn),
            1 => NameServerRequest::RsnnNn(self.port.wwnn, name),
            2 => NameServerRequest::RspnId(fc_id, name),
            3 => NameServerRequest::RftId(fc_id, Fc4Types::of(&[FrameType::FCP, FrameType::CT])),
            _ => NameServerRequest::RffId(fc_id, FeatureBits::FCP_INITIATOR, FrameType::FCP),
        };
        request.encode()
    }

    fn request(&mut self, kind: (RCtl, FrameType), to: FcId, ox_id: OxId, payload: &[u8]) {
        self.send(kind, FCtl::REQUEST, (to, ox_id, RxId::UNASSIGNED), payload);
    }

    fn send(
        &mut self,
        kind: (RCtl, FrameType),
        f_ctl: FCtl,
        (to, ox_id, rx_id): (FcId, OxId, RxId),
        payload: &[u8],
    ) {
        let (Some((fc_id, mac)), Some(fcf)) = (self.granted(), self.selected) else {
            return;
        };
        let ethernet = EthernetHeader::new(mac, fcf.mac, ethernet::FCOE);
        let header = FrameHeader {
            f_ctl,
            ..FrameHeader::new(kind, (fc_id, to), (ox_id, rx_id))
        };
        let frame = frame(&ethernet, (Sof::I3, Eof::T), &header, payload);
        self.out.push_back(frame);
    }

    /// Something was not answered in time.
    pub(super) fn services_due(&mut self) {
        let now = self.now;
        let is_late = |asked: &Asked| asked.until <= now;
        if let Some(asked) = self.port.local_port.asked.take_if(|asked| is_late(asked)) {
            match self.port.local_port.questions.front() {
                _ if asked.tries <= RETRIES => self.ask(asked.tries + 1),
                Some(Question::Name(_)) => self.relist(),
                _ => return self.begin_anew(),
            }
        }
        let asking = &self.port.local_port.asking;
        let late = asking.iter().filter(|(_, asked)| is_late(asked));
        let late: Vec<_> = late.map(|(fc_id, asked)| (*fc_id, asked.tries)).collect();
        for (fc_id, tries) in late {
            self.port.local_port.asking.remove(&fc_id);
            if tries <= RETRIES {
                self.plogi(fc_id, tries + 1);
            }
        }
    }

    fn relist(&mut self) {
        self.port.local_port.questions = VecDeque::from([Question::List]);
        self.ask(1);
    }

    fn next_question(&mut self) {
        self.port.local_port.asked = None;
        self.port.local_port.questions.pop_front();
        self.ask(1);
    }

    fn plogi(&mut self, fc_id: FcId, tries: u32) {
        let ox_id = self.take_ox_id();
        let plogi = Els::Plogi(self.parameters()).encode();
        self.request(ELS, fc_id, ox_id, &plogi);
        let asked = self.asked(ox_id, tries);
        self.port.local_port.asking.insert(fc_id, asked);
    }

    pub(super) fn fcoe(&mut self, ethernet: &EthernetHeader, payload: &[u8]) {
        let Ok(frame) = fcoe::decode(payload) else {
            return;
        };
        let is_from = self.selected.is_some_and(|fcf| fcf.mac == ethernet.src);
        let [.., a, b, c] = ethernet.dst.0;
        let is_to = FcId::from_bytes([a, b, c]) == frame.header.d_id;
        let is_ours = self
            .granted()
            .is_some_and(|ours| ours.0 == frame.header.d_id);
        if !(is_from && is_to && is_ours) {
            return;
        }
        match (frame.header.r_ctl, frame.header.kind) {
            ELS => self.els_request(&frame),
            (RCtl::ELS_REPLY, _) => self.els_reply(&frame),
            (RCtl::SOLICITED_CONTROL, FrameType::CT) => self.ct_reply(&frame),
            _ => {}
        }
    }

    fn els_reply(&mut self, frame: &ReceivedFrame<'_>) {
        let (from, ox_id) = (frame.header.s_id, frame.header.ox_id);
        let question = self.port.local_port.questions.front().copied();
        let is_asked = self
            .port
            .local_port
            .asked
            .is_some_and(|asked| asked.ox_id == ox_id);
        let is_accepted = |code| !matches!(Reply::parse(code, frame.payload), Ok(Reply::Reject(_)));
        match question {
            Some(Question::Plogi) if is_asked && is_accepted(Code::PLOGI) => self.next_question(),
            Some(Question::Scr) if is_asked && is_accepted(Code::SCR) => self.next_question(),
            _ => {
                let asking = &mut self.port.local_port.asking;
                let is_its = asking.get(&from).is_some_and(|asked| asked.ox_id == ox_id);
                if is_its && is_accepted(Code::PLOGI) {
                    asking.remove(&from);
                    self.port.local_port.logged_in.insert(from);
                }
            }
        }
    }

    fn ct_reply(&mut self, frame: &ReceivedFrame<'_>) {
        let asked = self.port.local_port.asked;
        let Ok((ct, payload)) = CtHeader::parse(frame.payload) else {
            return;
        };
        if asked.is_none_or(|asked| asked.ox_id != frame.header.ox_id) {
            return;
        }
        let is_accepted = ct.code == CtCode::ACCEPT;
        match self.port.local_port.questions.front().copied() {
            Some(Question::Register(_)) if is_accepted => {}
            Some(Question::List) => {
                let list = NameServerAccept::parse(code::GPN_FT, payload);
                let ports = match list {
                    Ok(NameServerAccept::Names(ports)) if is_accepted => ports,
                    _ => Vec::new(),
                };
                self.listed(&ports);
            }
            Some(Question::Name(fc_id)) => match NameServerAccept::parse(code::GPN_ID, payload) {
                Ok(NameServerAccept::Name(wwpn)) if is_accepted => self.sees(fc_id, wwpn),
                _ => self.loses(fc_id),
            },
            _ => return,
        }
        self.next_question();
    }

    fn listed(&mut self, ports: &[(FcId, Wwn)]) {
        self.port.local_port.is_ready = true;
        let listed: BTreeMap<FcId, Wwn> = ports.iter().copied().collect();
        let seen: Vec<_> = self.port.local_port.seen.keys().copied().collect();
        for fc_id in seen.into_iter().filter(|fc_id| !listed.contains_key(fc_id)) {
            self.loses(fc_id);
        }
        let ours = self.port.wwpn;
        for (fc_id, wwpn) in listed.into_iter().filter(|(_, wwpn)| *wwpn != ours) {
            self.sees(fc_id, wwpn);
        }
    }

    fn sees(&mut self, fc_id: FcId, wwpn: Wwn) {
        let before = self.port.local_port.seen.insert(fc_id, wwpn);
        if before.is_some_and(|before| before != wwpn) {
            self.port.local_port.logged_in.remove(&fc_id);
        }
        let is_asking = self.port.local_port.asking.contains_key(&fc_id);
        if !is_asking && !self.port.local_port.logged_in.contains(&fc_id) {
            self.plogi(fc_id, 1);
        }
    }

    fn loses(&mut self, fc_id: FcId) {
        self.port.local_port.seen.remove(&fc_id);
        self.port.local_port.asking.remove(&fc_id);
        self.port.local_port.logged_in.remove(&fc_id);
    }

    fn els_request(&mut self, frame: &ReceivedFrame<'_>) {
        let from = frame.header.s_id;
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Rscn(rscn)) if from == FcId::FABRIC_CONTROLLER => {
                self.changed(&rscn);
                Reply::Accept
            }
            Ok(Els::Plogi(_)) => Reply::Login(self.parameters()),
            Ok(Els::Logo(_)) => {
                self.port.local_port.logged_in.remove(&from);
                Reply::Accept
            }
            Ok(Els::Adisc(_)) => Reply::Adisc(Adisc {
                hard_address: FcId::UNIDENTIFIED,
                wwpn: self.port.wwpn,
                wwnn: self.port.wwnn,
                fc_id: frame.header.d_id,
            }),
            _ => Reply::Reject(LsRejectReason::new(
                reason::NOT_SUPPORTED,
                explanation::NONE,
            )),
        };
        let exchange = (from, frame.header.ox_id, RxId(frame.header.ox_id.0));
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        self.send(kind, FCtl::REPLY, exchange, &reply.encode());
    }

    fn changed(&mut self, rscn: &Rscn) {
        let is_ready = self.port.local_port.is_ready;
        let is_idle = self.port.local_port.questions.is_empty();
        for (format, fc_id) in &rscn.0 {
            let question = match format & 3 {
                0 if is_ready => Question::Name(*fc_id),
                _ => Question::List,
            };
            self.port.local_port.questions.push_back(question);
        }
        if is_idle {
            self.ask(1);
        }
    }
}

const ELS: (RCtl, FrameType) = (RCtl::ELS_REQUEST, FrameType::ELS);
const CT: (RCtl, FrameType) = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
