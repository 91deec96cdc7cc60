//! SPC-5 §7.6.4: TransportIDs, which name initiator ports.
//!
//! Two TransportIDs of one port must be the same bytes, as a [`NexusIdentity`] is compared by
//! them. So what an initiator sends is read and written anew: iSCSI names in lower case, the ISID
//! as twelve lower-case digits, no padding beyond what is needed.
//!
//! [`NexusIdentity`]: crate::nexus::NexusIdentity

/// PROTOCOL IDENTIFIER of Fibre Channel.
pub const FCP: u8 = 0x0;

/// PROTOCOL IDENTIFIER of iSCSI.
pub const ISCSI: u8 = 0x5;

/// The longest iSCSI name, in bytes (RFC 7143 §4.2.7).
pub const ISCSI_NAME_MAX: usize = 223;

/// What is wrong with a TransportID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportIdError {
    /// The list ends within it.
    #[error("a TransportID is cut off")]
    Truncated,
    /// A byte of it is wrong.
    #[error("byte {0} of a TransportID is not valid")]
    Byte(u16),
}

use TransportIdError::{Byte, Truncated};

/// The TransportID of an iSCSI initiator port, by the initiator's name and ISID. The length is a
/// multiple of 4, at least 24.
#[must_use]
pub fn iscsi(name: &str, isid: [u8; 6]) -> Box<[u8]> {
    let mut text = lower_case(name).into_bytes();
    text.extend(b",i,0x");
    text.extend(
        isid.iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]),
    );
    let padded = (text.len() + 1).next_multiple_of(4).max(20);
    text.resize(padded, 0);
    let [high, low] = (padded as u16).to_be_bytes();
    let mut bytes = vec![0x40 | ISCSI, 0, high, low];
    bytes.extend(text);
    bytes.into()
}

/// The TransportID of a Fibre Channel initiator port, by its port name: 24 bytes.
#[must_use]
pub fn fcp(port_name: [u8; 8]) -> Box<[u8]> {
    let mut bytes = [0; 24];
    bytes[0] = FCP;
    bytes[8..16].copy_from_slice(&port_name);
    Box::new(bytes)
}

/// Takes the first TransportID of a list: its one form, and what follows it. It must be of
/// `protocol`.
///
/// # Errors
/// The byte, counted from the start of the TransportID, that is wrong. An iSCSI TransportID
/// without an ISID (FORMAT 00b) is among them: it names a device with ports that are not known
/// until they log in, so no registration can be made for it.
pub fn take(list: &[u8], protocol: u8) -> Result<(Box<[u8]>, &[u8]), TransportIdError> {
    let [first, ..] = *list else {
        return Err(Truncated);
    };
    if first & 0x0f != protocol {
        return Err(Byte(0));
    }
    match (protocol, first >> 6) {
        (FCP, 0) => take_fcp(list),
        (ISCSI, 1) => take_iscsi(list),
        _ => Err(Byte(0)),
    }
}

/// An iSCSI name in lower case, in which names are compared. Beyond ASCII it goes character by
/// character: `str::to_lowercase` has another sigma at the end of a word.
#[must_use]
pub fn lower_case(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars().flat_map(char::to_lowercase).collect()
}

/// An initiator port, as its TransportID names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatorPortName<'a> {
    /// Its port name.
    Fcp([u8; 8]),
    /// The initiator's name and ISID.
    Iscsi(&'a str, [u8; 6]),
}

/// The port of a whole TransportID in its one form; `None` where it names none.
#[must_use]
pub fn port_name(id: &[u8]) -> Option<InitiatorPortName<'_>> {
    match *id.first()? {
        FCP => {
            let name = id.get(8..16)?.first_chunk()?;
            Some(InitiatorPortName::Fcp(*name))
        }
        first if first == 0x40 | ISCSI => {
            let (name, isid) = port(id.get(4..)?)?;
            Some(InitiatorPortName::Iscsi(name, isid))
        }
        _ => None,
    }
}

fn take_fcp(list: &[u8]) -> Result<(Box<[u8]>, &[u8]), TransportIdError> {
    let (id, rest) = list.split_first_chunk::<24>().ok_or(Truncated)?;
    let (_, after) = id.split_at(8);
    let name = after.first_chunk().ok_or(Truncated)?;
    Ok((fcp(*name), rest))
}

fn take_iscsi(list: &[u8]) -> Result<(Box<[u8]>, &[u8]), TransportIdError> {
    let (head, rest) = list.split_first_chunk::<4>().ok_or(Truncated)?;
    let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if len < 20 || len % 4 != 0 {
        return Err(Byte(2));
    }
    let (text, rest) = rest.split_at_checked(len).ok_or(Truncated)?;
    let (name, isid) = port(text).ok_or(Byte(4))?;
    Ok((iscsi(name, isid), rest))
}

/// Reads `name,i,0xISID`, ended and padded by zeros.
fn port(text: &[u8]) -> Option<(&str, [u8; 6])> {
    let end = text.iter().position(|byte| *byte == 0)?;
    let (text, padding) = text.split_at(end);
    let (name, isid) = std::str::from_utf8(text).ok()?.split_once(",i,0x")?;
    // Some characters are longer in lower case, in which the name is kept.
    let fits = !name.is_empty() && lower_case(name).len() <= ISCSI_NAME_MAX;
    let printable = fits && !name.contains(char::is_control);
    if !printable || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    Some((name, hexadecimal(isid)?))
}

fn hexadecimal(digits: &str) -> Option<[u8; 6]> {
    let all_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if digits.len() != 12 || !all_digits {
        return None;
    }
    let [_, _, bytes @ ..] = u64::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(bytes)
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}

#[cfg(test)]
mod tests;
