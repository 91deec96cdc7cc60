//! What the target nodes of a process are, and which sessions they have.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::parameters::{FIRST_WINDOW, Operational};
use crate::wire::bhs::MAX_DATA_LEN;

mod access;
mod login;
mod node;
mod registry;

pub use access::{AccessGroup, ChapUser, Initiators, NodeAccess, TargetChap};
pub use login::NodeLogin;
pub(crate) use node::plain;
pub use node::{PortalGroup, TargetNode, listens};
pub use registry::{AdmissionDecision, AdmissionWish, Registry, SessionIdentity};

/// The highest iSCSIProtocolLevel that is negotiated: that of RFC 7144 (§7.1.1).
pub const PROTOCOL_LEVEL: u8 = 2;

/// Everything that a login needs to know; the same for all cores.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// The target nodes, by name.
    pub nodes: Vec<Arc<TargetNode>>,
    /// Where the server listens, with the ports that were picked.
    pub portals: Vec<SocketAddr>,
    /// Which of them take iSER, too.
    pub iser: IserPortals,
    /// Addresses told to initiators in place of the portals (`--advertise`).
    pub advertise: Vec<String>,
    /// Limits.
    pub limits: TargetLimits,
}

/// Where iSER is taken, and what carries it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IserPortals {
    /// The portals whose connections of TCP may be those of software iWARP: the first byte tells.
    pub portals: Vec<SocketAddr>,
    /// The portals that RDMA devices listen on, too.
    pub devices: Vec<SocketAddr>,
    /// CRCs are not asked for, though RFC 5044 §4.4 would have them. They are used if the
    /// initiator asks.
    pub without_crc: bool,
}

impl IserPortals {
    /// Whether a connection of TCP that came to `local` may be one of iSER.
    #[must_use]
    pub fn take(&self, local: SocketAddr) -> bool {
        listens(&self.portals, local)
    }

    /// Whether initiators can come to this portal over iSER.
    #[must_use]
    pub fn are_at(&self, portal: SocketAddr) -> bool {
        self.portals.contains(&portal) || self.devices.contains(&portal)
    }
}

/// Bounds on what a peer can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// From accept to full feature phase.
    pub login_timeout: Duration,
    /// Silence after which a NOP-In is sent, at first; an idle session is asked less and less often
    /// (`session/nop.rs`).
    pub nop_interval: Duration,
    /// Silence after that NOP-In after which the connection is dropped. It is dropped too when it
    /// owes data, and none came in all of this time, or has not taken in all of this time what one
    /// operation sends, though it answers pings.
    pub nop_timeout: Duration,
    /// Connections that have not logged in, at once.
    pub logins: usize,
    /// Sessions, at once.
    pub sessions: usize,
    /// MaxRecvDataSegmentLength that we declare.
    pub data_segment: u32,
    /// FirstBurstLength that we offer, if `held_bytes` is enough for the first commands.
    pub first_burst: u32,
    /// MaxBurstLength that we offer.
    pub max_burst: u32,
    /// MaxOutstandingR2T that we offer.
    pub outstanding_r2t: u16,
    /// The widest command window (MaxCmdSN - ExpCmdSN + 1).
    pub window: u32,
    /// Data-Out bytes that may be held for a session before its device server took them. It also
    /// bounds the command window: MaxCmdSN advances only as far as the data of all commands in the
    /// window can be held.
    pub held_bytes: u32,
}

/// An initiator's port: its name and ISID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// InitiatorName, normalised.
    pub name: String,
    /// ISID.
    pub isid: [u8; 6],
}

/// Within what an initiator port may have one session only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionScope {
    /// A portal group of a target node, by the node's name and the tag (RFC 7143 §4.4.3, the ISID
    /// RULE).
    Node(String, u16),
    /// A portal, by its address: a discovery session that named no target (§7.4.2.1).
    Portal(SocketAddr),
}

/// The two ends of the TCP connection that a login came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Ours, as the peer addressed it.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

impl Default for TargetLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TargetLimits {
    /// Those of a server that is told nothing else.
    pub const DEFAULT: Self = Self {
        login_timeout: Duration::from_secs(15),
        nop_interval: Duration::from_secs(30),
        nop_timeout: Duration::from_secs(60),
        logins: 256,
        sessions: 16_384,
        data_segment: 256 << 10,
        first_burst: 256 << 10,
        max_burst: 1 << 20,
        outstanding_r2t: 8,
        window: 256,
        held_bytes: 16 << 20,
    };

    /// The longest FirstBurstLength: the first commands may all bring as much unasked, and it is
    /// held until the device server lends memory.
    #[must_use]
    pub const fn most_first_burst(&self) -> u32 {
        self.held_bytes / FIRST_WINDOW
    }

    /// What we would choose for each negotiated key, and the MaxRecvDataSegmentLength that we
    /// declare. Unsolicited data is welcome, as an R2T for every small write costs four fifths of
    /// the speed, and as much of it can be held as the first commands may bring; order of data does
    /// not matter to us; there is one connection a session and no recovery of it, so nothing is
    /// retained.
    #[must_use]
    pub fn preferences(&self) -> Operational {
        let length = |bytes: u32| bytes.clamp(512, MAX_DATA_LEN);
        Operational {
            max_connections: 1,
            initial_r2t: false,
            immediate_data: true,
            own_data_segment: length(self.data_segment),
            max_burst: length(self.max_burst),
            first_burst: length(self.first_burst.min(self.most_first_burst())),
            time2wait: 0,
            time2retain: 0,
            outstanding_r2t: self.outstanding_r2t.max(1),
            pdu_in_order: false,
            sequence_in_order: false,
            error_recovery_level: 0,
            protocol_level: PROTOCOL_LEVEL,
            ..Operational::default()
        }
    }
}
