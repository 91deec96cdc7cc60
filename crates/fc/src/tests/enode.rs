//! What an ENode of a fabric sends (FC-BB-6), as whole Ethernet frames, and a switch that hears it.

use std::time::Duration;

use super::frame;
use crate::fabric::{Switch, SwitchConfig, SwitchPortConfig};
use crate::wire::els::{ClassParameters, Els, Features, Logo, ServiceParameters};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::fip::{self, Descriptor, DescriptorType, Encapsulated, FipOperation, Flags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl};
use crate::wire::names::{FcId, Wwn};

/// The frames of an ENode with one VN_Port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnodeFrames {
    /// Its own address.
    pub mac: Mac,
    /// The name of its VN_Port.
    pub wwpn: Wwn,
    /// The name of its node.
    pub wwnn: Wwn,
    /// The address of its FCF.
    pub fcf: Mac,
    /// The tag that its frames have.
    pub vlan: Option<VlanTag>,
}

/// What a FIP message is made of.
pub type FipParts<'a> = (FipOperation, Flags, &'a [Descriptor<'a>]);

/// The FCF-MAC of a port of [`switch_of`].
#[must_use]
pub const fn fcf_mac(port: u8) -> Mac {
    Mac([2, 0, 0, 0xfc, 0, port])
}

/// The port of this number, at an interface in which full frames fit.
#[must_use]
pub fn switch_port(port: u8) -> SwitchPortConfig {
    SwitchPortConfig {
        place: format!("eth{port}").into(),
        mac: fcf_mac(port),
        mtu: 2500,
        tag: None,
        hears_partner: true,
    }
}

/// A switch with as many ports, whose links are up since 0.
#[must_use]
pub fn switch_of(config: &SwitchConfig, ports: u8) -> Switch {
    let mut switch = Switch::new(config, Duration::ZERO, [1; 8]);
    for port in 0..ports {
        let number = switch.add_port(switch_port(port));
        switch.link(Duration::ZERO, number, true);
    }
    switch
}

/// What the ports of tests say in a login: class 3, in frames of up to 2,112 bytes.
#[must_use]
pub fn login(wwpn: Wwn, wwnn: Wwn) -> ServiceParameters {
    ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 10,
        features: Features::CONTINUOUS_OFFSET,
        receive_size: 2112,
        total_sequences: 0,
        relative_offset: 0,
        e_d_tov: 0,
        wwpn,
        wwnn,
        class_3: ClassParameters {
            options: ClassParameters::VALID | ClassParameters::SEQUENTIAL,
            receive_size: 2112,
            ..ClassParameters::default()
        },
    }
}

/// A FIP frame, which is as long as Ethernet has it.
#[must_use]
pub fn fip_frame(header: &EthernetHeader, (operation, flags, parts): FipParts<'_>) -> Vec<u8> {
    let bytes = fip::encode(operation, flags, parts);
    let mut frame = vec![0; (header.len() + bytes.len()).max(ethernet::MIN_LEN)];
    header.put(&mut frame)[..bytes.len()].copy_from_slice(&bytes);
    frame
}

/// Discovery, logins and keep alives by FIP.
impl EnodeFrames {
    /// Of an ENode that is named by its address, as Linux does it, without a tag.
    #[must_use]
    pub const fn new(mac: Mac, fcf: Mac) -> Self {
        Self {
            mac,
            wwpn: Wwn(0x2000 << 48 | mac.number()),
            wwnn: Wwn(0x1000 << 48 | mac.number()),
            fcf,
            vlan: None,
        }
    }

    /// The header of a frame from here.
    #[must_use]
    pub const fn header(&self, src: Mac, dst: Mac, ethertype: u16) -> EthernetHeader {
        EthernetHeader {
            vlan: self.vlan,
            ..EthernetHeader::new(src, dst, ethertype)
        }
    }

    /// A FIP message from its own address.
    #[must_use]
    pub fn fip(&self, dst: Mac, parts: FipParts<'_>) -> Vec<u8> {
        fip_frame(&self.header(self.mac, dst, ethernet::FIP), parts)
    }

    /// FIP VLAN Request, which has no tag.
    #[must_use]
    pub fn vlan_request(&self) -> Vec<u8> {
        let parts = [Descriptor::Mac(self.mac)];
        let header = EthernetHeader::new(self.mac, Mac::ALL_FCF, ethernet::FIP);
        fip_frame(&header, (FipOperation::VlanRequest, Flags::FPMA, &parts))
    }

    /// Discovery Solicitation, of an ENode that takes frames of up to `max_fcoe` bytes behind
    /// their Ethernet header.
    #[must_use]
    pub fn solicitation(&self, max_fcoe: u16) -> Vec<u8> {
        let parts = [
            Descriptor::Mac(self.mac),
            Descriptor::Name(self.wwnn),
            Descriptor::MaxFcoeSize(max_fcoe),
        ];
        self.fip(
            Mac::ALL_FCF,
            (FipOperation::Solicitation, Flags::FPMA, &parts),
        )
    }

