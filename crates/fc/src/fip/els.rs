//! ELS inside FIP: FLOGI and LOGO, and what answers them (FC-BB-6, FC-LS-2).

use super::neighbour::Neighbour;
use super::{FCOE_OVERHEAD, Fip, vn_mac};
use crate::wire::els::{ClassParameters, Els, Features, LsRejectReason, Reply, ServiceParameters};
use crate::wire::ethernet::Mac;
use crate::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags,
};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;
use scsi::violation::Violation;

/// The ELS of a message, which comes first. The MAC address behind it says nothing that the
/// N_Port_ID does not.
pub(crate) fn encapsulated<'a>(message: &FipMessage<'a>) -> Result<Encapsulated<'a>, Violation> {
    let mut descriptors = message.descriptors();
    let Some(Descriptor::Els(els)) = descriptors.next().transpose()? else {
        return Err(NO_ELS);
    };
    let mut macs = 0;
    for descriptor in descriptors {
        match descriptor? {
            Descriptor::Mac(_) => macs += 1,
            other if other.kind().is_critical() => return Err(NO_ELS),
            _ => {}
        }
    }
    if macs > 1 { Err(NO_ELS) } else { Ok(els) }
}

impl Fip {
    /// What an FLOGI and its LS_ACC tell: as Linux does, no more than its sender and how long
    /// frames may be. PLOGI tells the rest.
    pub(super) fn service_parameters(&self) -> ServiceParameters {
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 10,
            features: Features::CONTINUOUS_OFFSET,
            receive_size: self.config.max_fcoe.saturating_sub(FCOE_OVERHEAD as u16),
            total_sequences: 0,
            relative_offset: 0,
            e_d_tov: 0,
            wwpn: self.config.wwpn,
            wwnn: self.config.wwnn,
            class_3: ClassParameters {
                options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
                ..ClassParameters::default()
            },
        }
    }

    pub(super) fn accept(&mut self, who: &Neighbour, els: &Encapsulated<'_>, reply: &Reply) {
        let reply = Descriptor::Els(Encapsulated {
            kind: els.kind,
            header: self.reply_header(els),
            payload: &reply.encode(),
        });
        let granted = Descriptor::Mac(vn_mac(self.fc_id));
        let bytes = fip::encode(FipOperation::ElsReply, Flags::default(), &[reply, granted]);
        self.send_els(who.enode, bytes);
    }

    /// A rejection grants no address, so it has no descriptor for one.
    pub(super) fn reject(&mut self, dst: Mac, els: &Encapsulated<'_>, reject: LsRejectReason) {
        let reply = Descriptor::Els(Encapsulated {
            kind: els.kind,
            header: self.reply_header(els),
            payload: &Reply::Reject(reject).encode(),
        });
        let bytes = fip::encode(FipOperation::ElsReply, Flags::default(), &[reply]);
        self.send_els(dst, bytes);
    }

    fn reply_header(&self, els: &Encapsulated<'_>) -> FrameHeader {
        FrameHeader {
            r_ctl: RCtl::ELS_REPLY,
            f_ctl: FCtl::REPLY,
            ..self.request_header(els.header.s_id, els.header.ox_id)
        }
    }

    const fn request_header(&self, d_id: FcId, ox_id: OxId) -> FrameHeader {
        let exchange = (ox_id, RxId::UNASSIGNED);
        FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new(
                (RCtl::ELS_REQUEST, FrameType::ELS),
                (self.fc_id, d_id),
                exchange,
            )
        }
    }

    /// Sends a request under a number of its own. Those of other exchanges may be the same: what
    /// travels inside FIP is answered inside FIP.
    pub(super) fn request(
        &mut self,
        kind: DescriptorType,
        dst: Mac,
        d_id: FcId,
        els: &Els,
    ) -> OxId {
        let ox_id = OxId(self.next_ox_id);
        self.next_ox_id = (self.next_ox_id + 1) % OxId::UNASSIGNED.0;
        let request = Descriptor::Els(Encapsulated {
            kind,
            header: self.request_header(d_id, ox_id),
            payload: &els.encode(),
        });
        let ours = Descriptor::Mac(vn_mac(self.fc_id));
        let bytes = fip::encode(FipOperation::ElsRequest, Flags::default(), &[request, ours]);
        self.send_els(dst, bytes);
        ox_id
    }
}

const NO_ELS: Violation = Violation {
    rule: "an ELS in FIP with a descriptor missing, twice, or out of place",
    clause: "FC-BB-6, FIP",
};
