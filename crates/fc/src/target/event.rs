//! What a target wants of the device server.

use scsi::task::{Command, Function, Tag};
use scsi::wire::lun::Lun;

use crate::remote::RemoteId;

/// What a target wants done. The `nexus` of a [`Command`] is filled in by the caller, which joins
/// the two.
#[derive(Debug)]
pub enum FcpTargetEvent<L> {
    /// *Execute Command*.
    Execute {
        /// From which initiator.
        remote: RemoteId,
        /// The command.
        command: Command,
    },
    /// Data-Out that was asked for has come.
    DataOut {
        /// From which initiator.
        remote: RemoteId,
        /// For which command.
        tag: Tag,
        /// Where in its data.
        offset: u32,
        /// The lease that was given to be filled.
        data: L,
    },
    /// *Task management*, to be answered by [`super::FcpTarget::managed`].
    Manage {
        /// For which initiator.
        remote: RemoteId,
        /// Names the answer.
        id: u32,
        /// On which LUN.
        lun: Lun,
        /// The task management function.
        function: Function,
    },
}

impl<L> FcpTargetEvent<L> {
    pub(super) const fn remote(&self) -> RemoteId {
        match self {
            Self::Execute { remote, .. }
            | Self::DataOut { remote, .. }
            | Self::Manage { remote, .. } => *remote,
        }
    }
}
