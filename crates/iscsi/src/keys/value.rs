//! Values of negotiated keys, and where they are kept.

use std::fmt;

use super::Key;
use crate::parameters::{Operational, TaskReporting};
use crate::text;

/// The value of a negotiated key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or No.
    Flag(bool),
    /// A number.
    Number(u32),
    /// One of a list.
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(text::yes_no(*flag)),
            Self::Number(number) => number.fmt(f),
            Self::Choice(choice) => f.write_str(choice),
        }
    }
}

impl Operational {
    /// What is chosen or agreed for a negotiated key; `None` for the others.
    #[must_use]
    pub fn value(&self, key: Key) -> Option<Value> {
        Some(match key {
            Key::HeaderDigest => Value::Choice(digest(self.header_digest)),
            Key::DataDigest => Value::Choice(digest(self.data_digest)),
            Key::MaxConnections => Value::Number(self.max_connections.into()),
            Key::InitialR2T => Value::Flag(self.initial_r2t),
            Key::ImmediateData => Value::Flag(self.immediate_data),
            Key::MaxBurstLength => Value::Number(self.max_burst),
            Key::FirstBurstLength => Value::Number(self.first_burst),
            Key::DefaultTime2Wait => Value::Number(self.time2wait.into()),
            Key::DefaultTime2Retain => Value::Number(self.time2retain.into()),
            Key::MaxOutstandingR2T => Value::Number(self.outstanding_r2t.into()),
            Key::DataPduInOrder => Value::Flag(self.pdu_in_order),
            Key::DataSequenceInOrder => Value::Flag(self.sequence_in_order),
            Key::ErrorRecoveryLevel => Value::Number(self.error_recovery_level.into()),
            Key::TaskReporting => Value::Choice(self.task_reporting.name()),
            Key::ProtocolLevel => Value::Number(self.protocol_level.into()),
            _ => return None,
        })
    }

    /// Notes the value of a negotiated key. Values of another kind than the key's are not noted;
    /// [`super::Row::select`] gives none.
    pub fn store(&mut self, key: Key, value: Value) {
        let half = |number| u16::try_from(number).unwrap_or(u16::MAX);
        let octet = |number| u8::try_from(number).unwrap_or(u8::MAX);
        match (key, value) {
            (Key::HeaderDigest, Value::Choice(name)) => self.header_digest = name == CRC32C,
            (Key::DataDigest, Value::Choice(name)) => self.data_digest = name == CRC32C,
            (Key::MaxConnections, Value::Number(n)) => self.max_connections = half(n),
            (Key::InitialR2T, Value::Flag(flag)) => self.initial_r2t = flag,
            (Key::ImmediateData, Value::Flag(flag)) => self.immediate_data = flag,
            (Key::MaxBurstLength, Value::Number(n)) => self.max_burst = n,
            (Key::FirstBurstLength, Value::Number(n)) => self.first_burst = n,
            (Key::DefaultTime2Wait, Value::Number(n)) => self.time2wait = half(n),
            (Key::DefaultTime2Retain, Value::Number(n)) => self.time2retain = half(n),
            (Key::MaxOutstandingR2T, Value::Number(n)) => self.outstanding_r2t = half(n),
            (Key::DataPduInOrder, Value::Flag(flag)) => self.pdu_in_order = flag,
            (Key::DataSequenceInOrder, Value::Flag(flag)) => self.sequence_in_order = flag,
            (Key::ErrorRecoveryLevel, Value::Number(n)) => self.error_recovery_level = octet(n),
            (Key::TaskReporting, Value::Choice(name)) => {
                self.task_reporting = TaskReporting::of(name);
            }
            (Key::ProtocolLevel, Value::Number(n)) => self.protocol_level = octet(n),
            _ => {}
        }
    }
}

impl TaskReporting {
    /// The value of the key TaskReporting, RFC 7143 §13.23.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc3720 => "RFC3720",
            Self::ResponseFence => "ResponseFence",
            Self::FastAbort => "FastAbort",
        }
    }

    fn of(name: &str) -> Self {
        [Self::ResponseFence, Self::FastAbort]
            .into_iter()
            .find(|known| known.name() == name)
            .unwrap_or(Self::Rfc3720)
    }
}

const fn digest(crc: bool) -> &'static str {
    if crc { CRC32C } else { "None" }
}

pub(super) const CRC32C: &str = "CRC32C";
