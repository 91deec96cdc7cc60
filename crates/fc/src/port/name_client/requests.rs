//! What is asked, of whom, and how it is written.

use super::{AskedQuestion, FIRST_OX_ID, NameClient, ReceivedSequence, ServiceFrame};
use crate::remote::Role;
use crate::wire::ct::name_server::{
    AddressScope, Fc4Types, FeatureBits, NameServerRequest, SymbolicName,
};
use crate::wire::els::Els;
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Plogi,
    /// By its number among all registrations.
    Register(usize),
    Scr,
    /// GPN_FT: which ports of FCP there are.
    List,
    /// GPN_ID: who has this N_Port_ID.
    Name(FcId),
    /// GPN_ID too, for a PLOGI.
    Claim(FcId),
    /// GFF_ID: whether this port is a target, an initiator, or both.
    Features(FcId, Wwn),
}

/// Registrations in their order: RNN_ID, RSNN_NN, RSPN_ID, RFT_ID, RFF_ID.
pub(super) const REGISTRATIONS: usize = 5;

/// From this number on, a registration has to be accepted.
pub(super) const FIRST_NEEDED: usize = 3;

impl Question {
    /// What the standards call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plogi => "PLOGI to the name server",
            Self::Register(0) => "RNN_ID",
            Self::Register(1) => "RSNN_NN",
            Self::Register(2) => "RSPN_ID",
            Self::Register(3) => "RFT_ID",
            Self::Register(_) => "RFF_ID",
            Self::Scr => "SCR",
            Self::List => "GPN_FT",
            Self::Name(_) | Self::Claim(_) => "GPN_ID",
            Self::Features(..) => "GFF_ID",
        }
    }

    /// Whether it is an extended link service, and not one of the common transport.
    pub(super) const fn is_els(self) -> bool {
        matches!(self, Self::Plogi | Self::Scr)
    }

    /// Which service is asked.
    pub(super) const fn service(self) -> FcId {
        match self {
            Self::Scr => FcId::FABRIC_CONTROLLER,
            _ => FcId::DIRECTORY,
        }
    }
}

impl NameClient {
    /// Sends a question, which is outstanding from then on.
    pub(super) fn ask(&mut self, question: Question) -> AskedQuestion {
        let payload = match question {
            Question::Plogi => Els::Plogi(self.config.parameters).encode(),
            Question::Scr => Els::Scr(ALL_CHANGES).encode(),
            Question::Register(number) => self.registration(number).encode(),
            Question::List => NameServerRequest::GpnFt(ALL, FrameType::FCP).encode(),
            Question::Name(fc_id) | Question::Claim(fc_id) => {
                NameServerRequest::GpnId(fc_id).encode()
            }
            Question::Features(fc_id, _) => NameServerRequest::GffId(fc_id).encode(),
        };
        let kind = if question.is_els() {
            (RCtl::ELS_REQUEST, FrameType::ELS)
        } else {
            (RCtl::UNSOLICITED_CONTROL, FrameType::CT)
        };
        let ox_id = self.take_ox_id();
        self.outgoing.push_back(ServiceFrame {
            to: question.service(),
            kind,
            f_ctl: FCtl::REQUEST,
            exchange: (ox_id, RxId::UNASSIGNED),
            payload,
        });
        AskedQuestion {
            question,
            ox_id,
            until: self.now.saturating_add(self.config.login.e_d_tov * 2),
            answer: ReceivedSequence::default(),
        }
    }

    pub(in crate::port) const fn take_ox_id(&mut self) -> OxId {
        let ox_id = OxId(self.next_ox_id);
        self.next_ox_id += 1;
        if self.next_ox_id == OxId::UNASSIGNED.0 {
            self.next_ox_id = FIRST_OX_ID;
        }
        ox_id
    }

    fn registration(&self, number: usize) -> NameServerRequest {
        let fc_id = self.config.login.fc_id;
        let wwnn = self.config.parameters.wwnn;
        let symbolic = SymbolicName::new(self.symbolic_name());
        match number {
            0 => NameServerRequest::RnnId(fc_id, wwnn),
            1 => NameServerRequest::RsnnNn(wwnn, symbolic),
            2 => NameServerRequest::RspnId(fc_id, symbolic),
            3 => {
                let types = Fc4Types::of(&[FrameType::FCP, FrameType::CT]);
                NameServerRequest::RftId(fc_id, types)
            }
            _ => {
                let features = match self.config.role {
                    Role::Target => FeatureBits::FCP_TARGET,
                    Role::Initiator => FeatureBits::FCP_INITIATOR,
                };
                NameServerRequest::RffId(fc_id, features, FrameType::FCP)
            }
        }
    }

    /// As much of it as fits the shortest frame that a fabric may have.
    fn symbolic_name(&self) -> &[u8] {
        let name = self.config.symbolic_name.as_bytes();
        &name[..name.len().min(MAX_NAME)]
    }

    /// Whether ports are looked for that have not logged in to us.
    pub(super) fn discovers(&self) -> bool {
        self.config.role == Role::Initiator
    }
}

/// Registration function of SCR: changes that the fabric and that ports detect.
const ALL_CHANGES: u8 = 3;

/// In all domains and areas.
const ALL: AddressScope = AddressScope { domain: 0, area: 0 };

/// Bytes of a symbolic name, with which RSNN_NN and RSPN_ID fit 256 bytes.
const MAX_NAME: usize = 200;
