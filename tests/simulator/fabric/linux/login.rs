//! FLOGI and FDISC of a Linux ENode, and the keep alives that follow.

use std::time::Duration;

use fc::wire::els::{Code, Els, Reply, ServiceParameters};
use fc::wire::ethernet::{EthernetHeader, Mac};
use fc::wire::fip::{Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags};
use fc::wire::frame::{FrameHeader, FrameType, RCtl};
use fc::wire::names::FcId;

use super::super::frames::{els, fip_frame};
use super::vn_port::{Login, VnPort};
use super::{E_D_TOV, Linux, RETRIES};

impl Linux {
    /// FLOGI, or FDISC of a further VN_Port.
    pub(super) fn log_in(&mut self, tries: u32) {
        let Some(fcf) = self.selected else {
            return;
        };
        let ox_id = self.take_ox_id();
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let ids = (FcId::UNIDENTIFIED, FcId::FABRIC_F);
        let parameters = ServiceParameters {
            total_sequences: 0,
            relative_offset: 0,
            e_d_tov: 0,
            ..self.parameters()
        };
        let (descriptor, els) = if self.port.is_further {
            (DescriptorType::FDISC, Els::Fdisc(parameters))
        } else {
            (DescriptorType::FLOGI, Els::Flogi(parameters))
        };
        let request = Descriptor::Els(Encapsulated {
            kind: descriptor,
            header: FrameHeader::request(kind, ids, ox_id),
            payload: &els.encode(),
        });
        let parts = [request, Descriptor::Mac(Mac::default())];
        self.say(fcf.mac, FipOperation::ElsRequest, &parts);
        self.port.login = Login::Asked {
            ox_id,
            until: self.now + E_D_TOV,
            tries,
        };
    }

    pub(super) fn els_replied(&mut self, ethernet: &EthernetHeader, message: &FipMessage<'_>) {
        let ox_id = els(message).map(|els| els.header.ox_id);
        let is_asked = |port: &VnPort| match port.login {
            Login::Asked { ox_id: asked, .. } => Some(asked) == ox_id,
            _ => false,
        };
        let was_up = self.granted().is_some();
        self.for_port(is_asked, |linux| linux.answered(ethernet, message));
        if !was_up && self.granted().is_some() {
            for at in 0..self.further.len() {
                self.as_further(at, |linux| linux.log_in(1));
            }
        }
    }

    /// The answer to FLOGI: the link service first, the address second.
    pub(super) fn answered(&mut self, ethernet: &EthernetHeader, message: &FipMessage<'_>) {
        let (Login::Asked { ox_id, .. }, Some(fcf)) = (self.port.login, self.selected) else {
            return;
        };
        let Some(els) = els(message).filter(|els| els.header.ox_id == ox_id) else {
            return;
        };
        let second = message.descriptors().nth(1);
        let reply = Reply::parse(Code::FLOGI, els.payload);
        match (reply, second) {
            _ if ethernet.src != fcf.mac => {}
            (Ok(Reply::Login(_)), Some(Ok(Descriptor::Mac(mac)))) if !mac.is_multicast() => {
                let keeps = fcf.keeps_alive;
                let is_first = !self.port.is_further;
                self.port.login = Login::Up {
                    fc_id: els.header.d_id,
                    mac,
                    enode_at: (keeps && is_first).then(|| self.now + fcf.period),
                    port_at: keeps.then(|| self.now + PORT_PERIOD),
                };
                self.begin_services();
            }
            // Another FLOGI is sent when its time has come.
            _ => {}
        }
    }

    pub(super) fn keep_alive(&mut self) {
        let (now, Some(fcf)) = (self.now, self.selected) else {
            return;
        };
        let Login::Up {
            fc_id,
            mac,
            enode_at,
            port_at,
        } = &mut self.port.login
        else {
            return;
        };
        let enode = enode_at.take_if(|at| *at <= now).is_some();
        let port = port_at.take_if(|at| *at <= now).is_some();
        let (fc_id, vn_mac, wwpn) = (*fc_id, *mac, self.port.wwpn);
        if enode {
            *enode_at = Some(now + fcf.period);
        }
        if port {
            *port_at = Some(now + PORT_PERIOD);
        }
        if enode {
            self.say(
                fcf.mac,
                FipOperation::KeepAlive,
                &[Descriptor::Mac(self.mac)],
            );
        }
        if port {
            let mac = vn_mac;
            let vx_port = Descriptor::VxPort { mac, fc_id, wwpn };
            let parts = [Descriptor::Mac(self.mac), vx_port];
            let ends = (vn_mac, fcf.mac);
            let frame = fip_frame(ends, FipOperation::KeepAlive, Flags::FPMA, &parts);
            self.out.push_back(frame);
        }
    }

    pub(super) fn flogi_due(&mut self) {
        match self.port.login {
            Login::Asked { until, tries, .. } if until <= self.now => {
                if tries > RETRIES {
                    self.begin_anew();
                } else {
                    self.log_in(tries + 1);
                }
            }
            _ => {}
        }
    }
}

/// Between keep alives of the VN_Port.
const PORT_PERIOD: Duration = Duration::from_secs(90);
