//! An N_Port in a fabric: the answers of the fabric's services, and PLOGIs from ports that the name
//! server has not listed.

use std::time::Duration;

use super::name_client::changes::ADDRESS_FORMAT;
use super::name_client::claims::LoginClaim;
use super::name_client::{NameClient, NameClientConfig, NameClientEvent, ServiceFrame};
use super::{Fc4Layer, Port, PortEvent};
use crate::fip::UnlinkReason;
use crate::remote::{PeerAddress, RemoteId, RemotePort, RequestedExchange, Role};
use crate::wire::els::{Els, Logo, LsRejectReason, Reply, Rscn, reason};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;
use scsi::violation::Violation;

impl<F: Fc4Layer> Port<F> {
    /// There is a login to a fabric: its name server is next.
    pub(super) fn enter_fabric(&mut self) {
        let Some(login) = self.fip.fabric_login() else {
            return;
        };
        self.local.payload_max = login.payload_max;
        (self.local.e_d_tov, self.local.r_a_tov) = (login.e_d_tov, login.r_a_tov);
        let config = NameClientConfig {
            role: F::ROLE,
            login,
            parameters: self.local.parameters(),
            symbolic_name: self.symbolic_name.clone(),
        };
        let client = NameClient::new(config, self.now, self.service_ox_id);
        self.name_client = Some(Box::new(client));
        self.hear_services();
    }

    /// The next login numbers its exchanges on from here: an answer of this one may still come.
    fn leave_services(&mut self) {
        if let Some(client) = self.name_client.take() {
            self.service_ox_id = client.next_ox_id();
        }
        self.name_walk = None;
    }

    /// The login is over, and with it the way to all ports of the fabric.
    pub(super) fn leave_fabric(&mut self, why: UnlinkReason) {
        self.leave_services();
        let all: Vec<_> = self.remotes().map(|one| one.address().fc_id).collect();
        for fc_id in all {
            self.lost(fc_id, why);
        }
    }

    /// Does what is due with the services of the fabric.
    pub(super) fn expire_services(&mut self) {
        let now = self.now;
        if let Some(client) = &mut self.name_client
            && client.next_deadline().is_some_and(|at| at <= now)
        {
            client.expire(now);
            self.hear_services();
        }
    }

    /// What the services of the fabric have told, and what is to be sent to them.
    pub(super) fn hear_services(&mut self) {
        loop {
            let Some(client) = &mut self.name_client else {
                return;
            };
            if let Some(event) = client.poll() {
                self.service_event(event);
            } else if let Some(frame) = client.transmit() {
                self.send_service(frame);
            } else {
                return;
            }
        }
    }

    fn service_event(&mut self, event: NameClientEvent) {
        match event {
            NameClientEvent::Found(who) => self.found(who),
            NameClientEvent::Lost(fc_id, why) => self.lost(fc_id, why),
            NameClientEvent::Changed(fc_id) => {
                if F::ROLE == Role::Initiator {
                    self.with(fc_id, RemotePort::state_changed);
                }
            }
            NameClientEvent::IsTarget(fc_id) => self.is_target_now(fc_id),
            NameClientEvent::Proven(claim) => self.introduce(&claim),
            NameClientEvent::Unproven(claim, why) => self.unproven(&claim, why),
            NameClientEvent::Notice(notice) => {
                if let Some(enode) = self.fip.enode() {
                    enode.tell_problem(notice);
                }
                self.hear_notices();
            }
            NameClientEvent::Registered => {
                if let Some(enode) = self.fip.enode() {
                    enode.served();
                }
            }
            NameClientEvent::Useless => {
                let now = self.now;
                if let Some(enode) = self.fip.enode() {
                    enode.give_up(now);
                }
                self.hear_fip();
            }
        }
    }

    /// A port that was of no use to an initiator may have units now.
    fn is_target_now(&mut self, fc_id: FcId) {
        if let Some(id) = self.remotes.at(fc_id) {
            self.with_id(id, |remote, _| remote.becomes_target());
            self.begin(id, RemotePort::state_changed);
        }
    }

    pub(super) fn send_service(&mut self, frame: ServiceFrame) {
        let to = self.service_address(frame.to);
        self.queue_to(to, frame.kind, frame.f_ctl, frame.exchange, frame.payload);
    }

    fn service_address(&self, fc_id: FcId) -> PeerAddress {
        let login = self.name_client.as_ref().map(|client| client.login());
        let mac = login.map_or(Mac::BROADCAST, |login| login.fcf);
        PeerAddress { fc_id, mac }
    }