    /// FLOGI.
    #[must_use]
    pub fn flogi(&self, ox_id: u16) -> Vec<u8> {
        let flogi = Els::Flogi(login(self.wwpn, self.wwnn));
        let kind = (DescriptorType::FLOGI, FcId::UNIDENTIFIED, OxId(ox_id));
        self.els(Flags::FPMA, kind, &flogi)
    }

    /// FDISC: another N_Port_ID, for `wwpn`.
    #[must_use]
    pub fn fdisc(&self, wwpn: Wwn, ox_id: u16) -> Vec<u8> {
        let fdisc = Els::Fdisc(login(wwpn, self.wwnn));
        let kind = (DescriptorType::FDISC, FcId::UNIDENTIFIED, OxId(ox_id));
        self.els(Flags::FPMA, kind, &fdisc)
    }

    /// LOGO.
    #[must_use]
    pub fn logo(&self, fc_id: FcId, ox_id: u16) -> Vec<u8> {
        let wwpn = self.wwpn;
        let kind = (DescriptorType::LOGO, fc_id, OxId(ox_id));
        self.els(Flags::FPMA, kind, &Els::Logo(Logo { fc_id, wwpn }))
    }

    /// An extended link service that FIP carries.
    #[must_use]
    pub fn els(
        &self,
        flags: Flags,
        (kind, s_id, ox_id): (DescriptorType, FcId, OxId),
        els: &Els,
    ) -> Vec<u8> {
        let request = Descriptor::Els(Encapsulated {
            kind,
            header: FrameHeader::request(
                (RCtl::ELS_REQUEST, FrameType::ELS),
                (s_id, FcId::FABRIC_F),
                ox_id,
            ),
            payload: &els.encode(),
        });
        let granted = match kind {
            DescriptorType::LOGO => Mac::of_port(Mac::FC_MAP, s_id),
            _ => Mac::default(),
        };
        let parts = [request, Descriptor::Mac(granted)];
        self.fip(self.fcf, (FipOperation::ElsRequest, flags, &parts))
    }

    /// The keep alive of the ENode.
    #[must_use]
    pub fn keep_alive(&self) -> Vec<u8> {
        let parts = [Descriptor::Mac(self.mac)];
        self.fip(self.fcf, (FipOperation::KeepAlive, Flags::FPMA, &parts))
    }

    /// The keep alive of its VN_Port.
    #[must_use]
    pub fn port_keep_alive(&self, fc_id: FcId) -> Vec<u8> {
        let mac = Mac::of_port(Mac::FC_MAP, fc_id);
        let wwpn = self.wwpn;
        let parts = [
            Descriptor::Mac(self.mac),
            Descriptor::VxPort { mac, fc_id, wwpn },
        ];
        let header = self.header(mac, self.fcf, ethernet::FIP);
        fip_frame(&header, (FipOperation::KeepAlive, Flags::FPMA, &parts))
    }
}

/// FCoE.
impl EnodeFrames {
    /// A frame that is a whole sequence, from one VN_Port to another.
    #[must_use]
    pub fn fcoe(
        &self,
        kind: (RCtl, FrameType),
        (from, to): (FcId, FcId),
        ox_id: u16,
        payload: &[u8],
    ) -> Vec<u8> {
        let ethernet = self.of_port(from);
        let header = FrameHeader::request(kind, (from, to), OxId(ox_id));
        frame(&ethernet, (Sof::I3, Eof::T), &header, payload)
    }

    /// A sequence that begins an exchange, in frames of up to `frame_max` bytes of payload.
    #[must_use]
    pub fn sequence(
        &self,
        kind: (RCtl, FrameType),
        (from, to): (FcId, FcId),
        ox_id: u16,
        payload: &[u8],
        frame_max: usize,
    ) -> Vec<Vec<u8>> {
        let ethernet = self.of_port(from);
        let whole = FrameHeader::request(kind, (from, to), OxId(ox_id));
        let count = payload.len().div_ceil(frame_max).max(1);
        let one = |at: usize| {
            let end = payload.len().min((at + 1) * frame_max);
            let (f_ctl, eof) = if at + 1 == count {
                (FCtl::REQUEST, Eof::T)
            } else {
                (FCtl::FIRST_SEQUENCE, Eof::N)
            };
            let header = FrameHeader {
                f_ctl,
                seq_cnt: at as u16,
                ..whole
            };
            let sof = if at == 0 { Sof::I3 } else { Sof::N3 };
            frame(
                &ethernet,
                (sof, eof),
                &header,
                &payload[at * frame_max..end],
            )
        };
        (0..count).map(one).collect()
    }

    const fn of_port(&self, fc_id: FcId) -> EthernetHeader {
        let mac = Mac::of_port(Mac::FC_MAP, fc_id);
        self.header(mac, self.fcf, ethernet::FCOE)
    }
}
