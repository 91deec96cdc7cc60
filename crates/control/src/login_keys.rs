//! The login keys that a target may have of its own (RFC 7143 §13), as a table: what a document,
//! the shell and the files of other targets call each, and which values this program can offer.

use std::ops::RangeInclusive;

use address::Size;
use iscsi::target::{NodeLogin, TargetLimits};

use crate::tree::{DigestUse, LoginRow};

/// A key.
pub(crate) struct TargetKey {
    /// As the RFC writes it.
    pub(crate) name: &'static str,
    /// As a document writes it.
    pub(crate) key: &'static str,
    value: KeyPlace,
}

/// Where the value of a key is, and what it may be. Numbers have their bounds, and a reason for
/// them.
enum KeyPlace {
    Digest(fn(&mut LoginRow) -> &mut Option<DigestUse>),
    Flag(fn(&mut LoginRow) -> &mut Option<bool>),
    Bytes(fn(&mut LoginRow) -> &mut Option<Size>, Bounds),
    Number(fn(&mut LoginRow) -> &mut Option<u16>, Bounds),
}

type Bounds = (RangeInclusive<u64>, &'static str);

/// The key that the RFC, another target or LIO calls so, however it is capitalised.
pub(crate) fn find(name: &str) -> Option<&'static TargetKey> {
    KEYS.iter().find(|row| row.name.eq_ignore_ascii_case(name))
}

/// Every key.
pub(crate) fn all() -> impl Iterator<Item = &'static TargetKey> {
    KEYS.iter()
}

/// What a target without a value of its own offers, as the RFC writes it.
pub(crate) fn default(name: &str) -> String {
    let ours = TargetLimits::default().preferences();
    match iscsi::keys::find(name).and_then(|row| ours.value(row.key)) {
        Some(iscsi::keys::NegotiatedValue::Choice(_)) => EITHER.to_owned(),
        Some(value) => value.to_string(),
        None if name == "MaxRecvDataSegmentLength" => ours.own_data_segment.to_string(),
        None => String::new(),
    }
}

impl TargetKey {
    /// The value of a row, as the RFC writes it; `None`: it has none of its own.
    pub(crate) fn get(&self, login: &LoginRow) -> Option<String> {
        let mut login = login.clone();
        match &self.value {
            KeyPlace::Digest(place) => place(&mut login).map(|digest| digest.name().to_owned()),
            KeyPlace::Flag(place) => {
                place(&mut login).map(|flag| if flag { "Yes" } else { "No" }.to_owned())
            }
            KeyPlace::Bytes(place, _) => place(&mut login).map(|size| size.0.to_string()),
            KeyPlace::Number(place, _) => place(&mut login).map(|number| number.to_string()),
        }
    }

    /// Sets the value that is written so. An empty one, and a choice that is left to the initiator,
    /// is none.
    ///
    /// # Errors
    ///
    /// Which values there are, and why no others.
    pub(crate) fn set(&self, login: &mut LoginRow, text: &str) -> Result<(), KeyMisfit> {
        match &self.value {
            KeyPlace::Digest(place) => *place(login) = digest(text).ok_or_else(digest_misfit)?,
            KeyPlace::Flag(place) => *place(login) = flag(text).ok_or_else(flag_misfit)?,
            KeyPlace::Bytes(place, bounds) => {
                *place(login) = number(text, bounds)?.map(Size);
            }
            KeyPlace::Number(place, bounds) => {
                let number = number(text, bounds)?;
                *place(login) = number.and_then(|number| u16::try_from(number).ok());
            }
        }
        Ok(())
    }

    /// Whether it has one value here, of which nothing follows.
    pub(crate) fn is_fixed(&self) -> bool {
        match &self.value {
            KeyPlace::Bytes(_, (range, _)) | KeyPlace::Number(_, (range, _)) => {
                range.start() == range.end()
            }
            KeyPlace::Digest(_) | KeyPlace::Flag(_) => false,
        }
    }

    /// Why the value of a row cannot be offered, if it cannot.
    pub(crate) fn misfit(&self, login: &LoginRow) -> Option<KeyMisfit> {
        self.set(&mut login.clone(), &self.get(login)?).err()
    }
}

/// Why a key cannot have a value.
pub(crate) struct KeyMisfit {
    /// The values that there are: `from 512 to 16777215`.
    pub(crate) values: String,
    /// Why no others.
    pub(crate) why: &'static str,
}

impl DigestUse {
    /// The list of values that an acceptor goes by.
    const fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "CRC32C",
            Self::None => "None",
        }
    }
}

/// Both values leave the choice to the initiator, whose order counts (RFC 7143 §6.2.1).
fn digest(text: &str) -> Option<Option<DigestUse>> {
    let words = text.split(',').map(str::trim);
    let (mut crc, mut none) = (false, false);
    for word in words.filter(|word| !word.is_empty()) {
        match word {
            _ if word.eq_ignore_ascii_case("CRC32C") => crc = true,
            _ if word.eq_ignore_ascii_case("None") => none = true,
            _ => return None,
        }
    }
    Some(match (crc, none) {
        (true, false) => Some(DigestUse::Crc32c),
        (false, true) => Some(DigestUse::None),
        _ => None,
    })
}

