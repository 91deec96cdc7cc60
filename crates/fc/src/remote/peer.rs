//! What the FCP machines know of a remote port.

use std::time::Duration;

use crate::wire::ethernet::{self, Mac, VlanTag};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// Numbers a remote port among those that one N_Port knows; also its index where they are kept. The
/// number is used again only after the port is gone and what it left behind has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteId(pub u32);

impl RemoteId {
    /// As an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port's place on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerAddress {
    /// Its address identifier.
    pub fc_id: FcId,
    /// The Ethernet address that goes with it.
    pub mac: Mac,
}

/// A remote port that is logged in, as the machines of FCP see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcpPeer {
    /// Its place.
    pub address: PeerAddress,
    /// Ours.
    pub own: PeerAddress,
    /// The tag that frames to it carry; `None` where a lower layer adds it, or there is none.
    pub tag: Option<VlanTag>,
    /// Its port name.
    pub wwpn: Wwn,
    /// The most bytes of payload in a frame to it: a multiple of 4 from 256 to 2112.
    pub payload_max: u16,
    /// What its PRLI and ours agreed upon.
    pub fcp: Fcp,
    /// E_D_TOV: the longer of its and ours.
    pub e_d_tov: Duration,
    /// R_A_TOV: how long a frame may linger.
    pub r_a_tov: Duration,
}

/// What two PRLIs agreed upon (FCP-4, FCP service parameters): each is offered by both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fcp {
    /// Lost sequences are sent again, on SRR.
    pub retry: bool,
    /// A target may ask for FCP_CONF.
    pub confirm: bool,
    /// REC is answered.
    pub rec: bool,
    /// Commands carry a task retry identifier.
    pub retry_identifier: bool,
}

impl FcpPeer {
    /// The Ethernet header of an FCoE frame to it.
    #[must_use]
    pub const fn ethernet(&self) -> ethernet::EthernetHeader {
        ethernet::EthernetHeader {
            vlan: self.tag,
            ..ethernet::EthernetHeader::new(self.own.mac, self.address.mac, ethernet::FCOE)
        }
    }

    /// The header of a frame to it: the first of its sequence, without what only some frames have.
    #[must_use]
    pub const fn header(
        &self,
        r_ctl: RCtl,
        kind: FrameType,
        ox_id: OxId,
        rx_id: RxId,
    ) -> FrameHeader {
        let ports = (self.own.fc_id, self.address.fc_id);
        FrameHeader::new((r_ctl, kind), ports, (ox_id, rx_id))
    }
}
