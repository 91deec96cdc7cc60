//! RFC 7143 §11.4.7.2: the conditions of iSCSI that end a command with CHECK CONDITION.

use scsi::task::SenseBytes;
use scsi::wire::asc;
use scsi::wire::sense::{Format, Sense, SenseKey};
use scsi::wire::status::Status;

/// Why the session itself ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Immediate or unsolicited data that was not agreed upon.
    UnexpectedUnsolicited,
    /// More or less data than was announced or asked for.
    IncorrectAmount,
    /// Data was lost: a data digest error, or a hole in the DataSN.
    Digest,
    /// A SNACK cannot be obeyed.
    SnackRejected,
    /// A CDB of more than 32 bytes, or a bidirectional command: no command here has either.
    NoSuchCommand,
    /// There is no room to hold its data.
    NoRoom,
}

impl Condition {
    pub(super) const fn status(self) -> Status {
        match self {
            Self::NoRoom => Status::TaskSetFull,
            _ => Status::CheckCondition,
        }
    }

    /// Sense data in fixed format (SPC-5 §4.4.3); the session does not know D_SENSE.
    pub(super) fn sense(self) -> SenseBytes {
        let (key, code) = match self {
            Self::UnexpectedUnsolicited => {
                (SenseKey::AbortedCommand, asc::UNEXPECTED_UNSOLICITED_DATA)
            }
            Self::IncorrectAmount => (SenseKey::AbortedCommand, asc::NOT_ENOUGH_UNSOLICITED_DATA),
            Self::Digest => (SenseKey::AbortedCommand, asc::PROTOCOL_SERVICE_CRC_ERROR),
            Self::SnackRejected => (SenseKey::AbortedCommand, asc::FAILED_RETRANSMISSION_REQUEST),
            Self::NoSuchCommand => (
                SenseKey::IllegalRequest,
                asc::INVALID_COMMAND_OPERATION_CODE,
            ),
            Self::NoRoom => return SenseBytes::EMPTY,
        };
        Sense::new(key, code).encode(Format::Fixed)
    }
}
