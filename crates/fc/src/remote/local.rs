//! What a remote port has to know of our own.

use std::collections::BTreeSet;
use std::time::Duration;

use super::peer::PeerAddress;
use crate::wire::ethernet::VlanTag;
use crate::wire::names::Wwn;

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// FCP initiator.
    Initiator,
    /// FCP target.
    Target,
}

/// With which ports there may be a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partners {
    /// With any.
    #[default]
    Any,
    /// With these, by their WWPN.
    Only(BTreeSet<Wwn>),
}

impl Partners {
    /// Whether a port may log in.
    #[must_use]
    pub fn admit(&self, wwpn: Wwn) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.contains(&wwpn),
        }
    }
}

/// What is offered by PRLI; what the other end offers too is in [`super::Fcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrliOffer {
    /// Lost sequences can be sent again (SRR).
    pub retry: bool,
    /// FCP_CONF.
    pub confirm: bool,
    /// REC.
    pub rec: bool,
    /// Task retry identifiers.
    pub retry_identifier: bool,
}

impl Default for PrliOffer {
    fn default() -> Self {
        Self {
            retry: true,
            confirm: true,
            rec: true,
            retry_identifier: true,
        }
    }
}

impl LocalPort {
    /// Whether it never sends PLOGI of its own accord.
    pub(super) fn awaits_logins(&self) -> bool {
        self.in_fabric && self.role == Role::Target
    }
}

/// Our own port, as logins need to know it.
#[derive(Clone, Debug)]
pub struct LocalPort {
    /// What it is for.
    pub role: Role,
    /// Its place; it changes when FIP claims another.
    pub address: PeerAddress,
    /// Port name.
    pub wwpn: Wwn,
    /// Node name.
    pub wwnn: Wwn,
    /// Whether it is in a fabric: an initiator logs in to the targets that the name server tells,
    /// and a target waits for them.
    pub in_fabric: bool,
    /// The tag that frames carry.
    pub tag: Option<VlanTag>,
    /// The most bytes of payload in a frame that Ethernet lets through.
    pub payload_max: u16,
    /// E_D_TOV.
    pub e_d_tov: Duration,
    /// R_A_TOV.
    pub r_a_tov: Duration,
    /// What PRLI offers.
    pub offer: PrliOffer,
    /// The ports that may log in, and those that we log in to.
    pub partners: Partners,
}
