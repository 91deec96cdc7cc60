//! What is asked of an initiator, and what it tells.

use scsi::client::{self, Done};

use crate::remote::RemoteId;

/// A command that is not taken up.
pub type FcpRefused<L> = client::Refused<L, CommandRefusal>;

/// Why something is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefusal {
    /// There is no login with the target.
    #[error("not logged in to the target")]
    NotLoggedIn,
    /// As many commands or functions are in flight as may be.
    #[error("too many tasks are in flight: wait until one has ended")]
    Full,
    /// The lease is longer than FCP_DL can say.
    #[error("a command transfers at most 4294967295 bytes")]
    TooLong,
    /// There is no such command: it has ended.
    #[error("unknown command: it has already ended")]
    NoCommand,
}

/// Task management (FCP-4). ABORT TASK is an ABTS, QUERY TASK a REC; I_T NEXUS RESET is a logout,
/// and thus the port's to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcpTmf {
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
    /// QUERY TASK SET.
    QueryTaskSet,
    /// QUERY ASYNCHRONOUS EVENT.
    QueryAsynchronousEvent,
}

/// What an initiator tells.
#[derive(Debug)]
pub enum FcpInitiatorEvent<L> {
    /// The target ended a command.
    Done(Done<L>),
    /// A command ended without a status.
    Failed(FcpFailed<L>),
    /// A task management function has ended. Commands that it ended have been told before.
    Managed {
        /// The target.
        remote: RemoteId,
        /// The caller's name for it.
        id: u64,
        /// RSP_CODE ([`crate::wire::fcp::response`] lists them); `None`: none came.
        response: Option<u8>,
        /// What QUERY ASYNCHRONOUS EVENT found (SAM-5); of all others zeros.
        information: [u8; 3],
    },
    /// The target leaves even aborts unanswered. Only the end of the login helps:
    /// [`super::FcpInitiator::peer_down`] is to follow.
    Stuck(RemoteId),
}

/// A command that ended without a status.
pub type FcpFailed<L> = client::Failed<L, FcpCause>;

/// Why a command ended without a status.
pub type FcpWhy = client::Why<FcpCause>;

/// Why a command ended without a status, beside the ends of its login and of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcpCause {
    /// Frames of it were lost.
    Lost,
    /// A task management function ended it.
    Function,
    /// The target says what was wrong with it, by this RSP_CODE.
    Rejected(u8),
    /// Its response contradicts what came before.
    Contradiction,
}
