//! What the target nodes of a process are, and which sessions they have.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroize;

use crate::auth::Hash;
use crate::parameters::{FIRST_WINDOW, Operational};
use crate::wire::bhs::MAX_DATA_LEN;

mod registry;

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
    /// Addresses told to initiators in place of the portals (`--advertise`).
    pub advertise: Vec<String>,
    /// Limits.
    pub limits: TargetLimits,
}

/// A target node: one SCSI target device with one portal group, tag 1.
#[derive(Clone, Debug)]
pub struct TargetNode {
    /// iSCSI name, normalised.
    pub name: String,
    /// TargetAlias, if any.
    pub alias: Option<String>,
    /// Which initiators may log in.
    pub access: NodeAccess,
}

/// The initiators that may log in to a node, and their CHAP users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAccess {
    /// The initiator names allowed (normalised); `None`: any.
    pub allow: Option<BTreeSet<String>>,
    /// CHAP, which then must be done.
    pub chap: Option<TargetChap>,
}

impl NodeAccess {
    /// Whether the allow list lets an initiator in, whose name is normalised.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|names| names.contains(initiator))
    }
}

/// CHAP credentials. The secrets are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetChap {
    /// The users of initiators; at least one.
    pub users: Vec<ChapUser>,
    /// Our own name and secret for initiators that ask for mutual authentication.
    pub mutual: Option<(String, Vec<u8>)>,
    /// The weakest hash that will do.
    pub minimum: Hash,
}

/// One credential, and the initiator that may use it.
#[derive(Clone, PartialEq, Eq)]
pub struct ChapUser {
    /// CHAP_N.
    pub name: String,
    /// The InitiatorName, normalised, that the user is bound to (RFC 7143 §9.2); `None`: any.
    pub initiator: Option<String>,
    /// The secret.
    pub secret: Vec<u8>,
}

impl ChapUser {
    /// Whether an initiator of this normalised name may log in as this user.
    #[must_use]
    pub fn is_for(&self, initiator: &str) -> bool {
        self.initiator.as_ref().is_none_or(|name| name == initiator)
    }
}

impl Drop for ChapUser {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl std::fmt::Debug for ChapUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChapUser")
            .field("name", &self.name)
            .field("initiator", &self.initiator)
            .finish_non_exhaustive()
    }
}

impl Drop for TargetChap {
    fn drop(&mut self) {
        if let Some((_, secret)) = &mut self.mutual {
            secret.zeroize();
        }
    }
}

impl std::fmt::Debug for TargetChap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chap")
            .field("users", &self.users)
            .field("mutual", &self.mutual.as_ref().map(|(user, _)| user))
            .field("minimum", &self.minimum)
            .finish()
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
    /// A portal group of a target node, by the node's name (RFC 7143 §4.4.3, the ISID RULE). There
    /// is one portal group to a node.
    Node(String),
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
        Self {
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
        }
    }
}

impl TargetLimits {
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
            first_burst: length(self.first_burst.min(self.held_bytes / FIRST_WINDOW)),
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
