//! What the answer to a command means for the client.

use crate::medium::MediumError;
use crate::wire::asc;
use crate::wire::cdb::{be16, byte};
use crate::wire::sense::{SenseKey, Status};

/// How a command ended, as the transport tells it.
#[derive(Clone, Copy, Debug)]
pub struct CommandStatus<'a> {
    /// SAM-5 §5.3.1.
    pub status: u8,
    /// Sense data, in either format; empty where there is none.
    pub sense: &'a [u8],
    /// Bytes of its data that came, or that the unit took.
    pub moved: usize,
}

/// What is to be done about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerAction {
    Good,
    /// Something was only told by the way: repeat the command.
    Again,
    /// The same, and this has changed.
    Attention(u16),
    /// Repeat it after a while; what it comes to when that never ends.
    Later(MediumError),
    /// The unit does not know the command, or a field of it.
    Refused,
    Failed(MediumError),
    /// A reservation keeps us out.
    Conflict,
    /// The unit may not be written.
    Protected,
    /// It could not do this, and does not say more.
    Unable,
}

impl AnswerAction {
    /// Whether the command is to be repeated, be it after a while.
    pub(super) const fn is_again(self) -> bool {
        matches!(self, Self::Again | Self::Attention(_) | Self::Later(_))
    }
}

/// What a unit attention announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttentionKind {
    /// Power was off, or everything was reset, and a volatile cache with it. Mode pages are what
    /// they were saved as.
    Reset,
    /// What it says of itself, or which unit it is: it is to be asked again.
    Unit,
    /// Our registration was taken back by an initiator that fences us off.
    Fenced,
    Other,
}

impl CommandStatus<'_> {
    /// A status, and nothing with it.
    #[must_use]
    pub const fn bare(status: Status) -> Self {
        Self {
            status: status as u8,
            sense: &[],
            moved: 0,
        }
    }

    /// Whether the command may go well when it is repeated, be it after a while.
    #[must_use]
    pub fn wants_again(&self) -> bool {
        self.verdict().is_again()
    }

    /// Whether it is to be repeated after a while.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.verdict(), AnswerAction::Later(_))
    }

    pub(super) fn verdict(&self) -> AnswerAction {
        match self.status {
            good if good == Status::Good as u8 || good == Status::ConditionMet as u8 => {
                AnswerAction::Good
            }
            check if check == Status::CheckCondition as u8 => self.check(),
            busy if busy == Status::Busy as u8 || busy == Status::TaskSetFull as u8 => {
                AnswerAction::Later(MediumError::Busy)
            }
            aborted if aborted == Status::TaskAborted as u8 => AnswerAction::Again,
            conflict if conflict == Status::ReservationConflict as u8 => AnswerAction::Conflict,
            _ => AnswerAction::Failed(MediumError::Gone),
        }
    }

    /// The code of a unit attention.
    pub(super) fn attention(&self) -> Option<u16> {
        match self.verdict() {
            AnswerAction::Attention(code) => Some(code),
            _ => None,
        }
    }

    /// Sense key, and additional sense code with qualifier.
    fn sense(&self) -> (u8, u16) {
        match byte(self.sense, 0) & 0x7f {
            0x70 | 0x71 => (byte(self.sense, 2) & 0x0f, be16(self.sense, 12)),
            0x72 | 0x73 => (byte(self.sense, 1) & 0x0f, be16(self.sense, 2)),
            _ => (SenseKey::NoSense as u8, asc::NONE),
        }
    }

    fn check(&self) -> AnswerAction {
        let (key, code) = self.sense();
        let is = |other: SenseKey| key == other as u8;
        if is(SenseKey::NoSense) && self.sense.is_empty() {
            return AnswerAction::Failed(MediumError::Gone);
        }
        if is(SenseKey::NoSense) || is(SenseKey::RecoveredError) || is(SenseKey::Completed) {
            return AnswerAction::Good;
        }
        if is(SenseKey::UnitAttention) {
            return AnswerAction::Attention(code);
        }
        if is(SenseKey::AbortedCommand) {
            return AnswerAction::Again;
        }
        if is(SenseKey::NotReady) {
            return not_ready(code);
        }
        if is(SenseKey::IllegalRequest) {
            return illegal(code);
        }
        failure(key, code)
    }
}

fn not_ready(code: u16) -> AnswerAction {
    if PASSING.contains(&code) {
        return AnswerAction::Later(MediumError::Gone);
    }
    AnswerAction::Failed(MediumError::Gone)
}

fn illegal(code: u16) -> AnswerAction {
    match code {
        asc::LOGICAL_UNIT_NOT_SUPPORTED => AnswerAction::Failed(MediumError::Gone),
        _ => AnswerAction::Refused,
    }
}

fn failure(key: u8, code: u16) -> AnswerAction {
    AnswerAction::Failed(match code {
        asc::SPACE_ALLOCATION_FAILED => MediumError::NoSpace,
        _ if key == SenseKey::DataProtect as u8 => return AnswerAction::Protected,
        asc::UNRECOVERED_READ_ERROR..0x1200 => MediumError::Read,
        asc::WRITE_ERROR..0x0d00 => MediumError::Write,
        _ => return AnswerAction::Unable,
    })
}

/// Whether it announces a reset, of whatever reach.
pub(super) fn is_reset(code: u16) -> bool {
    (asc::POWER_ON_OR_RESET..=asc::DEVICE_INTERNAL_RESET).contains(&code)
}

pub(super) fn what_changed(code: u16) -> AttentionKind {
    match code {
        asc::POWER_ON_OR_RESET | asc::POWER_ON | asc::DEVICE_INTERNAL_RESET => AttentionKind::Reset,
        asc::REGISTRATIONS_PREEMPTED => AttentionKind::Fenced,
        asc::BUS_RESET
        | asc::BUS_DEVICE_RESET
        | asc::MEDIUM_MAY_HAVE_CHANGED
        | asc::MODE_PARAMETERS_CHANGED
        | asc::CAPACITY_CHANGED
        | asc::MICROCODE_HAS_BEEN_CHANGED
        | asc::INQUIRY_DATA_CHANGED
        | asc::REPORTED_LUNS_DATA_CHANGED => AttentionKind::Unit,
        _ => AttentionKind::Other,
    }
}

/// LOGICAL UNIT NOT READY, which ends by itself: becoming ready, format, operation and self-test in
/// progress, asymmetric access state transition, space allocation in progress.
const PASSING: [u16; 6] = [0x0401, 0x0404, 0x0407, 0x0409, 0x040a, 0x0414];