    /// A frame from an address that no remote port has. Returns whether it is looked at.
    pub(super) fn unknown_sender(
        &mut self,
        ethernet: &EthernetHeader,
        frame: &ReceivedFrame<'_>,
    ) -> bool {
        let (header, ours) = (&frame.header, self.local.address);
        let Some(client) = &self.name_client else {
            return false;
        };
        let is_to_us = header.d_id == ours.fc_id && ethernet.dst == ours.mac;
        if !is_to_us || ethernet.src != client.login().fcf || !self.is_online {
            return false;
        }
        match (header.kind, header.r_ctl) {
            (FrameType::ELS, RCtl::ELS_REQUEST) if !super::els::is_whole(frame) => return false,
            (FrameType::ELS, RCtl::ELS_REQUEST) if header.s_id.is_well_known() => {
                self.service_request(frame);
            }
            _ if header.s_id.is_well_known() => self.service_answer(frame),
            (FrameType::ELS, RCtl::ELS_REQUEST) => self.stranger_request(frame),
            (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) if F::ROLE == Role::Target => {
                self.statistics.unexpected += 1;
                self.send_logo(header.s_id);
            }
            _ => return false,
        }
        true
    }

    fn service_answer(&mut self, frame: &ReceivedFrame<'_>) {
        let now = self.now;
        if self.walk_answer(frame) {
            return;
        }
        if let Some(client) = &mut self.name_client {
            client.receive(now, frame);
        }
        self.hear_services();
    }

