//! FC-GS: the fabric-device management interface. What HBAs are registered, with their ports and
//! attributes.
//!
//! Attributes are kept as they came: a type, and bytes that only who asks for them reads.

use super::{CtCode, CtError, CtHeader, CtService, name, put_name};
use crate::wire::names::Wwn;
use crate::wire::reader::ByteReader;

/// Codes of requests.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod code {
    use super::CtCode;

    pub const GRHL: CtCode = CtCode(0x0100);
    pub const GHAT: CtCode = CtCode(0x0101);
    pub const GRPL: CtCode = CtCode(0x0102);
    pub const GPAT: CtCode = CtCode(0x0110);
    pub const RHBA: CtCode = CtCode(0x0200);
    pub const RHAT: CtCode = CtCode(0x0201);
    pub const RPRT: CtCode = CtCode(0x0210);
    pub const RPA: CtCode = CtCode(0x0211);
    pub const DHBA: CtCode = CtCode(0x0300);
    pub const DHAT: CtCode = CtCode(0x0301);
    pub const DPRT: CtCode = CtCode(0x0310);
    pub const DPA: CtCode = CtCode(0x0311);
}

/// Reason code explanations of FDMI.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod explanation {
    pub const HBA_ALREADY_REGISTERED: u8 = 0x10;
    pub const HBA_ATTRIBUTE_NOT_REGISTERED: u8 = 0x11;
    pub const HBA_NOT_REGISTERED: u8 = 0x17;
    pub const PORT_NOT_REGISTERED: u8 = 0x18;
}

/// An HBA, port or other attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdmiAttribute {
    /// Its type; those of HBAs and those of ports are numbered apart.
    pub kind: u16,
    /// Its value, with the zeros that fill it up to a multiple of 4 bytes.
    pub value: Vec<u8>,
}

/// A request to FDMI. An HBA is named by its identifier, by custom the WWPN of its first port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has the name of its code")]
pub enum FdmiRequest {
    Grhl,
    Ghat(Wwn),
    Grpl(Wwn),
    Gpat(Wwn),
    /// An HBA with its ports and attributes.
    Rhba(Wwn, Vec<Wwn>, Vec<FdmiAttribute>),
    Rhat(Wwn, Vec<FdmiAttribute>),
    /// An HBA, a port of it, and attributes of the port.
    Rprt(Wwn, Wwn, Vec<FdmiAttribute>),
    Rpa(Wwn, Vec<FdmiAttribute>),
    Dhba(Wwn),
    /// Attributes of an HBA: those of these types, or all where none is named.
    Dhat(Wwn, Vec<FdmiAttribute>),
    Dprt(Wwn),
    /// Attributes of a port: those of these types, or all where none is named.
    Dpa(Wwn, Vec<FdmiAttribute>),
    /// Any other.
    Other(CtCode),
}

/// The payload of an accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdmiAccept {
    /// Of all that register or deregister: none.
    Empty,
    /// GRHL: HBAs; GRPL: ports.
    Names(Vec<Wwn>),
    /// GHAT: ports and attributes.
    Hba(Vec<Wwn>, Vec<FdmiAttribute>),
    /// GPAT.
    Attributes(Vec<FdmiAttribute>),
}

impl FdmiRequest {
    /// What is asked for.
    #[must_use]
    pub const fn code(&self) -> CtCode {
        match self {
            Self::Grhl => code::GRHL,
            Self::Ghat(_) => code::GHAT,
            Self::Grpl(_) => code::GRPL,
            Self::Gpat(_) => code::GPAT,
            Self::Rhba(..) => code::RHBA,
            Self::Rhat(..) => code::RHAT,
            Self::Rprt(..) => code::RPRT,
            Self::Rpa(..) => code::RPA,
            Self::Dhba(_) => code::DHBA,
            Self::Dhat(..) => code::DHAT,
            Self::Dprt(_) => code::DPRT,
            Self::Dpa(..) => code::DPA,
            Self::Other(code) => *code,
        }
    }

    /// Reads what follows the header of a request of this code.
    ///
    /// # Errors
    /// It is shorter than its kind is, or its lengths and counts do not agree.
    pub fn parse(code: CtCode, payload: &[u8]) -> Result<Self, CtError> {
        let reader = &mut ByteReader(payload);
        Ok(match code {
            code::GRHL => Self::Grhl,
            code::GHAT => Self::Ghat(name(reader)?),
            code::GRPL => Self::Grpl(name(reader)?),
            code::GPAT => Self::Gpat(name(reader)?),
            code::RHBA => Self::Rhba(name(reader)?, names(reader)?, attributes(reader)?),
            code::RHAT => Self::Rhat(name(reader)?, attributes(reader)?),
            code::RPRT => Self::Rprt(name(reader)?, name(reader)?, attributes(reader)?),
            code::RPA => Self::Rpa(name(reader)?, attributes(reader)?),
            code::DHBA => Self::Dhba(name(reader)?),
            code::DHAT => Self::Dhat(name(reader)?, some_attributes(reader)?),
            code::DPRT => Self::Dprt(name(reader)?),
            code::DPA => Self::Dpa(name(reader)?, some_attributes(reader)?),
            other => Self::Other(other),
        })
    }

