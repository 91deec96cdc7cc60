//! What is asked of a session, and what it tells.

use scsi::client::{self, Done};
use scsi::task::SenseBytes;
use scsi::wire::lun::Lun;

use super::error::SessionEnd;
use super::portal::ReportedPortal;
use crate::wire::bhs::Opcode;

/// A command that is not taken up.
pub type IscsiRefused<L> = client::Refused<L, IscsiRefusal>;

/// Why something is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IscsiRefusal {
    /// The login is not over.
    #[error("the session is not logged in yet")]
    NotYet,
    /// It is ending, or has ended.
    #[error("the session is over")]
    Over,
    /// As many commands, functions or texts are in flight as may be.
    #[error("too many tasks are in flight: wait until one has ended")]
    Full,
    /// SCSI in a discovery session (RFC 7143 §4.3).
    #[error("a discovery session allows SendTargets only")]
    Discovery,
    /// The lease is longer than the Expected Data Transfer Length can say.
    #[error("a command transfers at most 4294967295 bytes")]
    TooLong,
    /// iSCSIProtocolLevel 2 was not agreed upon (RFC 7144 §6).
    #[error("the target does not support this task management function")]
    Level,
    /// There is no such command: it has ended.
    #[error("unknown command: it has already ended")]
    NoCommand,
    /// A value that cannot be sent.
    #[error("invalid SendTargets value: it must be All, empty, or a name of at most 223 bytes")]
    Value,
}

/// Task management (RFC 7143 §11.5.1, RFC 7144 §6). TASK REASSIGN is left out, as there is
/// nothing to reassign at ErrorRecoveryLevel 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tmf {
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
    /// TARGET WARM RESET.
    TargetWarmReset,
    /// TARGET COLD RESET, after which the target closes its connections.
    TargetColdReset,
    /// QUERY TASK, of the command with this id; iSCSIProtocolLevel 2.
    QueryTask(u64),
    /// QUERY TASK SET; iSCSIProtocolLevel 2.
    QueryTaskSet,
    /// I_T NEXUS RESET; iSCSIProtocolLevel 2.
    NexusReset,
    /// QUERY ASYNCHRONOUS EVENT; iSCSIProtocolLevel 2.
    QueryAsynchronousEvent,
}

/// What a session tells.
#[derive(Debug)]
pub enum InitiatorEvent<L> {
    /// The login is over; [`super::Initiator::outcome`] has what was agreed upon.
    LoggedIn,
    /// The target ended a command.
    Done(Done<L>),
    /// A command ended without a status.
    Failed(IscsiFailed<L>),
    /// A task management function has ended. Commands that it ended have been told before.
    Managed {
        /// The caller's name for it.
        id: u64,
        /// Response ([`crate::wire::task_management::response`] lists them); `None`: the session
        /// ended before it came.
        response: Option<u8>,
        /// Additional Response Information.
        information: [u8; 3],
    },
    /// The answer to SendTargets.
    Targets(Vec<TargetRecord>),
    /// The target does not answer SendTargets: a Reject with this reason.
    TargetsRefused(u8),
    /// Something that the target tells of its own accord.
    Notice(TargetNotice),
    /// The session has ended: close the connection. The last event.
    Ended(SessionEnd),
}

/// A command that ended without a status.
pub type IscsiFailed<L> = client::Failed<L, IscsiCause>;

/// Why a command ended without a status.
pub type IscsiWhy = client::Why<IscsiCause>;

/// Why a command ended without a status, beside the ends of its session and of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IscsiCause {
    /// A task management function ended it, with this code
    /// ([`crate::wire::task_management::function`]).
    Function(u8),
    /// The target says that it failed: a Response that is not 00h (RFC 7143 §11.4.3).
    TargetFailure(u8),
    /// The target rejected it, for this reason ([`crate::wire::control::reason`]).
    Rejected(u8),
    /// The target ended all commands of the logical unit (RFC 7143 §11.9.1, event 5).
    Terminated,
}

/// A target, as SendTargets tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRecord {
    /// TargetName as it was told, without control characters; not checked otherwise.
    pub name: String,
    /// Its portals; none means the one that was asked. Addresses that cannot be read are left out.
    pub portals: Vec<ReportedPortal>,
}

/// What a target tells of its own accord (RFC 7143 §11.9, §11.17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetNotice {
    /// Event 0: a SCSI asynchronous event of a logical unit.
    Scsi {
        /// The logical unit.
        lun: Lun,
        /// Sense data.
        sense: SenseBytes,
    },
    /// Event 1: log out within this many seconds, or be dropped.
    LogoutWanted(u16),
    /// Event 2, of a connection that is not this one.
    ConnectionDrop(u16),
    /// Event 4: parameters are negotiated anew, which the session does by itself.
    Renegotiated,
    /// Event 5: all commands of the logical unit were ended. They are told after this.
    Terminated(Lun),
    /// Any other event, by its code: 255 is the vendor's own, with AsyncVCode.
    Other(u8, u8),
    /// The target rejected a PDU that was none of a command's or function's own.
    Rejected {
        /// Reason.
        reason: u8,
        /// What kind of PDU.
        opcode: Opcode,
    },
}
