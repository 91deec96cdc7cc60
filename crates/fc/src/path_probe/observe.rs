//! What frames show beside what they are for.

use super::{FcfPath, PORTS_MAX, PathProbe, SHORT};
use crate::wire::els::Els;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::Wwn;

/// What a message says of its sender.
#[derive(Default)]
struct Sender {
    mac: Option<Mac>,
    name: Option<Wwn>,
    wwpn: Option<Wwn>,
    max_fcoe: Option<u16>,
}

impl Sender {
    fn of(message: &FipMessage<'_>) -> Self {
        let mut sender = Self::default();
        for descriptor in message.descriptors().filter_map(Result::ok) {
            match descriptor {
                Descriptor::Mac(mac) => sender.mac = Some(mac),
                Descriptor::Name(name) => sender.name = Some(name),
                Descriptor::VxPort { wwpn, .. } => sender.wwpn = Some(wwpn),
                Descriptor::MaxFcoeSize(size) => sender.max_fcoe = Some(size),
                _ => {}
            }
        }
        sender
    }
}

impl PathProbe {
    /// A FIP message, before it is taken.
    pub(super) fn observe(&mut self, ethernet: &EthernetHeader, payload: &[u8]) {
        let Ok(message) = FipMessage::parse(payload) else {
            return;
        };
        let len = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let is_to_us = ethernet.dst == self.config.mac;
        match message.operation {
            FipOperation::Advertisement => {
                // A short one is asked for only to hear of the FCF.
                let is_full = len > SHORT || self.fip_size() <= SHORT;
                let answers = is_to_us && is_full && message.flags.has(Flags::SOLICITED);
                self.advertised(ethernet.src, &message, answers.then_some(len));
            }
            FipOperation::ClaimNotification
            | FipOperation::ClaimResponse
            | FipOperation::Beacon => {
                let answers = is_to_us && message.operation == FipOperation::ClaimResponse;
                self.presented(&message, answers.then_some(len));
            }
            // It takes us for a neighbour.
            FipOperation::ElsRequest if is_to_us => {
                self.port(ethernet.src);
            }
            _ => {}
        }
    }

    /// A port of VN2VN has presented itself, by an answer of so many bytes if it is one.
    fn presented(&mut self, message: &FipMessage<'_>, answer: Option<u16>) {
        let sender = Sender::of(message);
        let enode = sender.mac.filter(|mac| !mac.is_multicast());
        let Some(port) = enode.and_then(|enode| self.port(enode)) else {
            return;
        };
        port.wwpn = sender.wwpn.or(port.wwpn);
        port.max_fcoe = sender.max_fcoe.or(port.max_fcoe);
        port.answer = answer.max(port.answer);
    }

    fn advertised(&mut self, mac: Mac, message: &FipMessage<'_>, answer: Option<u16>) {
        if self.fcfs.len() >= PORTS_MAX && !self.fcfs.contains_key(&mac) {
            return;
        }
        let fcf = self.fcfs.entry(mac).or_insert(FcfPath {
            mac,
            name: None,
            answer: None,
        });
        fcf.name = Sender::of(message).name.or(fcf.name);
        fcf.answer = answer.max(fcf.answer);
    }

    /// An FLOGI that Linux sends when it has heard no FIP.
    pub(super) fn note_outside_fip(&mut self, from: Mac, frame: &ReceivedFrame<'_>) {
        if let Ok(Els::Flogi(login)) = Els::parse(frame.payload)
            && self.outside_fip.len() < PORTS_MAX
        {
            self.outside_fip.insert(from, login.wwpn);
        }
    }
}
