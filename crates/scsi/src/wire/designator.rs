//! SPC-5 §7.7.6.1: designation descriptors, by which a logical unit, a target port and a target
//! device are known.

use super::cdb::byte;

/// What a designator names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Association {
    /// The addressed logical unit.
    LogicalUnit = 0,
    /// The target port that received the command.
    TargetPort = 1,
    /// The SCSI target device.
    TargetDevice = 2,
}

/// DESIGNATOR TYPE with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Designator<'a> {
    /// T10 vendor identification, then what the vendor makes unique by it; ASCII.
    T10Vendor(&'a [u8]),
    /// A name in one of the NAA formats.
    Naa(&'a [u8]),
    /// RELATIVE TARGET PORT IDENTIFIER.
    RelativeTargetPort(u16),
    /// TARGET PORT GROUP.
    TargetPortGroup(u16),
    /// A SCSI name string: UTF-8, as `iqn.…` or `naa.…`.
    Name(&'a str),
}

impl Designator<'_> {
    /// The descriptor. `protocol` is the protocol identifier of the transport (SPC-5 §7.6.1),
    /// which is told where a port or a device is named. Values beyond 255 bytes are cut off.
    #[must_use]
    pub fn encode(&self, association: Association, protocol: u8) -> Vec<u8> {
        let (kind, code_set, mut value) = self.parts();
        value.truncate(255);
        let (protocol, piv) = match association {
            Association::LogicalUnit => (0, 0),
            _ => (protocol << 4, 0x80),
        };
        let len = value.len() as u8;
        let second = piv | (association as u8) << 4 | kind;
        let mut descriptor = vec![protocol | code_set, second, 0, len];
        descriptor.append(&mut value);
        descriptor
    }

    fn parts(&self) -> (u8, u8, Vec<u8>) {
        let number = |number: u16| [[0, 0], number.to_be_bytes()].concat();
        match *self {
            Self::T10Vendor(text) => (1, ASCII, text.to_vec()),
            Self::Naa(name) => (3, BINARY, name.to_vec()),
            Self::RelativeTargetPort(port) => (4, BINARY, number(port)),
            Self::TargetPortGroup(group) => (5, BINARY, number(group)),
            Self::Name(name) => (8, UTF8, terminated(name)),
        }
    }
}

/// A designator as Linux, multipath and lsscsi write it: `naa.…`, `eui.…`, `t10.…`, or the name
/// itself. `descriptor` is a designation descriptor without its third and fourth bytes (reserved,
/// and the length).
#[must_use]
pub fn text(descriptor: &[u8]) -> String {
    let value = descriptor.get(2..).unwrap_or_default();
    let hex = || -> String { value.iter().map(|byte| format!("{byte:02x}")).collect() };
    match byte(descriptor, 1) & 0x0f {
        1 => format!("t10.{}", printable(value)),
        2 => format!("eui.{}", hex()),
        3 => format!("naa.{}", hex()),
        8 => printable(value),
        kind => format!("type{kind}.{}", hex()),
    }
}

/// Without the padding. Other bytes than printable ASCII are escaped as `%0A`: units are told apart
/// by this text, so no two designators may have the same.
fn printable(value: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b'%' => "%25".to_owned(),
        0x20..=0x7e => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let end = value.iter().rposition(|byte| !matches!(byte, 0 | b' '));
    let value = &value[..end.map_or(0, |last| last + 1)];
    value.iter().map(shown).collect()
}

/// SPC-5 §7.7.6.11: zero-terminated, and padded to a multiple of four bytes.
fn terminated(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() + 1).next_multiple_of(4), 0);
    bytes
}

const BINARY: u8 = 1;
const ASCII: u8 = 2;
const UTF8: u8 = 3;
