//! Sense data: the conditions of iSCSI that end a command with CHECK CONDITION (RFC 7143
//! §11.4.7.2), and unit attentions that may not have come to the initiator when its connection is
//! lost.
//!
//! The device server takes a unit attention as told when it ends a command with it. Here is known
//! what has really come: responses that ExpStatSN covers (RFC 7143 §4.2.2.2).

use scsi::task::SenseBytes;
use scsi::wire::asc;
use scsi::wire::cdb::{be16, byte};
use scsi::wire::sense::{Format, Sense, SenseKey, Status};

use crate::wire::serial::StatSn;

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

/// Responses with unit attentions. I_T NEXUS LOSS OCCURRED does not count: a loss tells it again.
#[derive(Debug, Default)]
pub(super) struct DeliveredAttentions {
    /// This many have not left.
    queued: u32,
    /// The last that has, until it is acknowledged.
    sent: Option<StatSn>,
}

impl DeliveredAttentions {
    /// The device server has ended a command.
    pub(super) fn ended(&mut self, sense: &SenseBytes) {
        self.queued += u32::from(is_attention(sense));
    }

    /// A response leaves.
    pub(super) fn sent(&mut self, sense: &SenseBytes, number: StatSn) {
        if is_attention(sense) {
            self.queued = self.queued.saturating_sub(1);
            self.sent = Some(number);
        }
    }

    /// The initiator expects the response of this number next.
    pub(super) fn acknowledged(&mut self, expected: StatSn) {
        self.sent.take_if(|sent| sent.is_before(expected));
    }

    pub(super) const fn has_come(&self) -> bool {
        self.queued == 0 && self.sent.is_none()
    }
}

/// In either format (SPC-5 §4.4).
fn is_attention(sense: &SenseBytes) -> bool {
    let sense = sense.as_slice();
    let (key, code) = match byte(sense, 0) & 0x7f {
        0x70 => (byte(sense, 2) & 0x0f, be16(sense, 12)),
        0x72 => (byte(sense, 1) & 0x0f, be16(sense, 2)),
        _ => return false,
    };
    key == SenseKey::UnitAttention as u8 && code != asc::NEXUS_LOSS
}
