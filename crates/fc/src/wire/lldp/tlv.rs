//! TLVs of LLDP (IEEE 802.1AB §8.4), and those of organizations (§8.6).

use super::super::reader::{ByteReader, Truncated};

/// Type of the TLV that ends an LLDPDU.
pub const END: u8 = 0;
/// Type of a Chassis ID.
pub const CHASSIS_ID: u8 = 1;
/// Type of a Port ID.
pub const PORT_ID: u8 = 2;
/// Type of a Time To Live.
pub const TIME_TO_LIVE: u8 = 3;
/// Type of a port description, which is text.
pub const PORT_DESCRIPTION: u8 = 4;
/// Type of a system name, which is text.
pub const SYSTEM_NAME: u8 = 5;
/// Type of a system description, which is text.
pub const SYSTEM_DESCRIPTION: u8 = 6;
/// Type of a TLV of an organization, see [`Organizational`].
pub const ORGANIZATIONAL: u8 = 127;

/// Bytes that a value has at the most.
pub const VALUE_MAX: usize = 511;

/// Type and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// 0 to 127.
    pub kind: u8,
    /// What the type says, up to [`VALUE_MAX`] bytes.
    pub value: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// Of an organization, if it is one and has room for its identifier.
    #[must_use]
    pub fn organizational(&self) -> Option<Organizational<'a>> {
        let (head, info) = self.value.split_first_chunk()?;
        let [a, b, c, subtype] = *head;
        (self.kind == ORGANIZATIONAL).then_some(Organizational {
            oui: [a, b, c],
            subtype,
            info,
        })
    }
}

/// A TLV of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Organizational<'a> {
    /// Which one, by its OUI.
    pub oui: [u8; 3],
    /// What it is there.
    pub subtype: u8,
    /// The rest.
    pub info: &'a [u8],
}

/// The next TLV.
///
/// # Errors
/// It exceeds what is left.
pub(super) fn read<'a>(reader: &mut ByteReader<'a>) -> Result<Tlv<'a>, Truncated> {
    let head = reader.u16()?;
    let value = reader.take(usize::from(head & 0x1ff))?;
    Ok(Tlv {
        kind: (head >> 9) as u8,
        value,
    })
}

/// TLVs in a row.
#[derive(Clone, Debug)]
pub struct Tlvs<'a>(ByteReader<'a>);

impl<'a> Tlvs<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(ByteReader(bytes))
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Tlv<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = read(&mut self.0).ok().filter(|tlv| tlv.kind != END);
        if next.is_none() {
            self.0.0 = &[];
        }
        next
    }
}

/// TLVs that are written one after the other.
#[derive(Clone, Debug, Default)]
pub struct TlvWriter {
    bytes: Vec<u8>,
}

impl TlvWriter {
    /// Appends a TLV whose value are these parts. What exceeds [`VALUE_MAX`] is cut off.
    pub fn put(&mut self, kind: u8, parts: &[&[u8]]) {
        let begin = self.bytes.len();
        self.bytes.extend([0; 2]);
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.truncate(begin + 2 + VALUE_MAX);
        let len = self.bytes.len() - begin - 2;
        let head = u16::from(kind) << 9 | len as u16;
        self.bytes[begin..begin + 2].copy_from_slice(&head.to_be_bytes());
    }

    /// Appends a TLV of an organization.
    pub fn put_organizational(&mut self, oui: [u8; 3], subtype: u8, parts: &[&[u8]]) {
        let head = [oui[0], oui[1], oui[2], subtype];
        let parts: Vec<&[u8]> = [&head[..]]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        self.put(ORGANIZATIONAL, &parts);
    }

    /// What was written, without an end.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The LLDPDU, with the TLV that ends it.
    #[must_use]
    pub fn end(mut self) -> Vec<u8> {
        self.put(END, &[]);
        self.bytes
    }
}
