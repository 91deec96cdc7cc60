//! What the target nodes of a process are, and which sessions they have.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroize;

use crate::auth::Hash;
use crate::parameters::Operational;
use crate::wire::bhs::MAX_DATA_LEN;

mod registry;

pub use registry::{Decision, Registry};

/// Everything that a login needs to know; the same for all cores.
#[derive(Clone, Debug)]
pub struct Config {
    /// The target nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// Addresses told to initiators in place of the one they came to (`--advertise`).
    pub advertise: Vec<String>,
    /// Limits.
    pub limits: Limits,
}

/// A target node: one SCSI target device with one portal group, tag 1.
#[derive(Clone, Debug)]
pub struct Node {
    /// iSCSI name, normalised.
    pub name: String,
    /// TargetAlias, if any.
    pub alias: Option<String>,
    /// Who may log in.
    pub access: Access,
}

/// Who may log in to a node, and how it proves that.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The initiator names allowed (normalised); `None`: any.
    pub allow: Option<BTreeSet<String>>,
    /// CHAP, which then must be done.
    pub chap: Option<Chap>,
}

impl Access {
    /// Whether the allow list lets an initiator in, whose name is normalised.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|names| names.contains(initiator))
    }
}

/// CHAP credentials.
#[derive(Clone)]
pub struct Chap {
    /// User name and secret of the initiators; several may be given.
    pub users: Vec<(String, Vec<u8>)>,
    /// Our own name and secret for initiators that ask for mutual authentication.
    pub mutual: Option<(String, Vec<u8>)>,
    /// The weakest hash that will do.
    pub minimum: Hash,
}

impl Drop for Chap {
    fn drop(&mut self) {
        self.users
            .iter_mut()
            .for_each(|(_, secret)| secret.zeroize());
        if let Some((_, secret)) = &mut self.mutual {
            secret.zeroize();
        }
    }
}

impl std::fmt::Debug for Chap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chap")
            .field("minimum", &self.minimum)
            .finish_non_exhaustive()
    }
}

/// Bounds on what a peer can cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From accept to full feature phase.
    pub login_timeout: Duration,
    /// Silence after which a NOP-In is sent.
    pub nop_interval: Duration,
    /// Silence after that NOP-In after which the connection is dropped. It is dropped too when it
    /// owes data, and none came in all of this time, though it answers pings.
    pub nop_timeout: Duration,
    /// Connections that have not logged in.
    pub logins: usize,
    /// Sessions.
    pub sessions: usize,
    /// MaxRecvDataSegmentLength that we declare.
    pub data_segment: u32,
    /// FirstBurstLength that we offer.
    pub first_burst: u32,
    /// MaxBurstLength that we offer.
    pub max_burst: u32,
    /// MaxOutstandingR2T that we offer.
    pub outstanding_r2t: u16,
    /// The widest command window (MaxCmdSN - ExpCmdSN + 1).
    pub window: u32,
    /// Data-Out octets that may be held for a session before its device server took them.
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
pub enum Scope {
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

impl Limits {
    /// What we would choose for each negotiated key, and the MaxRecvDataSegmentLength that we
    /// declare. Unsolicited data is welcome, as an R2T for every small write costs four fifths of
    /// the speed; order of data does not matter to us; there is one connection a session and no
    /// recovery of it, so nothing is retained.
    #[must_use]
    pub fn preferences(&self) -> Operational {
        let length = |octets: u32| octets.clamp(512, MAX_DATA_LEN);
        Operational {
            max_connections: 1,
            initial_r2t: false,
            immediate_data: true,
            own_data_segment: length(self.data_segment),
            max_burst: length(self.max_burst),
            first_burst: length(self.first_burst),
            time2wait: 0,
            time2retain: 0,
            outstanding_r2t: self.outstanding_r2t.max(1),
            pdu_in_order: false,
            sequence_in_order: false,
            error_recovery_level: 0,
            protocol_level: 2,
            ..Operational::default()
        }
    }
}
