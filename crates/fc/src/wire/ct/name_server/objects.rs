//! What the name server keeps of a port.

use std::fmt;

use crate::wire::ct::{CtError, id, name, put_id, put_name};
use crate::wire::frame::FrameType;
use crate::wire::names::{FcId, Wwn};
use crate::wire::reader::ByteReader;

/// The type of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PortType(pub u8);

impl PortType {
    /// N_Port.
    pub const N_PORT: Self = Self(0x01);
    /// Any N_Port or NL_Port, in a request.
    pub const NX_PORT: Self = Self(0x7f);
}

/// FC-4 types, a bit each: 8 words, type 0 is the lowest bit of the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fc4Types(pub [u8; 32]);

impl Fc4Types {
    /// Just these.
    #[must_use]
    pub fn of(kinds: &[FrameType]) -> Self {
        let mut types = Self::default();
        for kind in kinds {
            let (byte, bit) = Self::place(*kind);
            types.0[byte] |= bit;
        }
        types
    }

    /// Whether a type is among them.
    #[must_use]
    pub const fn has(&self, kind: FrameType) -> bool {
        let (byte, bit) = Self::place(kind);
        self.0[byte] & bit != 0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 32]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = FrameType> {
        (0..=u8::MAX).map(FrameType).filter(|kind| self.has(*kind))
    }

    /// A word is big-endian, so its lowest 8 types are in its last byte.
    const fn place(kind: FrameType) -> (usize, u8) {
        (((kind.0 / 8) ^ 3) as usize, 1 << (kind.0 % 8))
    }
}

impl fmt::Debug for Fc4Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Features of each FC-4 type, four bits each: 32 words, those of type 0 are the lowest bits of the
/// first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FeatureBits(pub [u8; 128]);

impl Default for FeatureBits {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl FeatureBits {
    /// FCP: the port is a target.
    pub const FCP_TARGET: u8 = 1;
    /// FCP: the port is an initiator.
    pub const FCP_INITIATOR: u8 = 2;

    /// Those of a type.
    #[must_use]
    pub const fn of(&self, kind: FrameType) -> u8 {
        let (byte, shift) = Self::place(kind);
        self.0[byte] >> shift & 0x0f
    }

    /// Sets those of a type.
    pub const fn set(&mut self, kind: FrameType, features: u8) {
        let (byte, shift) = Self::place(kind);
        self.0[byte] = self.0[byte] & !(0x0f << shift) | (features & 0x0f) << shift;
    }

    /// A word is big-endian, so its first two types are in its last byte.
    const fn place(kind: FrameType) -> (usize, u32) {
        (((kind.0 / 2) ^ 3) as usize, (kind.0 % 2) as u32 * 4)
    }
}

impl fmt::Debug for FeatureBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = (0..=u8::MAX).map(FrameType);
        let set = kinds.map(|kind| (kind, self.of(kind)));
        f.debug_map()
            .entries(set.filter(|(_, bits)| *bits != 0))
            .finish()
    }
}

/// A symbolic name: up to 255 bytes, by custom ASCII.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct SymbolicName(Vec<u8>);

impl SymbolicName {
    /// The first 255 bytes of `text`.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        Self(text[..text.len().min(NAME_MAX)].to_vec())
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A length, and as many bytes.
    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, CtError> {
        let len = reader.u8()?;
        let bytes = reader.take(len.into()).map_err(|_| CtError::Length)?;
        Ok(Self(bytes.to_vec()))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        out.extend_from_slice(&self.0);
    }

    /// A length, and a field of 255 bytes.
    pub(super) fn parse_field(reader: &mut ByteReader<'_>) -> Result<Self, CtError> {
        let mut field = ByteReader(reader.take(FIELD_LEN)?);
        Self::parse(&mut field)
    }

    pub(super) fn put_field(&self, out: &mut Vec<u8>) {
        let end = out.len() + FIELD_LEN;
        self.put(out);
        out.resize(end, 0);
    }
}

/// Bytes that are not printable ASCII are escaped.
impl fmt::Display for SymbolicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.escape_ascii(), f)
    }
}

impl fmt::Debug for SymbolicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// All that GA_NXT tells of a port. Internet addresses and process associators, which FCP has no
/// use for, are ignored and written as 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortEntry {
    /// Its type.
    pub kind: PortType,
    /// Its N_Port_ID.
    pub fc_id: FcId,
    /// Its port name.
    pub wwpn: Wwn,
    /// Its symbolic port name.
    pub symbolic_port: SymbolicName,
    /// Its node name.
    pub wwnn: Wwn,
    /// The symbolic name of its node.
    pub symbolic_node: SymbolicName,
    /// Classes of service, a bit each.
    pub classes: u32,
    /// FC-4 types that it supports.
    pub types: Fc4Types,
    /// The name of the F_Port that it is logged in at.
    pub f_port_name: Wwn,
    /// Hard address; 0 for none.
    pub hard_address: FcId,
}

impl PortEntry {
    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, CtError> {
        Ok(Self {
            kind: PortType(reader.u8()?),
            fc_id: FcId(reader.u24()?),
            wwpn: name(reader)?,
            symbolic_port: SymbolicName::parse_field(reader)?,
            wwnn: name(reader)?,
            symbolic_node: SymbolicName::parse_field(reader)?,
            classes: {
                reader.skip(PROCESS_ASSOCIATOR_LEN + IP_LEN)?;
                reader.u32()?
            },
            types: Fc4Types(reader.array()?),
            f_port_name: {
                reader.skip(IP_LEN)?;
                name(reader)?
            },
            hard_address: id(reader)?,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_id(out, self.kind.0, self.fc_id);
        put_name(out, self.wwpn);
        self.symbolic_port.put_field(out);
        put_name(out, self.wwnn);
        self.symbolic_node.put_field(out);
        out.extend_from_slice(&[0; PROCESS_ASSOCIATOR_LEN + IP_LEN]);
        out.extend_from_slice(&self.classes.to_be_bytes());
        out.extend_from_slice(&self.types.0);
        out.extend_from_slice(&[0; IP_LEN]);
        put_name(out, self.f_port_name);
        put_id(out, 0, self.hard_address);
    }
}

/// The most bytes of a symbolic name.
const NAME_MAX: usize = 255;

/// Bytes of a symbolic name with its length where it has a field of its own.
const FIELD_LEN: usize = 1 + NAME_MAX;

/// Bytes of an initial process associator.
const PROCESS_ASSOCIATOR_LEN: usize = 8;

/// Bytes of an Internet address.
const IP_LEN: usize = 16;
