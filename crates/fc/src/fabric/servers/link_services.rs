//! Extended link services to well-known addresses (FC-LS-2).

use scsi::medium::Now;
use scsi::violation::Violation;

use super::service::Service;
use super::{Allowance, Asked, Servers, ServersEvent};
use crate::wire::els::{
    Adisc, ClassParameters, Els, Features, Logo, LsRejectReason, NodeId, Reply, ServiceParameters,
    TimeOuts, explanation, reason,
};
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::frame::{FrameType, MIN_PAYLOAD, RCtl};
use crate::wire::names::FcId;

impl Servers {
    pub(super) fn els_request(&mut self, now: Now, frame: &ReceivedFrame<'_>) {
        let asked = Asked::by(&frame.header);
        let is_single = frame.sof == Sof::I3 && frame.eof == Eof::T;
        if !is_single || !frame.header.f_ctl.end_sequence() {
            return self.remark(now, asked.from, NOT_WHOLE);
        }
        let els = Els::parse(frame.payload);
        let is_login = matches!(els, Ok(Els::Plogi(_)));
        let reply = match (self.allow(now, asked.from), els) {
            (Allowance::Dropped, _) => return,
            (Allowance::Refused, _) => Reply::Reject(LsRejectReason::BUSY),
            (Allowance::Served, Ok(els)) => self
                .link_service(now, asked, els)
                .unwrap_or_else(Reply::Reject),
            (Allowance::Served, Err(_)) => {
                self.remark(now, asked.from, UNREADABLE);
                Reply::Reject(LsRejectReason::LENGTH)
            }
        };
        if let Reply::Reject(reason) = reply
            && is_login
        {
            self.events
                .push_back(ServersEvent::LoginRejected(asked.from, reason));
        }
        self.answer_els(asked, &reply);
    }

    fn answer_els(&mut self, asked: Asked, reply: &Reply) {
        let Some(port) = self.ports.get_mut(&asked.from) else {
            return;
        };
        let frame_max = port.frame_max(Service::at(asked.at));
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        self.outbox.answer(asked, kind, &reply.encode(), frame_max);
    }

    fn link_service(&mut self, now: Now, asked: Asked, els: Els) -> Result<Reply, LsRejectReason> {
        let service = Service::at(asked.at).ok_or(NOT_SUPPORTED)?;
        if service == Service::Controller
            && let Some(answer) = self.controller_service(now, asked, &els)
        {
            return answer;
        }
        match (service, els) {
            (_, Els::Echo(data)) => Ok(Reply::Echo(data)),
            (_, Els::Rnid(_)) => Ok(Reply::Rnid(self.node_id(asked))),
            (_, Els::Rtv) => Ok(Reply::Rtv(self.time_outs())),
            (_, Els::Rls(of)) => self.link_errors_of(asked, of),
            (Service::FPort, Els::Logo(logo)) => self.fabric_logo(now, asked.from, &logo),
            (Service::FPort, _) => Err(NOT_SUPPORTED),
            (_, Els::Plogi(theirs)) => self.plogi(asked, service, &theirs),
            (_, Els::Logo(_)) => {
                self.set_login(asked.from, service, None);
                Ok(Reply::Accept)
            }
            (_, Els::Pdisc(theirs)) => {
                self.check_login(asked.from, service)?;
                self.check_name(asked.from, theirs.wwpn)?;
                Ok(Reply::Login(self.parameters(asked)))
            }
            (_, Els::Adisc(theirs)) => {
                self.check_login(asked.from, service)?;
                self.check_name(asked.from, theirs.wwpn)?;
                Ok(Reply::Adisc(self.address(asked.at)))
            }
            _ => Err(NOT_SUPPORTED),
        }
    }

    fn fabric_logo(&mut self, now: Now, from: FcId, logo: &Logo) -> Result<Reply, LsRejectReason> {
        self.check_name(from, logo.wwpn)?;
        if logo.fc_id != from {
            return Err(WRONG_ID);
        }
        let port = self.ports.get(&from).map(|port| port.login.port);
        if !port.is_some_and(|port| self.budgets.take_ending(now, port)) {
            return Err(LsRejectReason::TOO_OFTEN);
        }
        self.events.push_back(ServersEvent::LoggedOut(from));
        Ok(Reply::Accept)
    }

