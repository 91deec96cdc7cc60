//! iSCSI names (RFC 7143 §4.2.7) and what SCSI makes of them: TransportIDs and designators.

use std::collections::BTreeSet;

use scsi::nexus::{TargetDevice, TargetPort};
use scsi::unit::UnitId;
use scsi::wire::lun::Lun;
use scsi::wire::transport_id::{ISCSI_NAME_MAX, lower_case};

use crate::target::{InitiatorPort, PortalGroup};

#[cfg(test)]
mod tests;

/// The tag of the portal group of a node that is reached at every portal.
pub const PORTAL_GROUP: u16 = 1;

/// Why a string is not an iSCSI name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Over [`ISCSI_NAME_MAX`] bytes.
    #[error("an iSCSI name has at most 223 bytes")]
    TooLong,
    /// Neither `iqn.`, `eui.` nor `naa.`.
    #[error("an iSCSI name begins with iqn., eui. or naa.")]
    Type,
    /// `iqn.` without a `yyyy-mm.` and a naming authority.
    #[error("iqn. is followed by YYYY-MM, a dot and a reversed domain name")]
    Authority,
    /// `eui.` or `naa.` with another number of digits.
    #[error("eui. is followed by 16 hexadecimal digits, naa. by 16 or 32")]
    Digits,
    /// A character that no name may hold.
    #[error("an iSCSI name has no spaces, and no punctuation other than '-', '.' and ':'")]
    Character,
}

/// Checks a name and brings it to the form in which names are compared byte by byte: upper case
/// becomes lower case, as the stringprep profile of RFC 3722 does.
///
/// Two things are handled leniently. Letters outside ASCII are not brought to normalization form
/// C, which §4.2.7.2 asks of whoever makes the name; and `_`, which RFC 3722 leaves out, is let in
/// because host names that hold it end up in initiator names.
///
/// # Errors
/// What is wrong with the name.
pub fn normalise(name: &str) -> Result<String, NameError> {
    if name.len() > ISCSI_NAME_MAX {
        return Err(NameError::TooLong);
    }
    let name = lower_case(name);
    let (kind, rest) = name.split_at_checked(4).ok_or(NameError::Type)?;
    match kind {
        "iqn." => qualified(rest)?,
        "eui." => digits(rest, &[16])?,
        "naa." => digits(rest, &[16, 32])?,
        _ => return Err(NameError::Type),
    }
    if name.len() > ISCSI_NAME_MAX {
        return Err(NameError::TooLong);
    }
    Ok(name)
}

/// `yyyy-mm.` and at least one more character; what follows is the naming authority's affair.
fn qualified(rest: &str) -> Result<(), NameError> {
    if !rest.chars().all(allowed) {
        return Err(NameError::Character);
    }
    let (date, authority) = rest.split_once('.').ok_or(NameError::Authority)?;
    let (year, month) = date.split_once('-').ok_or(NameError::Authority)?;
    let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let month_number = month.parse::<u8>().unwrap_or(0);
    let dated = year.len() == 4 && numeric(year) && month.len() == 2 && numeric(month);
    if !dated || !(1..=12).contains(&month_number) || authority.starts_with([':', '.', '-']) {
        return Err(NameError::Authority);
    }
    if authority.is_empty() {
        Err(NameError::Authority)
    } else {
        Ok(())
    }
}

fn allowed(character: char) -> bool {
    match character {
        '-' | '.' | ':' | '_' => true,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        _ => !character.is_whitespace() && !character.is_control() && !unwritable(character),
    }
}

/// What RFC 3722 prohibits outside ASCII: marks of direction and other invisible characters,
/// private use and non-characters, and the ideographic full stop.
fn unwritable(character: char) -> bool {
    matches!(u32::from(character),
        0xad | 0x34f | 0x6dd | 0x70f | 0x180b..=0x180e | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0x2ff0..=0x2ffb | 0x3002 | 0xe000..=0xf8ff | 0xfdd0..=0xfdef
        | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xffff | 0x1d173..=0x1d17a | 0xe0000..=0xe007f
        | 0xf0000..)
}

fn digits(rest: &str, lengths: &[usize]) -> Result<(), NameError> {
    let fits = lengths.contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits { Ok(()) } else { Err(NameError::Digits) }
}

/// The TransportID of an iSCSI initiator port (SPC-5 §7.6.4.6, format code 01b), in the one form
/// by which the device server knows it from reservations: a multiple of 4 bytes.
#[must_use]
pub fn transport_id(port: &InitiatorPort) -> Vec<u8> {
    scsi::wire::transport_id::iscsi(&port.name, port.isid).into_vec()
}

/// The SCSI name of the target port that is a portal group of `node` (RFC 7143 §4.4.2).
#[must_use]
pub fn target_port_name(node: &str, portal_group: u16) -> String {
    format!("{node},t,0x{portal_group:04x}")
}

/// The SCSI target device that a node is, with a port for each of its portal groups, as a nexus of
/// the given iSCSIProtocolLevel sees it: RFC 7144 §4.2 has the version descriptor tell the level.
/// `luns` must be sorted.
#[must_use]
pub fn target_device(
    node: &str,
    groups: &[PortalGroup],
    luns: Vec<(Lun, UnitId)>,
    protocol_level: u8,
) -> TargetDevice {
    let port = |group: &PortalGroup| TargetPort {
        relative_id: group.port,
        designators: name_string(&target_port_name(node, group.tag), TARGET_PORT),
    };
    TargetDevice {
        designators: name_string(node, TARGET_DEVICE),
        ports: groups.iter().map(port).collect(),
        luns,
        read_only: BTreeSet::new(),
        protocol: PROTOCOL,
        versions: vec![0x0960 + u16::from(protocol_level)],
    }
}

/// A designation descriptor that holds a SCSI name string (SPC-5 §7.7.6.11).
fn name_string(name: &str, association: u8) -> Vec<u8> {
    let name = padded(name, 0);
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    let mut descriptor = vec![
        PROTOCOL << 4 | UTF8,
        PIV | association << 4 | SCSI_NAME,
        0,
        length,
    ];
    descriptor.extend_from_slice(&name);
    descriptor
}

/// With its null and as many more as make it a multiple of 4 bytes and at least `shortest`.
fn padded(name: &str, shortest: usize) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(4).max(shortest), 0);
    bytes
}

/// PROTOCOL IDENTIFIER of iSCSI (SPC-5 §7.6.1).
const PROTOCOL: u8 = 5;
/// CODE SET: UTF-8.
const UTF8: u8 = 3;
/// PROTOCOL IDENTIFIER VALID.
const PIV: u8 = 0x80;
/// ASSOCIATION: the target port that received the command.
const TARGET_PORT: u8 = 1;
/// ASSOCIATION: the SCSI target device.
const TARGET_DEVICE: u8 = 2;
/// DESIGNATOR TYPE: SCSI name string.
const SCSI_NAME: u8 = 8;
