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

/// Where [`Operational`] keeps the value of a key.
enum KeyField<'a> {
    Flag(&'a mut bool),
    Digest(&'a mut bool),
    Byte(&'a mut u8),
    Half(&'a mut u16),
    Word(&'a mut u32),
    Reporting(&'a mut TaskReporting),
}

impl Operational {
    /// Which field has the value of a negotiated key; `None` for the others.
    fn field(&mut self, key: LoginKey) -> Option<KeyField<'_>> {
        Some(match key {
            LoginKey::HeaderDigest => KeyField::Digest(&mut self.header_digest),
            LoginKey::DataDigest => KeyField::Digest(&mut self.data_digest),
            LoginKey::MaxConnections => KeyField::Half(&mut self.max_connections),
            LoginKey::InitialR2T => KeyField::Flag(&mut self.initial_r2t),
            LoginKey::ImmediateData => KeyField::Flag(&mut self.immediate_data),
            LoginKey::MaxBurstLength => KeyField::Word(&mut self.max_burst),
            LoginKey::FirstBurstLength => KeyField::Word(&mut self.first_burst),
            LoginKey::DefaultTime2Wait => KeyField::Half(&mut self.time2wait),
            LoginKey::DefaultTime2Retain => KeyField::Half(&mut self.time2retain),
            LoginKey::MaxOutstandingR2T => KeyField::Half(&mut self.outstanding_r2t),
            LoginKey::DataPduInOrder => KeyField::Flag(&mut self.pdu_in_order),
            LoginKey::DataSequenceInOrder => KeyField::Flag(&mut self.sequence_in_order),
            LoginKey::ErrorRecoveryLevel => KeyField::Byte(&mut self.error_recovery_level),
            LoginKey::TaskReporting => KeyField::Reporting(&mut self.task_reporting),
            LoginKey::ProtocolLevel => KeyField::Byte(&mut self.protocol_level),
            LoginKey::RdmaExtensions => KeyField::Flag(&mut self.iser.rdma_extensions),
            LoginKey::TargetRecvDataSegmentLength => {
                KeyField::Word(&mut self.iser.target_data_segment)
            }
            LoginKey::InitiatorRecvDataSegmentLength => {
                KeyField::Word(&mut self.iser.initiator_data_segment)
            }
            _ => return None,
        })
    }

    /// What is chosen or agreed for a negotiated key; `None` for the others.
    #[must_use]
    pub fn value(mut self, key: LoginKey) -> Option<NegotiatedValue> {
        Some(match self.field(key)? {
            KeyField::Flag(flag) => NegotiatedValue::Flag(*flag),
            KeyField::Digest(crc) => NegotiatedValue::Choice(if *crc { CRC32C } else { "None" }),
            KeyField::Byte(number) => NegotiatedValue::Number((*number).into()),
            KeyField::Half(number) => NegotiatedValue::Number((*number).into()),
            KeyField::Word(number) => NegotiatedValue::Number(*number),
            KeyField::Reporting(reporting) => NegotiatedValue::Choice(reporting.name()),
        })
    }

    /// Notes the value of a negotiated key. Values of another kind than the key's are not noted;
    /// [`super::KeyRow::select`] gives none.
    pub fn store(&mut self, key: LoginKey, value: NegotiatedValue) {
        use NegotiatedValue::{Choice, Flag, Number};
        match (self.field(key), value) {
            (Some(KeyField::Flag(flag)), Flag(value)) => *flag = value,
            (Some(KeyField::Digest(crc)), Choice(name)) => *crc = name == CRC32C,
            (Some(KeyField::Byte(byte)), Number(n)) => *byte = n.try_into().unwrap_or(u8::MAX),
            (Some(KeyField::Half(half)), Number(n)) => *half = n.try_into().unwrap_or(u16::MAX),
            (Some(KeyField::Word(word)), Number(n)) => *word = n,
            (Some(KeyField::Reporting(reporting)), Choice(name)) => {
                *reporting = TaskReporting::of(name);
            }
            _ => {}
        }
    }

    /// Notes what the other side declared: [`super::KeyRow::declared`] gives the value.
    pub fn note(&mut self, key: LoginKey, value: NegotiatedValue) {
        use NegotiatedValue::{Flag, Number};
        match (key, value) {
            (LoginKey::MaxRecvDataSegmentLength, Number(n)) => self.peer_data_segment = n,
            (LoginKey::MaxOutstandingUnexpectedPdus, Number(n)) => {
                self.iser.unexpected_pdus = Some(n);
            }
            (LoginKey::MaxAhsLength, Number(n)) => self.iser.ahs_length = Some(n),
            (LoginKey::TaggedBufferForSolicitedDataOnly, Flag(flag)) => {
                self.iser.solicited_only = Some(flag);
            }
            (LoginKey::IserHelloRequired, Flag(flag)) => self.iser.hello_required = flag,
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

pub(super) const CRC32C: &str = "CRC32C";
