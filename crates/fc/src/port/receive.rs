//! From Ethernet frames to their handlers (FC-BB-6, FC-FS-3).

use scsi::medium::Now;

use super::{Fc4Layer, Port};
use crate::remote::{RemoteId, RemotePort, Role};
use crate::wire::bls::BaRjt;
use crate::wire::ethernet::{self, EthernetHeader, VlanTag};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::frame::{self, FCtl, FrameType, RCtl};

impl<F: Fc4Layer> Port<F> {
    /// Takes a whole Ethernet frame. `vlan` is the identifier of the VLAN that it came by, if its
    /// tag was taken away on the way; 0 counts as none.
    pub fn receive(&mut self, now: Now, bytes: &[u8], vlan: Option<u16>) {
        self.tick(now);
        self.statistics.received_frames += 1;
        self.statistics.received_bytes += bytes.len() as u64;
        let tag = vlan.map(VlanTag::decode);
        let Ok((ethernet, payload)) = EthernetHeader::parse_received(bytes, tag) else {
            self.statistics.malformed += 1;
            return;
        };
        if ethernet.vid() != self.local.tag.map_or(0, |tag| tag.vid) {
            self.statistics.unknown += 1;
            return;
        }
        match ethernet.ethertype {
            ethernet::FCOE => self.fcoe(&ethernet, payload),
            ethernet::FIP => {
                if let Err(violation) = self.fip.receive(self.now, &ethernet, payload) {
                    self.remark(ethernet.src, None, violation);
                }
                self.hear_fip();
            }
            _ => self.statistics.unknown += 1,
        }
    }

    fn fcoe(&mut self, ethernet: &EthernetHeader, payload: &[u8]) {
        let frame = match fcoe::decode(payload) {
            Ok(frame) => frame,
            Err(error) => return self.statistics.spoiled(error),
        };
        if self.query_answer(ethernet, &frame) {
            return;
        }
        match self.sender(ethernet, &frame.header) {
            Some(id) => self.frame(id, &frame),
            None if self.unknown_sender(ethernet, &frame) => {}
            None => self.statistics.unknown += 1,
        }
    }

    /// Which neighbour a frame is from, if it is from one and to us.
    fn sender(&self, ethernet: &EthernetHeader, header: &frame::FrameHeader) -> Option<RemoteId> {
        let ours = self.address()?;
        if header.d_id != ours.fc_id || ethernet.dst != ours.mac {
            return None;
        }
        let id = self.remotes.at(header.s_id)?;
        let is_its_own = self.remotes.get(id)?.address().mac == ethernet.src;
        is_its_own.then_some(id)
    }

    pub(super) fn frame(&mut self, id: RemoteId, frame: &ReceivedFrame<'_>) {
        let is_up = self.remotes.get(id).is_some_and(RemotePort::is_up);
        let header = &frame.header;
        match (header.kind, header.r_ctl) {
            (FrameType::FCP, _) if is_up => self.fc4.receive(self.now, id, frame),
            (FrameType::FCP, r_ctl) => {
                self.statistics.unexpected += 1;
                if F::ROLE == Role::Target && r_ctl == RCtl::UNSOLICITED_COMMAND {
                    self.with_id(id, RemotePort::strayed);
                }
            }
            (FrameType::ELS, RCtl::ELS_REQUEST) => self.els_request(id, is_up, frame),
            (FrameType::ELS, RCtl::ELS_REPLY) => self.els_reply(id, is_up, frame),
            (FrameType::BLS, RCtl::ABTS) => self.abts(id, is_up, frame),
            (FrameType::BLS, RCtl::BA_ACC | RCtl::BA_RJT) if is_up => {
                self.fc4.receive(self.now, id, frame);
            }
            _ => self.statistics.unexpected += 1,
        }
    }

    /// Where there is no nexus, there is no exchange that could be aborted: link services of a
    /// remote port are answered at once.
    fn abts(&mut self, id: RemoteId, is_up: bool, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        if is_up && F::ROLE == Role::Target {
            self.fc4.receive(self.now, id, frame);
        } else if !header.f_ctl.exchange_responder() {
            let kind = (RCtl::BA_RJT, FrameType::BLS);
            let exchange = (header.ox_id, header.rx_id);
            self.queue_control(
                id,
                kind,
                FCtl::REPLY,
                exchange,
                BaRjt::UNKNOWN.encode().to_vec(),
            );
        }
    }
}
