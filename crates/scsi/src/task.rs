//! Commands on their way, as the transport and the device server exchange them (SAM-5 §5.4).

use crate::nexus::NexusId;
use crate::wire::lun::Lun;
use crate::wire::sense::{Sense, Status};

/// What a transport calls a command, unique among those of a nexus that have not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

/// SAM-5 §8.6: task attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Attribute {
    /// Untagged or SIMPLE.
    #[default]
    Simple,
    /// After all older, before all newer.
    Ordered,
    /// Before all that have not begun.
    HeadOfQueue,
    /// ACA; refused, as NACA is not offered.
    Aca,
}

/// *Execute Command* (SAM-5 §5.4.2).
#[derive(Clone, Debug)]
pub struct Command {
    /// From whom.
    pub nexus: NexusId,
    /// The transport's name for it.
    pub tag: Tag,
    /// To which logical unit.
    pub lun: Lun,
    /// The CDB, zero-padded; longer ones than 16 bytes are told by `cdb_len`.
    pub cdb: [u8; 32],
    /// Bytes of the CDB that came (16 for every iSCSI command without AHS, however short the CDB).
    pub cdb_len: u8,
    /// Task attribute.
    pub attribute: Attribute,
    /// Command priority; 0 is none.
    pub priority: u8,
    /// Bytes the initiator is ready to receive.
    pub expected_in: u32,
    /// Bytes the initiator is ready to send.
    pub expected_out: u32,
}

/// *Send Command Complete* (SAM-5 §5.4.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Status.
    pub status: Status,
    /// Sense data for CHECK CONDITION, already in the format that D_SENSE asked for; else empty.
    pub sense: SenseBytes,
    /// STATUS QUALIFIER (RFC 7144 §2.2); 0 is none.
    pub qualifier: u16,
    /// How many bytes the CDB asked to move to the initiator. The residual against
    /// `expected_in` is the transport's to tell.
    pub length_in: u64,
    /// How many bytes the CDB asked to move from the initiator.
    pub length_out: u64,
}

/// Sense data as bytes. Without any, as most commands end, it takes no memory.
#[derive(Clone, PartialEq, Eq)]
pub struct SenseBytes(Option<Box<[u8]>>);

impl SenseBytes {
    /// The most bytes.
    pub const MAX: usize = 72;

    /// No sense data.
    pub const EMPTY: Self = Self(None);

    /// A copy of `bytes`, cut off after [`Self::MAX`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(Self::MAX)];
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl std::fmt::Debug for SenseBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

/// Task management functions (SAM-5 §7; RFC 7143 §11.5.1 and RFC 7144 §4 carry them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// ABORT TASK.
    AbortTask(Tag),
    /// ABORT TASK SET.
    AbortTaskSet,
    /// CLEAR ACA.
    ClearAca,
    /// CLEAR TASK SET: of the nexus that asks, as each has its own (TST = 001b).
    ClearTaskSet,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// TARGET WARM RESET and TARGET COLD RESET: every unit of the target device.
    TargetReset,
    /// I_T NEXUS RESET.
    NexusReset,
    /// QUERY TASK.
    QueryTask(Tag),
    /// QUERY TASK SET.
    QueryTaskSet,
    /// QUERY ASYNCHRONOUS EVENT.
    QueryAsynchronousEvent,
}

/// What became of a task management function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionResult {
    /// FUNCTION COMPLETE (a query found nothing).
    Complete,
    /// FUNCTION SUCCEEDED (a query found something); with the additional response information of
    /// QUERY ASYNCHRONOUS EVENT.
    Succeeded([u8; 3]),
    /// FUNCTION REJECTED.
    Rejected,
    /// INCORRECT LOGICAL UNIT NUMBER.
    IncorrectLun,
    /// The task to be aborted is not known (ABORT TASK completes; iSCSI words it in its own way).
    NoTask,
}

/// Why a command did not go well: status and sense as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFailure {
    /// CHECK CONDITION.
    Check(Sense),
    /// A bare status.
    Status(Status),
}

impl From<Sense> for CommandFailure {
    fn from(sense: Sense) -> Self {
        Self::Check(sense)
    }
}