    /// A service of the fabric asks.
    fn service_request(&mut self, frame: &ReceivedFrame<'_>) {
        let (from, now) = (frame.header.s_id, self.now);
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Rscn(rscn)) if from == FcId::FABRIC_CONTROLLER => {
                if F::ROLE == Role::Target {
                    self.suspect_restarts(&rscn);
                }
                if let Some(client) = &mut self.name_client {
                    client.changed(now, &rscn);
                }
                Reply::Accept
            }
            Ok(Els::Rscn(_) | Els::Logo(_)) => Reply::Accept,
            Ok(Els::Echo(data)) => Reply::Echo(data),
            Ok(Els::Rtv) => Reply::Rtv(self.local.time_outs()),
            Ok(Els::Rnid(_)) => Reply::Rnid(self.local.node_id()),
            Ok(Els::Rls(_)) => Reply::Rls(self.link_errors()),
            Ok(_) => Reply::Reject(LsRejectReason::NOT_SUPPORTED),
            Err(_) => Reply::Reject(LsRejectReason::LENGTH),
        };
        self.reply_to(&frame.header, &reply);
        if let Ok(Els::Logo(_)) = Els::parse(frame.payload) {
            self.service_logged_out(from);
        }
        self.hear_services();
    }

    /// Ports that an RSCN is about may have begun anew, and then may number their exchanges as
    /// before: a PLOGI is no second copy, though it be under the OX_ID of the last one, unless it
    /// comes too soon after that. This does not wait until the name server was asked what has
    /// changed, as the PLOGI does not.
    fn suspect_restarts(&mut self, rscn: &Rscn) {
        let is_one = |(flags, _): &&(u8, FcId)| flags & ADDRESS_FORMAT == 0;
        for (_, fc_id) in rscn.0.iter().filter(is_one) {
            self.with(*fc_id, |remote, _| remote.suspect_restart());
        }
        if !rscn.0.iter().all(|page| is_one(&page)) {
            let all: Vec<_> = self.remotes().map(RemotePort::id).collect();
            for id in all {
                self.with_id(id, |remote, _| remote.suspect_restart());
            }
        }
    }

    fn service_logged_out(&mut self, service: FcId) {
        let now = self.now;
        if service == FcId::FABRIC_F {
            if let Some(enode) = self.fip.enode() {
                enode.logged_out(now);
            }
            self.hear_fip();
        } else if service == FcId::DIRECTORY
            && let Some(client) = &mut self.name_client
        {
            client.logged_out(now);
        }
    }

    /// A request of a port that is not known: it may have heard of us before we have of it.
    fn stranger_request(&mut self, frame: &ReceivedFrame<'_>) {
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Plogi(_)) => return self.plogi_from_unknown(frame),
            Ok(Els::Logo(_)) => Reply::Accept,
            Ok(Els::Echo(data)) => Reply::Echo(data),
            Ok(Els::Rtv) => Reply::Rtv(self.local.time_outs()),
            Ok(Els::Rnid(_)) => Reply::Rnid(self.local.node_id()),
            Ok(Els::Rls(_)) => Reply::Rls(self.link_errors()),
            Ok(_) => Reply::Reject(LsRejectReason::NO_LOGIN),
            Err(_) => Reply::Reject(LsRejectReason::LENGTH),
        };
        self.reply_to(&frame.header, &reply);
    }

    /// A PLOGI. Its names count where they are news, if the name server has the same.
    pub(super) fn plogi_from_unknown(&mut self, frame: &ReceivedFrame<'_>) {
        let Ok(Els::Plogi(says)) = Els::parse(frame.payload) else {
            return;
        };
        let claim = LoginClaim {
            from: frame.header.s_id,
            says,
            exchange: exchange_of(&frame.header),
            until: self.now.saturating_add(self.claims_wait()),
            tries: 0,
        };
        let now = self.now;
        let Some(client) = &mut self.name_client else {
            return;
        };
        if client.claimed(now, claim) {
            self.hear_services();
        } else {
            self.reply_to(&frame.header, &Reply::Reject(LsRejectReason::NO_PLACE));
        }
    }

    /// How long a PLOGI waits for the name server: its sender waits for 2 x R_A_TOV (FC-LS-2), and
    /// the answer has to be there before.
    fn claims_wait(&self) -> Duration {
        (self.local.r_a_tov * 2).saturating_sub(self.local.e_d_tov)
    }

    /// Makes a PLOGI's sender known by the names in it, and answers. It keeps its number where they
    /// are the same as before.
    fn introduce(&mut self, claim: &LoginClaim) {
        let (from, says) = (claim.from, claim.says);
        let known = self.remotes.at(from).and_then(|id| self.remotes.get(id));
        if known.is_none_or(|known| known.wwpn() != says.wwpn) {
            let client = self.name_client.as_mut();
            let neighbour = client.and_then(|client| client.introduce(from, &says));
            self.hear_services();
            let Some(neighbour) = neighbour else {
                let full = Reply::Reject(LsRejectReason::NO_PLACE);
                return self.reply(from, claim.exchange, &full);
            };
            self.found_to(neighbour, RemotePort::plogi_received_first);
        }
        let plogi = Els::Plogi(says);
        let asked = claim.exchange;
        self.with(from, |remote, cx| remote.request_came(cx, asked, plogi));
    }

    /// A PLOGI by a name that is not its sender's, or that cannot be looked up now.
    fn unproven(&mut self, claim: &LoginClaim, why: LsRejectReason) {
        if why.reason != reason::LOGICAL_BUSY {
            let fcf = self.service_address(claim.from).mac;
            self.remark(fcf, Some(claim.says.wwpn), OTHERS_NAME);
        }
        self.reply(claim.from, claim.exchange, &Reply::Reject(why));
    }

    /// Whether a PLOGI from a port that is known tells another name than it had: the N_Port_ID has
    /// gone on to another port.
    pub(super) fn is_news(&self, id: RemoteId, frame: &ReceivedFrame<'_>) -> bool {
        let known = self.remotes.get(id).map(RemotePort::wwpn);
        let is_other = |wwpn| known.is_some_and(|known| known != wwpn);
        self.name_client.is_some()
            && matches!(Els::parse(frame.payload), Ok(Els::Plogi(says)) if is_other(says.wwpn))
    }

    fn reply_to(&mut self, asked: &FrameHeader, reply: &Reply) {
        self.reply(asked.s_id, exchange_of(asked), reply);
    }

    fn reply(&mut self, to: FcId, exchange: RequestedExchange, reply: &Reply) {
        let sending = exchange.answered(reply);
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        let exchange = (sending.ox_id, sending.rx_id);
        let to = self.service_address(to);
        self.queue_to(to, kind, FCtl::REPLY, exchange, sending.els);
    }

    /// Tells a port that there is no login, which it has used.
    fn send_logo(&mut self, to: FcId) {
        let logo = Logo {
            fc_id: self.local.address.fc_id,
            wwpn: self.local.wwpn,
        };
        let exchange: (OxId, RxId) = (self.ox_ids.take(), RxId::UNASSIGNED);
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let to = self.service_address(to);
        self.queue_to(to, kind, FCtl::REQUEST, exchange, Els::Logo(logo).encode());
    }

    /// Logs out of all ports of the fabric.
    pub(super) fn log_out_of_fabric(&mut self) {
        // From now on no PLOGI is accepted.
        self.leave_services();
        let all: Vec<_> = self.remotes().map(RemotePort::id).collect();
        for id in all {
            self.with_id(id, RemotePort::revoke);
        }
    }

    /// What the ENode has to tell.
    pub(super) fn hear_notices(&mut self) {
        while let Some(notice) = self.fip.poll_notice() {
            self.events.push_back(PortEvent::Fabric(notice));
        }
    }

    /// Frames carry the tag of the VLAN that the ENode has found.
    pub(super) fn adopt_vlan(&mut self) {
        if let Some(tag) = self.fip.found_tag() {
            self.local.tag = tag;
        }
    }
}

const fn exchange_of(asked: &FrameHeader) -> RequestedExchange {
    RequestedExchange {
        ox_id: asked.ox_id,
        rx_id: asked.rx_id,
    }
}

const OTHERS_NAME: Violation = Violation {
    rule: "a PLOGI with a port name that the name server does not have for its N_Port_ID",
    clause: "FC-GS, GPN_ID",
};
