//! LLDP (IEEE 802.1AB §8): an LLDPDU is a list of TLVs, each with a type of 7 bits, a length of 9
//! bits in bytes, and a value. Chassis ID, Port ID and Time To Live come first, in this order.
//!
//! What DCBX says is in TLVs of organizations: [`ieee`] (IEEE 802.1Q Annex D) and [`cee`] (the
//! Converged Enhanced Ethernet specification that came before it).

use std::fmt;

use super::ethernet::Mac;
use super::reader::{ByteReader, Truncated};

pub mod cee;
pub mod ieee;
pub mod tlv;

use tlv::{TlvWriter, Tlvs};

/// Why bytes are not an LLDPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LldpError {
    /// A TLV exceeds the frame.
    #[error("an LLDPDU whose first three TLVs are truncated")]
    Truncated,
    /// The first three TLVs are not Chassis ID, Port ID and Time To Live.
    #[error("an LLDPDU that does not begin with Chassis ID, Port ID and Time To Live")]
    Order,
    /// A Chassis ID or Port ID has no identifier, or more than 255 bytes, or the time less than 2.
    #[error("an LLDPDU whose Chassis ID, Port ID or Time To Live has a wrong length")]
    Length,
    /// One of these three came again.
    #[error("an LLDPDU with a second Chassis ID, Port ID or Time To Live")]
    Twice,
}

impl From<Truncated> for LldpError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// A Chassis ID or Port ID: a subtype, and bytes whose meaning it tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identifier<'a> {
    /// Of a Chassis ID: 4 is a MAC address. Of a Port ID: 3 is a MAC address, 5 the name of an
    /// interface, 7 locally assigned.
    pub subtype: u8,
    /// 1 to 255 bytes.
    pub id: &'a [u8],
}

impl<'a> Identifier<'a> {
    /// Subtype of a Chassis ID that is a MAC address.
    pub const CHASSIS_MAC: u8 = 4;
    /// Subtype of a Port ID that is a MAC address.
    pub const PORT_MAC: u8 = 3;
    /// Subtype of a Port ID that is the name of an interface.
    pub const PORT_INTERFACE: u8 = 5;

    fn parse(value: &'a [u8]) -> Result<Self, LldpError> {
        match value {
            [subtype, id @ ..] if (1..=IDENTIFIER_MAX).contains(&id.len()) => Ok(Self {
                subtype: *subtype,
                id,
            }),
            _ => Err(LldpError::Length),
        }
    }
}

/// Bytes that an identifier has at the most.
pub const IDENTIFIER_MAX: usize = 255;

/// As text if it is printable, as an address if it has 6 bytes, or else in hexadecimal digits.
impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_printable = self.id.iter().all(|byte| (b' '..=b'~').contains(byte));
        if let Ok(mac) = self.id.try_into()
            && (!is_printable || [Self::CHASSIS_MAC, Self::PORT_MAC].contains(&self.subtype))
        {
            return Mac(mac).fmt(f);
        }
        match std::str::from_utf8(self.id) {
            Ok(text) if is_printable => f.write_str(text),
            _ => self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl fmt::Debug for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.subtype)
    }
}

/// An LLDPDU as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lldpdu<'a> {
    /// Which system sent it.
    pub chassis: Identifier<'a>,
    /// By which of its ports.
    pub port: Identifier<'a>,
    /// For how many seconds it is valid; 0 if what was told before is no longer.
    pub ttl_s: u16,
    optional: &'a [u8],
}

impl<'a> Lldpdu<'a> {
    /// The LLDPDU at the front of the payload of an Ethernet frame.
    ///
    /// # Errors
    /// It breaks a rule of IEEE 802.1AB §9.2.7.7.1 for which the whole has to be discarded.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LldpError> {
        let mut reader = ByteReader(bytes);
        let chassis = Identifier::parse(mandatory(&mut reader, tlv::CHASSIS_ID)?)?;
        let port = Identifier::parse(mandatory(&mut reader, tlv::PORT_ID)?)?;
        let mut ttl = ByteReader(mandatory(&mut reader, tlv::TIME_TO_LIVE)?);
        let ttl_s = ttl.u16().map_err(|Truncated| LldpError::Length)?;
        let message = Self {
            chassis,
            port,
            ttl_s,
            optional: reader.0,
        };
        let is_first = |kind| [tlv::CHASSIS_ID, tlv::PORT_ID, tlv::TIME_TO_LIVE].contains(&kind);
        if message.tlvs().any(|tlv| is_first(tlv.kind)) {
            return Err(LldpError::Twice);
        }
        Ok(message)
    }

    /// The TLVs after the first three, up to the end: the End TLV, one that exceeds the frame, or
    /// the end of the frame.
    #[must_use]
    pub const fn tlvs(&self) -> Tlvs<'a> {
        Tlvs::new(self.optional)
    }

    /// The text of the first TLV of this type: [`tlv::PORT_DESCRIPTION`], [`tlv::SYSTEM_NAME`] or
    /// [`tlv::SYSTEM_DESCRIPTION`].
    #[must_use]
    pub fn text(&self, kind: u8) -> Option<&'a [u8]> {
        let found = self.tlvs().find(|tlv| tlv.kind == kind)?;
        Some(found.value)
    }
}

fn mandatory<'a>(reader: &mut ByteReader<'a>, kind: u8) -> Result<&'a [u8], LldpError> {
    let tlv = tlv::read(reader)?;
    if tlv.kind == kind {
        Ok(tlv.value)
    } else {
        Err(LldpError::Order)
    }
}

/// Begins an LLDPDU with the three TLVs that are mandatory. Identifiers are cut to 255 bytes.
#[must_use]
pub fn begin(chassis: Identifier<'_>, port: Identifier<'_>, ttl_s: u16) -> TlvWriter {
    let mut writer = TlvWriter::default();
    for (kind, identifier) in [(tlv::CHASSIS_ID, chassis), (tlv::PORT_ID, port)] {
        let end = identifier.id.len().min(IDENTIFIER_MAX);
        writer.put(kind, &[&[identifier.subtype], &identifier.id[..end]]);
    }
    writer.put(tlv::TIME_TO_LIVE, &[&ttl_s.to_be_bytes()]);
    writer
}
