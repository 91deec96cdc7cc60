//! What a login agreed upon, and for whom: all that a session in its full-feature phase begins
//! with.

use std::fmt;
use std::sync::Arc;

use crate::auth::Hash;
use crate::auth::chap::ChapProof;
use crate::target::{Endpoints, InitiatorPort, TargetNode};
use crate::wire::bhs::MAX_DATA_LEN;

/// The outcome of a login.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The initiator port that logged in.
    pub initiator: InitiatorPort,
    /// InitiatorAlias, if one was declared; for display only.
    pub initiator_alias: Option<String>,
    /// The CHAP user name that was proven; `None` where none was asked for.
    pub user: Option<String>,
    /// How it was proven.
    pub proof: SessionProof,
    /// To what.
    pub purpose: SessionPurpose,
    /// The tag of the portal group by which it came.
    pub portal_group: u16,
    /// Session identifying handle; never 0.
    pub tsih: u16,
    /// Connection id.
    pub cid: u16,
    /// The addresses of the connection.
    pub endpoints: Endpoints,
    /// StatSN of the next response.
    pub stat_sn: u32,
    /// ExpCmdSN: the CmdSN of the first non-immediate command to come. The login responses opened a
    /// window of [`FIRST_WINDOW`] from it (or of the configured limit, if that is less).
    pub exp_cmd_sn: u32,
    /// The operational keys.
    pub keys: Operational,
}

impl Parameters {
    /// The node that a normal session is with.
    #[must_use]
    pub fn node(&self) -> Option<&Arc<TargetNode>> {
        self.purpose.node()
    }

    /// RELATIVE TARGET PORT IDENTIFIER of the SCSI target port that a normal session is with.
    #[must_use]
    pub fn target_port(&self) -> Option<u16> {
        self.node()?.port(self.portal_group)
    }

    /// Who logged in to what, for the log, and by which RDMA device if by one. Names are checked,
    /// but an alias or a user may be any text, so they are quoted.
    #[must_use]
    pub fn introduction(&self, device: Option<&str>) -> String {
        let alias = self.initiator_alias.as_ref();
        let alias = alias.map(|alias| format!(" ({alias:?})"));
        let user = self.user.as_ref().map(|user| format!(" as user {user:?}"));
        let place = self.node().map_or("discover", |node| &node.name);
        let over = match device {
            Some(device) => format!(" over iSER ({device})"),
            None if self.keys.transport.is_rdma() => " over iSER".to_owned(),
            None => String::new(),
        };
        format!(
            "{}{} logged in{}{over} to {place}",
            self.initiator.name,
            alias.unwrap_or_default(),
            user.unwrap_or_default(),
        )
    }

    /// The end of the session for the log: a logout, or another end.
    #[must_use]
    pub fn farewell(&self, logged_out: bool) -> String {
        let name = &self.initiator.name;
        let place = self.node().map_or("discovery", |node| &node.name);
        if logged_out {
            format!("{name} logged out of {place}")
        } else {
            format!("{name}: session with {place} lost")
        }
    }
}

/// How an initiator proved who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionProof {
    /// It did not have to.
    #[default]
    None,
    /// CHAP with this hash.
    Chap(Hash),
    /// The same, and the target proved itself by the same hash.
    Mutual(Hash),
}

impl From<&ChapProof> for SessionProof {
    fn from(proof: &ChapProof) -> Self {
        if proof.is_mutual {
            Self::Mutual(proof.hash)
        } else {
            Self::Chap(proof.hash)
        }
    }
}

impl fmt::Display for SessionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Chap(hash) => write!(f, "chap {}", hash.name()),
            Self::Mutual(hash) => write!(f, "mutual chap {}", hash.name()),
        }
    }
}

/// SessionType (RFC 7143 §13.21), with what follows from it.
#[derive(Clone, Debug)]
pub enum SessionPurpose {
    /// An I_T nexus with this node.
    Normal(Arc<TargetNode>),
    /// SendTargets only; these are the nodes that this initiator may be told of.
    Discovery(Vec<Arc<TargetNode>>),
}

impl SessionPurpose {
    /// The node of a normal session.
    #[must_use]
    pub const fn node(&self) -> Option<&Arc<TargetNode>> {
        match self {
            Self::Normal(node) => Some(node),
            Self::Discovery(_) => None,
        }
    }
}

/// What carries the PDUs and the data of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A TCP connection: iSCSI as RFC 7143 has it.
    #[default]
    Tcp,
    /// A queue pair, from the first message on: iSER (RFC 7145).
    Iser {
        /// The longest data segment that a receive of ours holds, in bytes, at least
        /// [`DEFAULT_DATA_SEGMENT`]: our part in TargetRecvDataSegmentLength.
        data_segment: u32,
    },
}

impl Transport {
    /// Whether it is a queue pair.
    #[must_use]
    pub const fn is_rdma(self) -> bool {
        matches!(self, Self::Iser { .. })
    }
}

