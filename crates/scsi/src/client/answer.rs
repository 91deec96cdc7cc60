//! What the answer to a command means for whoever asked.

use crate::medium::MediumError;
use crate::wire::asc;
use crate::wire::cdb::{be16, octet};
use crate::wire::sense::Key;
use crate::wire::status::Status;

/// How a command ended, as the transport tells it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// SAM-5 §5.3.1.
    pub status: u8,
    /// Sense data, in either format; empty where there is none.
    pub sense: &'a [u8],
    /// Octets of Data-In that came.
    pub received: usize,
}

/// What is to be done about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    /// Something was only told by the way: repeat the command.
    Again,
    /// The same, and this has changed.
    Attention(u16),
    /// Repeat it after a while.
    Later,
    /// The unit does not know the command, or a field of it.
    Refused,
    Failed(MediumError),
}

/// What a unit attention announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Capacity,
    /// Power was off, or everything was reset, and a volatile cache with it.
    Reset,
    Other,
}

impl Answer<'_> {
    pub(super) fn verdict(&self) -> Verdict {
        match self.status {
            good if good == Status::Good as u8 || good == Status::ConditionMet as u8 => {
                Verdict::Good
            }
            check if check == Status::CheckCondition as u8 => self.check(),
            busy if busy == Status::Busy as u8 || busy == Status::TaskSetFull as u8 => {
                Verdict::Later
            }
            aborted if aborted == Status::TaskAborted as u8 => Verdict::Again,
            conflict if conflict == Status::ReservationConflict as u8 => {
                Verdict::Failed(MediumError::ReadOnly)
            }
            _ => Verdict::Failed(MediumError::Gone),
        }
    }

    /// The code of a unit attention.
    pub(super) fn attention(&self) -> Option<u16> {
        match self.verdict() {
            Verdict::Attention(code) => Some(code),
            _ => None,
        }
    }

    /// Sense key, and additional sense code with qualifier.
    fn sense(&self) -> (u8, u16) {
        match octet(self.sense, 0) & 0x7f {
            0x70 | 0x71 => (octet(self.sense, 2) & 0x0f, be16(self.sense, 12)),
            0x72 | 0x73 => (octet(self.sense, 1) & 0x0f, be16(self.sense, 2)),
            _ => (Key::NoSense as u8, asc::NONE),
        }
    }

    fn check(&self) -> Verdict {
        let (key, code) = self.sense();
        let is = |other: Key| key == other as u8;
        if is(Key::NoSense) && self.sense.is_empty() {
            return Verdict::Failed(MediumError::Gone);
        }
        if is(Key::NoSense) || is(Key::RecoveredError) || is(Key::Completed) {
            return Verdict::Good;
        }
        if is(Key::UnitAttention) {
            return Verdict::Attention(code);
        }
        if is(Key::AbortedCommand) {
            return Verdict::Again;
        }
        if is(Key::NotReady) {
            return not_ready(code);
        }
        if is(Key::IllegalRequest) {
            return illegal(code);
        }
        Verdict::Failed(failure(key, code))
    }
}

fn not_ready(code: u16) -> Verdict {
    match code {
        BECOMING_READY | SPACE_ALLOCATION_IN_PROGRESS => Verdict::Later,
        _ => Verdict::Failed(MediumError::Gone),
    }
}

fn illegal(code: u16) -> Verdict {
    match code {
        asc::LOGICAL_UNIT_NOT_SUPPORTED => Verdict::Failed(MediumError::Gone),
        _ => Verdict::Refused,
    }
}

fn failure(key: u8, code: u16) -> MediumError {
    match code {
        asc::SPACE_ALLOCATION_FAILED => MediumError::NoSpace,
        _ if key == Key::DataProtect as u8 => MediumError::ReadOnly,
        asc::UNRECOVERED_READ_ERROR..0x1200 => MediumError::Read,
        _ => MediumError::Write,
    }
}

pub(super) fn what_changed(code: u16) -> Change {
    match code {
        asc::CAPACITY_CHANGED => Change::Capacity,
        asc::POWER_ON_OR_RESET | asc::POWER_ON => Change::Reset,
        _ => Change::Other,
    }
}

/// LOGICAL UNIT IS IN PROCESS OF BECOMING READY.
const BECOMING_READY: u16 = 0x0401;
/// LOGICAL UNIT NOT READY, SPACE ALLOCATION IN PROGRESS.
const SPACE_ALLOCATION_IN_PROGRESS: u16 = 0x0414;
