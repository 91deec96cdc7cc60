//! RFC 7143 §11.4.7.2: the conditions of iSCSI that end a command with CHECK CONDITION.

use scsi::task::SenseBytes;
use scsi::wire::sense::Key;
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
    /// A CDB of more than 32 octets, or a bidirectional command: no command here has either.
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
            Self::UnexpectedUnsolicited => (Key::AbortedCommand, 0x0c0c),
            Self::IncorrectAmount => (Key::AbortedCommand, 0x0c0d),
            Self::Digest => (Key::AbortedCommand, 0x4705),
            Self::SnackRejected => (Key::AbortedCommand, 0x1113),
            Self::NoSuchCommand => (Key::IllegalRequest, 0x2000),
            Self::NoRoom => return SenseBytes::EMPTY,
        };
        fixed(key, code)
    }
}

/// Sense data in fixed format with nothing but key and additional sense code.
pub(super) fn fixed(key: Key, code: u16) -> SenseBytes {
    let [asc, ascq] = code.to_be_bytes();
    let mut octets = [0; 18];
    octets[0] = 0x70;
    octets[2] = key as u8;
    octets[7] = 10;
    octets[12] = asc;
    octets[13] = ascq;
    SenseBytes::new(&octets)
}
