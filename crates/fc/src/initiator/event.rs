//! What is asked of an initiator, and what it tells.

use scsi::medium::{Lease, Now};
use scsi::residual::Residual;
use scsi::task::{Attribute, SenseBytes};
use scsi::wire::lun::Lun;

use crate::remote::RemoteId;

/// A SCSI command. CDBs of more than 16 octets are not sent.
#[derive(Clone, Debug)]
pub struct Command<L> {
    /// The caller's name for it, told when it ends; unique among those that have not.
    pub id: u64,
    /// To which logical unit.
    pub lun: Lun,
    /// The CDB, padded with zeros.
    pub cdb: [u8; 16],
    /// Task attribute.
    pub attribute: Attribute,
    /// Where its data goes or comes from.
    pub data: Data<L>,
    /// When it has to have ended; `None`: after the configured time.
    pub deadline: Option<Now>,
}

/// The data of a command; the whole lease is FCP_DL.
#[derive(Clone, Debug)]
pub enum Data<L> {
    /// None.
    None,
    /// From the target.
    In {
        /// Where to.
        into: L,
    },
    /// To the target.
    Out {
        /// Where from.
        from: L,
    },
}

impl<L: Lease> Data<L> {
    /// Octets; `None` if they do not fit into 32 bits.
    pub(super) fn len(&self) -> Option<u32> {
        match self {
            Self::None => Some(0),
            Self::In { into: lease } | Self::Out { from: lease } => lease.len().try_into().ok(),
        }
    }
}

/// What is not taken up, and comes back.
#[derive(Clone, Debug)]
pub struct Refused<L> {
    /// Why.
    pub why: Refusal,
    /// What.
    pub command: Command<L>,
}

/// Why something is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no login with the target.
    #[error("not logged in to the target")]
    NotLoggedIn,
    /// As many commands or functions are under way as may be.
    #[error("as much is under way as may be: wait until something of it has ended")]
    Full,
    /// The lease is longer than FCP_DL can say.
    #[error("a command moves at most 4294967295 octets")]
    TooLong,
    /// There is no such command: it has ended.
    #[error("there is no such command: it has ended")]
    NoCommand,
}

/// Task management (FCP-4). ABORT TASK is an ABTS, QUERY TASK a REC; I_T NEXUS RESET is a logout,
/// and thus the port's to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// ABORT TASK, of the command with this id.
    AbortTask(u64),
    /// ABORT TASK SET.
    AbortTaskSet,
    /// CLEAR ACA.
    ClearAca,
    /// CLEAR TASK SET.
    ClearTaskSet,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// TARGET RESET, which FCP-4 calls obsolete.
    TargetReset,
    /// QUERY TASK, of the command with this id.
    QueryTask(u64),
}

/// What an initiator tells.
#[derive(Debug)]
pub enum Event<L> {
    /// The target ended a command.
    Done(Done<L>),
    /// A command ended without a status.
    Failed(Failed<L>),
    /// A task management function has ended. Commands that it ended have been told before.
    Managed {
        /// The target.
        remote: RemoteId,
        /// The caller's name for it.
        id: u64,
        /// RSP_CODE ([`crate::wire::fcp::response`] lists them); `None`: none came.
        response: Option<u8>,
    },
    /// The target leaves even aborts unanswered. Only the end of the login helps:
    /// [`super::Initiator::peer_down`] is to follow.
    Stuck(RemoteId),
}

/// A command that the target ended.
#[derive(Clone, Debug)]
pub struct Done<L> {
    /// The target.
    pub remote: RemoteId,
    /// Which.
    pub id: u64,
    /// SCSI status.
    pub status: u8,
    /// Sense data, of CHECK CONDITION.
    pub sense: SenseBytes,
    /// What is left of its data.
    pub residual: Residual,
    /// Octets of its data that really came or went, whatever the residual says.
    pub moved: u32,
    /// STATUS QUALIFIER or retry delay timer; 0 is none.
    pub qualifier: u16,
    /// Its lease, of which all but the residual was filled where the status is GOOD.
    pub data: Data<L>,
}

/// A command that ended without a status.
#[derive(Clone, Debug)]
pub struct Failed<L> {
    /// The target.
    pub remote: RemoteId,
    /// Which.
    pub id: u64,
    /// What is known of it.
    pub fate: Fate,
    /// Why.
    pub why: Why,
    /// Its lease.
    pub data: Data<L>,
}

/// What is known of a command that ended without a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was not sent.
    NeverSent,
    /// It was sent, and may have been carried out, or be so later, until the target has a new login
    /// of ours.
    Unknown,
    /// It was sent, and may have been carried out, in part too; but the target has ended it, and
    /// nothing of it happens from now on.
    Aborted,
}

/// Why a command ended without a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The login ended.
    Ended,
    /// Its deadline passed.
    Late,
    /// Frames of it were lost.
    Lost,
    /// A task management function ended it.
    Function,
    /// The target says what was wrong with it, by this RSP_CODE.
    Rejected(u8),
    /// Its response contradicts what came before.
    Contradiction,
}
