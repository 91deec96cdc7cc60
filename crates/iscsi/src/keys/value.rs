//! Values of negotiated keys, and where they are kept.

use std::fmt;

use super::LoginKey;
use crate::parameters::{Operational, TaskReporting};
use crate::text;

/// The value of a negotiated key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiatedValue {
    /// Yes or No.
    Flag(bool),
    /// A number.
    Number(u32),
    /// One of a list.
    Choice(&'static str),
}

impl fmt::Display for NegotiatedValue {
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
    pub fn value(&self, key: LoginKey) -> Option<NegotiatedValue> {
        Some(match key {
            LoginKey::HeaderDigest => NegotiatedValue::Choice(digest(self.header_digest)),
            LoginKey::DataDigest => NegotiatedValue::Choice(digest(self.data_digest)),
            LoginKey::MaxConnections => NegotiatedValue::Number(self.max_connections.into()),
            LoginKey::InitialR2T => NegotiatedValue::Flag(self.initial_r2t),
            LoginKey::ImmediateData => NegotiatedValue::Flag(self.immediate_data),
            LoginKey::MaxBurstLength => NegotiatedValue::Number(self.max_burst),
            LoginKey::FirstBurstLength => NegotiatedValue::Number(self.first_burst),
            LoginKey::DefaultTime2Wait => NegotiatedValue::Number(self.time2wait.into()),
            LoginKey::DefaultTime2Retain => NegotiatedValue::Number(self.time2retain.into()),
            LoginKey::MaxOutstandingR2T => NegotiatedValue::Number(self.outstanding_r2t.into()),
            LoginKey::DataPduInOrder => NegotiatedValue::Flag(self.pdu_in_order),
            LoginKey::DataSequenceInOrder => NegotiatedValue::Flag(self.sequence_in_order),
            LoginKey::ErrorRecoveryLevel => {
                NegotiatedValue::Number(self.error_recovery_level.into())
            }
            LoginKey::TaskReporting => NegotiatedValue::Choice(self.task_reporting.name()),
            LoginKey::ProtocolLevel => NegotiatedValue::Number(self.protocol_level.into()),
            _ => return None,
        })
    }

    /// Notes the value of a negotiated key. Values of another kind than the key's are not noted;
    /// [`super::KeyRow::select`] gives none.
    pub fn store(&mut self, key: LoginKey, value: NegotiatedValue) {
        let half = |number| u16::try_from(number).unwrap_or(u16::MAX);
        let byte = |number| u8::try_from(number).unwrap_or(u8::MAX);
        match (key, value) {
            (LoginKey::HeaderDigest, NegotiatedValue::Choice(name)) => {
                self.header_digest = name == CRC32C;
            }
            (LoginKey::DataDigest, NegotiatedValue::Choice(name)) => {
                self.data_digest = name == CRC32C;
            }
            (LoginKey::MaxConnections, NegotiatedValue::Number(n)) => {
                self.max_connections = half(n);
            }
            (LoginKey::InitialR2T, NegotiatedValue::Flag(flag)) => self.initial_r2t = flag,
            (LoginKey::ImmediateData, NegotiatedValue::Flag(flag)) => self.immediate_data = flag,
            (LoginKey::MaxBurstLength, NegotiatedValue::Number(n)) => self.max_burst = n,
            (LoginKey::FirstBurstLength, NegotiatedValue::Number(n)) => self.first_burst = n,
            (LoginKey::DefaultTime2Wait, NegotiatedValue::Number(n)) => self.time2wait = half(n),
            (LoginKey::DefaultTime2Retain, NegotiatedValue::Number(n)) => {
                self.time2retain = half(n);
            }
            (LoginKey::MaxOutstandingR2T, NegotiatedValue::Number(n)) => {
                self.outstanding_r2t = half(n);
            }
            (LoginKey::DataPduInOrder, NegotiatedValue::Flag(flag)) => self.pdu_in_order = flag,
            (LoginKey::DataSequenceInOrder, NegotiatedValue::Flag(flag)) => {
                self.sequence_in_order = flag;
            }
            (LoginKey::ErrorRecoveryLevel, NegotiatedValue::Number(n)) => {
                self.error_recovery_level = byte(n);
            }
            (LoginKey::TaskReporting, NegotiatedValue::Choice(name)) => {
                self.task_reporting = TaskReporting::of(name);
            }
            (LoginKey::ProtocolLevel, NegotiatedValue::Number(n)) => self.protocol_level = byte(n),
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