    /// Writes the whole CT_IU.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let out = &mut bytes;
        match self {
            Self::Grhl | Self::Other(_) => {}
            Self::Ghat(name)
            | Self::Grpl(name)
            | Self::Gpat(name)
            | Self::Dhba(name)
            | Self::Dprt(name) => put_name(out, *name),
            Self::Rhba(hba, ports, attributes) => {
                put_name(out, *hba);
                put_names(out, ports);
                put_attributes(out, attributes);
            }
            Self::Rhat(name, attributes)
            | Self::Rpa(name, attributes)
            | Self::Dhat(name, attributes)
            | Self::Dpa(name, attributes) => {
                put_name(out, *name);
                put_attributes(out, attributes);
            }
            Self::Rprt(hba, port, attributes) => {
                put_name(out, *hba);
                put_name(out, *port);
                put_attributes(out, attributes);
            }
        }
        super::request(CtService::FDMI, self.code(), &bytes)
    }
}

impl FdmiAccept {
    /// Reads what follows the header of an accept that answers a request of code `to`.
    ///
    /// # Errors
    /// It is shorter than its kind is, or its lengths and counts do not agree.
    pub fn parse(to: CtCode, payload: &[u8]) -> Result<Self, CtError> {
        let reader = &mut ByteReader(payload);
        Ok(match to {
            code::GRHL | code::GRPL => Self::Names(names(reader)?),
            code::GHAT => Self::Hba(names(reader)?, attributes(reader)?),
            code::GPAT => Self::Attributes(attributes(reader)?),
            _ => Self::Empty,
        })
    }

    /// Writes the whole CT_IU that answers `request`; `None` if the request does not allow one of
    /// this length.
    #[must_use]
    pub fn encode(&self, request: &CtHeader) -> Option<Vec<u8>> {
        let mut bytes = request.accept(0).encode().to_vec();
        let out = &mut bytes;
        match self {
            Self::Empty => {}
            Self::Names(names) => put_names(out, names),
            Self::Hba(ports, attributes) => {
                put_names(out, ports);
                put_attributes(out, attributes);
            }
            Self::Attributes(attributes) => put_attributes(out, attributes),
        }
        let len = bytes.len() - super::HEADER_LEN;
        let fits = request.size == 0 || len <= usize::from(request.size) * 4;
        fits.then_some(bytes)
    }
}

/// A count, and as many names.
fn names(reader: &mut ByteReader<'_>) -> Result<Vec<Wwn>, CtError> {
    let count = reader.u32()? as usize;
    let len = count.checked_mul(8).ok_or(CtError::Length)?;
    let mut list = ByteReader(reader.take(len).map_err(|_| CtError::Length)?);
    (0..count).map(|_| Ok(name(&mut list)?)).collect()
}

fn put_names(out: &mut Vec<u8>, names: &[Wwn]) {
    out.extend_from_slice(&(names.len() as u32).to_be_bytes());
    for name in names {
        put_name(out, *name);
    }
}

/// A count, and as many attributes: type, length with this header, value.
fn attributes(reader: &mut ByteReader<'_>) -> Result<Vec<FdmiAttribute>, CtError> {
    let count = reader.u32()?;
    // Each has at least its header, so a count that lies is found before memory is taken for it.
    if count as usize > reader.0.len() / ATTRIBUTE_HEADER {
        return Err(CtError::Length);
    }
    (0..count).map(|_| attribute(reader)).collect()
}

fn attribute(reader: &mut ByteReader<'_>) -> Result<FdmiAttribute, CtError> {
    let (kind, len) = (reader.u16()?, usize::from(reader.u16()?));
    let len = len.checked_sub(ATTRIBUTE_HEADER).ok_or(CtError::Length)?;
    let value = reader.take(len).map_err(|_| CtError::Length)?.to_vec();
    Ok(FdmiAttribute { kind, value })
}

/// A list that may be left out.
fn some_attributes(reader: &mut ByteReader<'_>) -> Result<Vec<FdmiAttribute>, CtError> {
    match reader.0 {
        [] => Ok(Vec::new()),
        _ => attributes(reader),
    }
}

/// Values that no length can tell are cut.
fn put_attributes(out: &mut Vec<u8>, attributes: &[FdmiAttribute]) {
    out.extend_from_slice(&(attributes.len() as u32).to_be_bytes());
    for FdmiAttribute { kind, value } in attributes {
        let value = &value[..value.len().min(ATTRIBUTE_MAX)];
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&((value.len() + ATTRIBUTE_HEADER) as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// Bytes of type and length of an attribute.
const ATTRIBUTE_HEADER: usize = 4;

/// The most bytes of a value.
const ATTRIBUTE_MAX: usize = u16::MAX as usize - ATTRIBUTE_HEADER;