    /// The error counters of the F_Port of the port that asks, at each service: these have no links
    /// of their own. Of others the switch tells nothing.
    fn link_errors_of(&self, asked: Asked, of: FcId) -> Result<Reply, LsRejectReason> {
        let own = [FcId::UNIDENTIFIED, asked.from, asked.at];
        let port = self.ports.get(&asked.from).filter(|_| own.contains(&of));
        let port = port.ok_or(WRONG_ID)?.login.port;
        let errors = self.link_errors.get(&port).copied();
        Ok(Reply::Rls(errors.unwrap_or_default()))
    }

    fn plogi(
        &mut self,
        asked: Asked,
        service: Service,
        theirs: &ServiceParameters,
    ) -> Result<Reply, LsRejectReason> {
        self.check_name(asked.from, theirs.wwpn)?;
        let size = theirs.receive_size.min(theirs.class_3.receive_size);
        if !theirs.class_3.is_valid() || size < MIN_PAYLOAD {
            return Err(LsRejectReason::SIZES);
        }
        self.set_login(asked.from, service, Some(size));
        Ok(Reply::Login(self.parameters(asked)))
    }

    fn set_login(&mut self, from: FcId, service: Service, payload_max: Option<u16>) {
        if let Some(port) = self.ports.get_mut(&from) {
            port.set_login(service, payload_max);
        }
    }

    fn check_login(&mut self, from: FcId, service: Service) -> Result<(), LsRejectReason> {
        let port = self.ports.get_mut(&from);
        let has_login = port.is_some_and(|port| port.has_login(service));
        has_login.then_some(()).ok_or(LsRejectReason::NO_LOGIN)
    }

    /// The port name is the one of the login to the fabric.
    fn check_name(&self, from: FcId, wwpn: crate::wire::names::Wwn) -> Result<(), LsRejectReason> {
        let port = self.ports.get(&from);
        let is_same = port.is_some_and(|port| port.login.wwpn == wwpn);
        is_same.then_some(()).ok_or(LsRejectReason::OTHER_NAME)
    }

    /// The service parameters of the service that was asked.
    fn parameters(&self, asked: Asked) -> ServiceParameters {
        let port = self.ports.get(&asked.from);
        let receive_size = port.map_or(MIN_PAYLOAD, |port| port.login.max_payload);
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 0,
            features: Features::CONTINUOUS_OFFSET,
            receive_size,
            total_sequences: SEQUENCES,
            relative_offset: 0,
            e_d_tov: ms(self.config.e_d_tov),
            wwpn: self.config.service_name(asked.at),
            wwnn: self.config.switch_name,
            class_3: ClassParameters {
                options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
                receive_size,
                concurrent_sequences: SEQUENCES,
                open_sequences: 1,
                ..ClassParameters::default()
            },
        }
    }

    const fn address(&self, at: FcId) -> Adisc {
        Adisc {
            hard_address: FcId::UNIDENTIFIED,
            wwpn: self.config.service_name(at),
            wwnn: self.config.switch_name,
            fc_id: at,
        }
    }

    fn time_outs(&self) -> TimeOuts {
        TimeOuts {
            r_a_tov_ms: ms(self.config.r_a_tov),
            e_d_tov: ms(self.config.e_d_tov),
            qualifier: 0,
        }
    }

    /// Format 0: the names alone, of the F_Port or the service and of the switch.
    fn node_id(&self, asked: Asked) -> NodeId {
        let port = self.ports.get(&asked.from);
        let name = port.map(|port| match asked.at {
            FcId::FABRIC_F => port.login.f_port_name,
            service => self.config.service_name(service),
        });
        NodeId {
            format: 0,
            names: name.map(|name| (name, self.config.switch_name)),
            specific: Vec::new(),
        }
    }

    /// A port uses a service that it is not logged in to: it is told so by a LOGO, and logs in anew
    /// (FC-LS-2). It does not know that of our restart yet.
    pub(super) fn log_out(&mut self, asked: Asked) {
        let logo = Logo {
            fc_id: asked.at,
            wwpn: self.config.service_name(asked.at),
        };
        self.outbox.request(asked.at, asked.from, &Els::Logo(logo));
    }
}

fn ms(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Concurrent sequences that services offer.
const SEQUENCES: u16 = 255;

/// What no service at this address does.
const NOT_SUPPORTED: LsRejectReason =
    LsRejectReason::new(reason::NOT_SUPPORTED, explanation::NOT_SUPPORTED);

/// The N_Port_ID in the payload is not one that may be asked about.
const WRONG_ID: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::INVALID_N_PORT_ID);

const NOT_WHOLE: Violation = Violation {
    rule: "an extended link service in more than one frame",
    clause: "FC-LS-2",
};

const UNREADABLE: Violation = Violation {
    rule: "an extended link service whose lengths do not agree",
    clause: "FC-LS-2",
};