/// The operational keys after negotiation (RFC 7143 §13, RFC 7144 §7.1). Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operational {
    /// What they were negotiated for.
    pub transport: Transport,
    /// HeaderDigest=CRC32C.
    pub header_digest: bool,
    /// DataDigest=CRC32C.
    pub data_digest: bool,
    /// MaxConnections.
    pub max_connections: u16,
    /// InitialR2T: no unsolicited Data-Out PDUs.
    pub initial_r2t: bool,
    /// ImmediateData.
    pub immediate_data: bool,
    /// MaxRecvDataSegmentLength that the initiator declared: the longest data segment we may send.
    pub peer_data_segment: u32,
    /// MaxRecvDataSegmentLength that we declared: the longest data segment we must accept.
    pub own_data_segment: u32,
    /// MaxBurstLength.
    pub max_burst: u32,
    /// FirstBurstLength; not above `max_burst`.
    pub first_burst: u32,
    /// DefaultTime2Wait, seconds.
    pub time2wait: u16,
    /// DefaultTime2Retain, seconds.
    pub time2retain: u16,
    /// MaxOutstandingR2T.
    pub outstanding_r2t: u16,
    /// DataPDUInOrder.
    pub pdu_in_order: bool,
    /// DataSequenceInOrder.
    pub sequence_in_order: bool,
    /// ErrorRecoveryLevel.
    pub error_recovery_level: u8,
    /// TaskReporting.
    pub task_reporting: TaskReporting,
    /// iSCSIProtocolLevel; 2 enables RFC 7144.
    pub protocol_level: u8,
    /// Keys of iSER, at their defaults over TCP.
    pub iser: IserKeys,
}

impl Operational {
    /// The longest data segment of a PDU to an initiator that did not ask for its length, in bytes:
    /// of all but Text Responses and NOP-Ins. Over RDMA ib_iser and libiscsi have receives for 128
    /// bytes after their login, whatever they agreed upon.
    #[must_use]
    pub fn unasked_data_segment(&self) -> u32 {
        if self.transport.is_rdma() {
            self.peer_data_segment.min(SMALL_RECEIVE)
        } else {
            self.peer_data_segment
        }
    }

    /// These preferences over `transport`. Over RDMA solicited data costs no round trip more than
    /// unsolicited data does, and a receive is as long as its longest message: so no unsolicited
    /// Data-Out is wanted there.
    #[must_use]
    pub fn over(self, transport: Transport) -> Self {
        let Transport::Iser { data_segment } = transport else {
            return self;
        };
        Self {
            transport,
            initial_r2t: true,
            iser: IserKeys {
                rdma_extensions: true,
                target_data_segment: data_segment.clamp(DEFAULT_DATA_SEGMENT, MAX_DATA_LEN),
                initiator_data_segment: DEFAULT_DATA_SEGMENT,
                ..IserKeys::default()
            },
            ..self
        }
    }
}

impl Default for Operational {
    /// The values that hold where nothing was negotiated.
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            header_digest: false,
            data_digest: false,
            max_connections: 1,
            initial_r2t: true,
            immediate_data: true,
            peer_data_segment: DEFAULT_DATA_SEGMENT,
            own_data_segment: DEFAULT_DATA_SEGMENT,
            max_burst: 262_144,
            first_burst: 65_536,
            time2wait: 2,
            time2retain: 20,
            outstanding_r2t: 1,
            pdu_in_order: true,
            sequence_in_order: true,
            error_recovery_level: 0,
            task_reporting: TaskReporting::Rfc3720,
            protocol_level: 1,
            iser: IserKeys::default(),
        }
    }
}

/// The keys of iSER after negotiation (RFC 7145 §6). Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IserKeys {
    /// RDMAExtensions: the session is iSER-assisted.
    pub rdma_extensions: bool,
    /// TargetRecvDataSegmentLength: the longest data segment that an initiator sends.
    pub target_data_segment: u32,
    /// InitiatorRecvDataSegmentLength: the longest data segment that a target sends.
    pub initiator_data_segment: u32,
    /// MaxOutstandingUnexpectedPDUs, as the other side declared it; 0: without limit.
    pub unexpected_pdus: Option<u32>,
    /// MaxAHSLength, as the other side declared it.
    pub ahs_length: Option<u32>,
    /// TaggedBufferForSolicitedDataOnly, as the initiator declared it.
    pub solicited_only: Option<bool>,
    /// iSERHelloRequired.
    pub hello_required: bool,
}

impl IserKeys {
    /// Whether the Write Base Offset is that of the first byte of solicited data, and not that of
    /// the whole data of a command (RFC 7145 §6.9). Where nothing was declared it is: ib_iser and
    /// libiscsi do so without saying it, against the default of the standard.
    #[must_use]
    pub fn offset_skips_unsolicited(&self) -> bool {
        self.solicited_only.unwrap_or(true)
    }
}

impl Default for IserKeys {
    /// The values that hold where nothing was negotiated.
    fn default() -> Self {
        Self {
            rdma_extensions: false,
            target_data_segment: DEFAULT_DATA_SEGMENT,
            initiator_data_segment: DEFAULT_DATA_SEGMENT,
            unexpected_pdus: None,
            ahs_length: None,
            solicited_only: None,
            hello_required: false,
        }
    }
}

/// How the end of tasks is reported (RFC 7143 §13.23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskReporting {
    /// As RFC 3720 did.
    Rfc3720,
    /// Response fences (§4.2.2.3.3).
    ResponseFence,
    /// Fast multi-task abort (§4.2.3.4), which implies response fences.
    FastAbort,
}

/// MaxRecvDataSegmentLength where none was declared, and of every login PDU (RFC 7143 §13.12).
pub const DEFAULT_DATA_SEGMENT: u32 = 8192;

/// Places in the command window that login responses open: enough for an initiator that sends one
/// command after the other, its task management and its pings. The session widens it with use.
pub const FIRST_WINDOW: u32 = 16;

/// MaxAHSLength where none was declared, and of ours (RFC 7145 §6.8): an extended CDB of 260 bytes
/// is not known to any command set.
pub const MAX_AHS_LENGTH: u32 = 256;

/// Our MaxOutstandingUnexpectedPDUs (RFC 7145 §6.7): commands for immediate delivery that a session
/// takes at once.
pub const UNEXPECTED_PDUS: u32 = 16;

/// Bytes of data that fit into a receive of ib_iser (`ISER_RX_PAYLOAD_SIZE` less two headers), and
/// of libiscsi.
const SMALL_RECEIVE: u32 = 128;
