//! Logins: FLOGI, FDISC and LOGO inside FIP (FC-BB-6, FC-LS-3).

use std::sync::Arc;
use std::time::Duration;

use super::super::login::{ENDINGS, EnodeKey};
use super::super::{LogoutReason, PortNumber, RejectedLogin, SwitchEvent, SwitchLogin};
use super::{Fcf, FcfPort};
use crate::fip::FCOE_OVERHEAD;
use crate::fip::budget::FillRate;
use crate::fip::els::encapsulated;
use crate::wire::els::{
    ClassParameters, Code, Els, Features, LsRejectReason, Reply, ServiceParameters, explanation,
    reason,
};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags,
};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, MIN_PAYLOAD, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// What an LS_ACC says, for which N_Port_ID.
struct Accepted {
    fc_id: FcId,
    reply: Reply,
}

impl Fcf {
    pub(super) fn els_request(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let els = encapsulated(message)?;
        let is_ours = |port: &FcfPort| port.config.mac == ethernet.dst;
        if !self.ports.get(&number).is_some_and(is_ours) || ethernet.src.is_multicast() {
            return Ok(());
        }
        let enode = (number, ethernet.src);
        let is_login = matches!(els.kind, DescriptorType::FLOGI | DescriptorType::FDISC);
        if is_login && self.logins.is_over(self.now, enode, els.header.ox_id) {
            return Ok(());
        }
        match self.answer(enode, &els, message.flags) {
            Ok(accepted) => self.accept(enode, &els, &accepted),
            Err(reject) => {
                self.logins.rejected(self.now, enode, els.header.ox_id);
                self.reject(enode, &els, reject);
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        enode: EnodeKey,
        els: &Encapsulated<'_>,
        flags: Flags,
    ) -> Result<Accepted, LsRejectReason> {
        if els.header.d_id != FcId::FABRIC_F {
            return Err(OTHER_ID);
        }
        if !self.is_active() {
            return Err(LsRejectReason::BUSY);
        }
        match (els.kind, Els::parse(els.payload)) {
            (DescriptorType::FLOGI, Ok(Els::Flogi(login))) => {
                check(&login, flags)?;
                self.flogi(enode, els.header.ox_id, &login)
            }
            (DescriptorType::FDISC, Ok(Els::Fdisc(login))) => {
                check(&login, flags)?;
                self.fdisc(enode, els.header.ox_id, &login)
            }
            (DescriptorType::LOGO, Ok(Els::Logo(_))) => self.logo(enode, els.header.s_id),
            (_, Err(_)) => Err(LsRejectReason::LENGTH),
            _ => Err(UNSUPPORTED),
        }
    }

    /// An ENode begins, or begins anew.
    fn flogi(
        &mut self,
        enode: EnodeKey,
        ox_id: OxId,
        login: &ServiceParameters,
    ) -> Result<Accepted, LsRejectReason> {
        if let Some(fc_id) = self.repeated(enode, ox_id, login.wwpn, false) {
            return self.accepted(enode.0, fc_id);
        }
        self.is_elsewhere(enode, login.wwpn)?;
        self.may_end(enode.0, self.logins.of_enode(enode).len())?;
        self.end_enode(enode, LogoutReason::Restarted);
        self.log_in(enode, ox_id, login, false)
    }

    /// An ENode that has logged in wants another N_Port_ID, for another WWPN.
    fn fdisc(
        &mut self,
        enode: EnodeKey,
        ox_id: OxId,
        login: &ServiceParameters,
    ) -> Result<Accepted, LsRejectReason> {
        if !self.logins.has_enode(enode) {
            return Err(LsRejectReason::NO_LOGIN);
        }
        if let Some(fc_id) = self.repeated(enode, ox_id, login.wwpn, true) {
            return self.accepted(enode.0, fc_id);
        }
        self.is_elsewhere(enode, login.wwpn)?;
        match self.logins.named(login.wwpn) {
            Some(before) if !before.is_further => return Err(LsRejectReason::NOT_ALLOWED),
            Some(before) => {
                let fc_id = before.fc_id;
                self.may_end(enode.0, 1)?;
                self.end(fc_id, LogoutReason::Restarted);
            }
            None => {}
        }
        self.log_in(enode, ox_id, login, true)
    }

    /// Whether an ENode at a port may end so many logins.
    fn may_end(&mut self, number: PortNumber, count: usize) -> Result<(), LsRejectReason> {
        let now = self.now;
        let port = self.ports.get_mut(&number).ok_or(UNSUPPORTED)?;
        let may_end = port.endings.take_many(now, &ENDINGS, count as u32);
        may_end.then_some(()).ok_or(LsRejectReason::TOO_OFTEN)
    }

    /// The login that the same request has made a moment ago, or one of the ENode after it.
    fn repeated(&self, enode: EnodeKey, ox_id: OxId, wwpn: Wwn, is_further: bool) -> Option<FcId> {
        let before = self.logins.named(wwpn)?;
        let is_same = (before.port, before.enode, before.is_further)
            == (enode.0, enode.1, is_further)
            && self.logins.is_repeated(self.now, before.fc_id, ox_id);
        is_same.then_some(before.fc_id)
    }

    /// A WWPN that another ENode has is its own for as long as that one is heard.
    fn is_elsewhere(&self, enode: EnodeKey, wwpn: Wwn) -> Result<(), LsRejectReason> {
        let other = self.logins.named(wwpn);
        match other.filter(|other| (other.port, other.enode) != enode) {
            Some(_) => Err(LsRejectReason::NOT_ALLOWED),
            None => Ok(()),
        }
    }

    fn log_in(
        &mut self,
        enode: EnodeKey,
        ox_id: OxId,
        parameters: &ServiceParameters,
        is_further: bool,
    ) -> Result<Accepted, LsRejectReason> {
        let wwpn = parameters.wwpn;
        let port = self.ports.get_mut(&enode.0).ok_or(UNSUPPORTED)?;
        if !self.logins.has_room(enode) {
            return Err(LsRejectReason::NO_PLACE);
        }
        let given = self.ids.take_at(enode.0, wwpn);
        let given = given.ok_or(LsRejectReason::NO_PLACE)?;
        let fc_id = given.fc_id;
        let login = SwitchLogin {
            fc_id,
            wwpn,
            wwnn: parameters.wwnn,
            port: enode.0,
            place: Arc::clone(&port.config.place),
            enode: enode.1,
            mac: Mac::of_port(self.identity.fc_map, fc_id),
            max_payload: port.receive_size().min(parameters.receive_size),
            is_further,
        };
        port.budget.reserve([login.enode, login.mac]);
        self.logins.insert(self.now, login.clone(), ox_id);
        if given.is_new {
            self.events.push_back(SwitchEvent::IdsChanged);
        }
        self.events.push_back(SwitchEvent::LoggedIn(login));
        self.accepted(enode.0, fc_id)
    }

    fn accepted(&self, number: PortNumber, fc_id: FcId) -> Result<Accepted, LsRejectReason> {
        let port = self.ports.get(&number).ok_or(UNSUPPORTED)?;
        let reply = Reply::Login(port.service_parameters(self.identity.fabric_name));
        Ok(Accepted { fc_id, reply })
    }

    /// A VN_Port goes. One that is not logged in is told that it is not.
    fn logo(&mut self, enode: EnodeKey, fc_id: FcId) -> Result<Accepted, LsRejectReason> {
        let login = self.logins.get(fc_id);
        if login.is_some_and(|login| (login.port, login.enode) != enode) {
            return Err(OTHER_ID);
        }
        self.may_end(enode.0, usize::from(login.is_some()))?;
        self.end(fc_id, LogoutReason::LoggedOut);
        let reply = Reply::Accept;
        Ok(Accepted { fc_id, reply })
    }

    fn accept(&mut self, enode: EnodeKey, els: &Encapsulated<'_>, accepted: &Accepted) {
        let reply = Descriptor::Els(Encapsulated {
            kind: els.kind,
            header: reply_header(els, accepted.fc_id),
            payload: &accepted.reply.encode(),
        });
        let granted = Mac::of_port(self.identity.fc_map, accepted.fc_id);
        let descriptors = [reply, Descriptor::Mac(granted)];
        let bytes = fip::encode(FipOperation::ElsReply, Flags::FPMA, &descriptors);
        self.send(enode.0, enode.1, bytes);
    }

    /// A rejection grants no address, so it has no descriptor for one.
    fn reject(&mut self, enode: EnodeKey, els: &Encapsulated<'_>, reject: LsRejectReason) {
        self.statistics.rejected += 1;
        let request = match els.kind {
            DescriptorType::FLOGI => Some(Code::FLOGI),
            DescriptorType::FDISC => Some(Code::FDISC),
            _ => None,
        };
        if let Some(request) = request {
            self.tell_rejected(enode.0, |place| RejectedLogin {
                place,
                from: enode.1,
                request,
                wwpn: wwpn_of(els),
                reason: reject,
            });
        }
        let reply = Descriptor::Els(Encapsulated {
            kind: els.kind,
            header: reply_header(els, els.header.s_id),
            payload: &Reply::Reject(reject).encode(),
        });
        let bytes = fip::encode(FipOperation::ElsReply, Flags::FPMA, &[reply]);
        self.send(enode.0, enode.1, bytes);
    }
}

impl Fcf {
    /// Tells of a login that was rejected, unless there are too many of them.
    pub(in crate::fabric) fn tell_rejected(
        &mut self,
        number: PortNumber,
        rejected: impl FnOnce(Arc<str>) -> RejectedLogin,
    ) {
        let now = self.now;
        let port = self.ports.get_mut(&number);
        if let Some(port) = port
            && port.rejections.take(now, &REJECTIONS)
        {
            let rejected = rejected(Arc::clone(&port.config.place));
            self.events.push_back(SwitchEvent::LoginRejected(rejected));
        }
    }
}

/// Who wants to log in.
fn wwpn_of(els: &Encapsulated<'_>) -> Option<Wwn> {
    match Els::parse(els.payload) {
        Ok(Els::Flogi(login) | Els::Fdisc(login)) => Some(login.wwpn),
        _ => None,
    }
}

/// Whether the parameters are those of a port that can be served.
fn check(login: &ServiceParameters, flags: Flags) -> Result<(), LsRejectReason> {
    if flags.has(Flags::SPMA) && !flags.has(Flags::FPMA) {
        return Err(ADDRESSING_MODE);
    }
    if !login.class_3.is_valid() || login.receive_size < MIN_PAYLOAD {
        return Err(LsRejectReason::SIZES);
    }
    if login.wwpn == Wwn(0) || login.wwnn == Wwn(0) {
        return Err(NO_NAME);
    }
    Ok(())
}

fn reply_header(els: &Encapsulated<'_>, d_id: FcId) -> FrameHeader {
    let ids = (FcId::FABRIC_F, d_id);
    FrameHeader {
        f_ctl: FCtl::REPLY,
        ..FrameHeader::new(
            (RCtl::ELS_REPLY, FrameType::ELS),
            ids,
            (els.header.ox_id, RxId::UNASSIGNED),
        )
    }
}

impl FcfPort {
    /// Bytes of payload that a frame may have here.
    const fn receive_size(&self) -> u16 {
        self.max_fcoe.saturating_sub(FCOE_OVERHEAD as u16)
    }

    /// What the F_Port says: many N_Port_IDs, clean addresses, and the times of the fabric.
    fn service_parameters(&self, fabric: Wwn) -> ServiceParameters {
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 10,
            features: Features::F_PORT
                .with(Features::NPIV)
                .with(Features::CONTINUOUS_OFFSET),
            receive_size: self.receive_size(),
            total_sequences: (R_A_TOV_MS >> 16) as u16,
            relative_offset: (R_A_TOV_MS & 0xffff) as u16,
            e_d_tov: E_D_TOV_MS,
            wwpn: self.f_port_name,
            wwnn: fabric,
            class_3: ClassParameters {
                options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
                ..ClassParameters::default()
            },
        }
    }
}

/// 16 rejected logins of a port are told at once, and one a second.
const REJECTIONS: FillRate = FillRate {
    cost: Duration::from_secs(1),
    burst: 16,
};

/// The times of the fabric, in milliseconds.
pub(in crate::fabric) const E_D_TOV_MS: u32 = 2_000;
pub(in crate::fabric) const R_A_TOV_MS: u32 = 10_000;

const OTHER_ID: LsRejectReason = LsRejectReason::new(reason::LOGICAL_ERROR, explanation::NONE);
const NO_NAME: LsRejectReason = LsRejectReason::new(reason::LOGICAL_ERROR, explanation::PORT_NAME);
const UNSUPPORTED: LsRejectReason =
    LsRejectReason::new(reason::NOT_SUPPORTED, explanation::NOT_SUPPORTED);
const ADDRESSING_MODE: LsRejectReason =
    LsRejectReason::new(reason::FIP_ERROR, explanation::ADDRESSING_MODE);