fn digest_misfit() -> KeyMisfit {
    KeyMisfit {
        values: format!("CRC32C, None, or {EITHER}"),
        why: "RFC 7143 §13.1 has no others",
    }
}

fn flag(text: &str) -> Option<Option<bool>> {
    match text {
        "" => Some(None),
        _ if text.eq_ignore_ascii_case("Yes") => Some(Some(true)),
        _ if text.eq_ignore_ascii_case("No") => Some(Some(false)),
        _ => None,
    }
}

fn flag_misfit() -> KeyMisfit {
    KeyMisfit {
        values: "Yes or No".to_owned(),
        why: "RFC 7143 §6.1 has no others",
    }
}

fn number(text: &str, (range, why): &Bounds) -> Result<Option<u64>, KeyMisfit> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<Size>().ok().map(|size| size.0);
    let number = number.filter(|number| range.contains(number));
    let (low, high) = (range.start(), range.end());
    number.map(Some).ok_or_else(|| KeyMisfit {
        values: if low == high {
            format!("always {low}")
        } else {
            format!("from {low} to {high}")
        },
        why,
    })
}

const EITHER: &str = "CRC32C,None";

const RFC_LENGTH: &str = "RFC 7143 §13.12 to §13.14 have a length from 512 bytes";
const HELD: &str = "a session holds 16M of data that comes unasked, for 16 commands";

const KEYS: &[TargetKey] = &[
    TargetKey {
        name: "HeaderDigest",
        key: "header-digest",
        value: KeyPlace::Digest(|login| &mut login.header_digest),
    },
    TargetKey {
        name: "DataDigest",
        key: "data-digest",
        value: KeyPlace::Digest(|login| &mut login.data_digest),
    },
    TargetKey {
        name: "InitialR2T",
        key: "initial-r2t",
        value: KeyPlace::Flag(|login| &mut login.initial_r2t),
    },
    TargetKey {
        name: "ImmediateData",
        key: "immediate-data",
        value: KeyPlace::Flag(|login| &mut login.immediate_data),
    },
    TargetKey {
        name: "MaxRecvDataSegmentLength",
        key: "max-recv-data-segment-length",
        value: KeyPlace::Bytes(
            |login| &mut login.max_recv_data_segment_length,
            (
                512..=NodeLogin::MOST_DATA_SEGMENT as u64,
                "a PDU with a digest is held as a whole, and RFC 7143 §13.12 has 512 at least",
            ),
        ),
    },
    TargetKey {
        name: "FirstBurstLength",
        key: "first-burst-length",
        value: KeyPlace::Bytes(
            |login| &mut login.first_burst_length,
            (512..=TargetLimits::DEFAULT.most_first_burst() as u64, HELD),
        ),
    },
    TargetKey {
        name: "MaxBurstLength",
        key: "max-burst-length",
        value: KeyPlace::Bytes(
            |login| &mut login.max_burst_length,
            (512..=0xff_ffff, RFC_LENGTH),
        ),
    },
    TargetKey {
        name: "MaxOutstandingR2T",
        key: "max-outstanding-r2t",
        value: KeyPlace::Number(
            |login| &mut login.max_outstanding_r2t,
            (
                1..=NodeLogin::MOST_OUTSTANDING_R2T as u64,
                "each R2T of a command that is aborted is remembered until its data has come",
            ),
        ),
    },
    TargetKey {
        name: "DataPDUInOrder",
        key: "data-pdu-in-order",
        value: KeyPlace::Flag(|login| &mut login.data_pdu_in_order),
    },
    TargetKey {
        name: "DataSequenceInOrder",
        key: "data-sequence-in-order",
        value: KeyPlace::Flag(|login| &mut login.data_sequence_in_order),
    },
    TargetKey {
        name: "DefaultTime2Wait",
        key: "default-time2wait",
        value: KeyPlace::Number(
            |login| &mut login.default_time2wait,
            (0..=3600, "RFC 7143 §13.15 has these seconds"),
        ),
    },
    TargetKey {
        name: "DefaultTime2Retain",
        key: "default-time2retain",
        value: KeyPlace::Number(
            |login| &mut login.default_time2retain,
            (
                0..=0,
                "nothing of a lost session is kept: it comes back whole",
            ),
        ),
    },
    TargetKey {
        name: "MaxConnections",
        key: "max-connections",
        value: KeyPlace::Number(
            |login| &mut login.max_connections,
            (
                1..=1,
                "a session has one connection: let the host use several sessions",
            ),
        ),
    },
    TargetKey {
        name: "ErrorRecoveryLevel",
        key: "error-recovery-level",
        value: KeyPlace::Number(
            |login| &mut login.error_recovery_level,
            (
                0..=0,
                "a session that breaks a rule ends, and comes back whole",
            ),
        ),
    },
    TargetKey {
        name: "MaxSessions",
        key: "max-sessions",
        value: KeyPlace::Number(
            |login| &mut login.max_sessions,
            (
                1..=65_535,
                "a session's handle has 16 bits: leave it out for no limit",
            ),
        ),
    },
];

#[cfg(test)]
mod tests;
