//! FC-GS: the name server. What ports register of themselves, and ask about others.
//!
//! An accept is read by the code that it answers. Lists mark their last entry by bit 7 of its first
//! byte. Bytes behind the end of a payload are ignored: symbolic names come with and without the
//! zeros that fill their field.

use super::{CtCode, CtError, CtHeader, CtService, id, name, put_id, put_name};
use crate::wire::frame::FrameType;
use crate::wire::names::{FcId, Wwn};
use crate::wire::reader::ByteReader;

mod accept;
mod objects;

pub use accept::NameServerAccept;
pub use objects::{Fc4Types, FeatureBits, PortEntry, PortType, SymbolicName};

/// Codes of requests.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod code {
    use super::CtCode;

    pub const GA_NXT: CtCode = CtCode(0x0100);
    pub const GI_A: CtCode = CtCode(0x0101);
    pub const GPN_ID: CtCode = CtCode(0x0112);
    pub const GNN_ID: CtCode = CtCode(0x0113);
    pub const GCS_ID: CtCode = CtCode(0x0114);
    pub const GFT_ID: CtCode = CtCode(0x0117);
    pub const GSPN_ID: CtCode = CtCode(0x0118);
    pub const GPT_ID: CtCode = CtCode(0x011a);
    pub const GFPN_ID: CtCode = CtCode(0x011c);
    pub const GFF_ID: CtCode = CtCode(0x011f);
    pub const GID_PN: CtCode = CtCode(0x0121);
    pub const GID_NN: CtCode = CtCode(0x0131);
    pub const GSNN_NN: CtCode = CtCode(0x0139);
    pub const GID_FT: CtCode = CtCode(0x0171);
    pub const GPN_FT: CtCode = CtCode(0x0172);
    pub const GNN_FT: CtCode = CtCode(0x0173);
    pub const GID_PT: CtCode = CtCode(0x01a1);
    pub const GID_FF: CtCode = CtCode(0x01f1);
    pub const RPN_ID: CtCode = CtCode(0x0212);
    pub const RNN_ID: CtCode = CtCode(0x0213);
    pub const RCS_ID: CtCode = CtCode(0x0214);
    pub const RFT_ID: CtCode = CtCode(0x0217);
    pub const RSPN_ID: CtCode = CtCode(0x0218);
    pub const RPT_ID: CtCode = CtCode(0x021a);
    pub const RFF_ID: CtCode = CtCode(0x021f);
    pub const RSNN_NN: CtCode = CtCode(0x0239);
    pub const DA_ID: CtCode = CtCode(0x0300);
}

/// Among which ports is looked: those of a domain or an area; 0 for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AddressScope {
    /// Domain_ID, the first byte of an N_Port_ID.
    pub domain: u8,
    /// Area_ID, the second byte; looked at only where a domain is named.
    pub area: u8,
}

impl AddressScope {
    /// Whether an address is in it.
    #[must_use]
    pub const fn has(&self, id: FcId) -> bool {
        let [domain, area, _] = id.bytes();
        let same_area = self.area == 0 || self.area == area;
        self.domain == 0 || self.domain == domain && same_area
    }
}

/// A request to the name server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has the name of its code")]
pub enum NameServerRequest {
    /// The port after this one.
    GaNxt(FcId),
    /// Domains, or the areas of this domain.
    GiA(u8),
    GpnId(FcId),
    GnnId(FcId),
    GcsId(FcId),
    GftId(FcId),
    GspnId(FcId),
    GptId(FcId),
    GfpnId(FcId),
    GffId(FcId),
    GidPn(Wwn),
    GidNn(Wwn),
    GsnnNn(Wwn),
    GidFt(AddressScope, FrameType),
    GpnFt(AddressScope, FrameType),
    GnnFt(AddressScope, FrameType),
    GidPt(AddressScope, PortType),
    /// Ports of an FC-4 type that have at least one of these feature bits.
    GidFf(AddressScope, u8, FrameType),
    RpnId(FcId, Wwn),
    RnnId(FcId, Wwn),
    /// Classes of service, a bit each: class 3 is bit 3.
    RcsId(FcId, u32),
    RftId(FcId, Fc4Types),
    RspnId(FcId, SymbolicName),
    RptId(FcId, PortType),
    /// Feature bits of an FC-4 type.
    RffId(FcId, u8, FrameType),
    RsnnNn(Wwn, SymbolicName),
    DaId(FcId),
    /// Any other.
    Other(CtCode),
}

impl NameServerRequest {
    /// What is asked for.
    #[must_use]
    pub const fn code(&self) -> CtCode {
        match self {
            Self::GaNxt(_) => code::GA_NXT,
            Self::GiA(_) => code::GI_A,
            Self::GpnId(_) => code::GPN_ID,
            Self::GnnId(_) => code::GNN_ID,
            Self::GcsId(_) => code::GCS_ID,
            Self::GftId(_) => code::GFT_ID,
            Self::GspnId(_) => code::GSPN_ID,
            Self::GptId(_) => code::GPT_ID,
            Self::GfpnId(_) => code::GFPN_ID,
            Self::GffId(_) => code::GFF_ID,
            Self::GidPn(_) => code::GID_PN,
            Self::GidNn(_) => code::GID_NN,
            Self::GsnnNn(_) => code::GSNN_NN,
            Self::GidFt(..) => code::GID_FT,
            Self::GpnFt(..) => code::GPN_FT,
            Self::GnnFt(..) => code::GNN_FT,
            Self::GidPt(..) => code::GID_PT,
            Self::GidFf(..) => code::GID_FF,
            Self::RpnId(..) => code::RPN_ID,
            Self::RnnId(..) => code::RNN_ID,
            Self::RcsId(..) => code::RCS_ID,
            Self::RftId(..) => code::RFT_ID,
            Self::RspnId(..) => code::RSPN_ID,
            Self::RptId(..) => code::RPT_ID,
            Self::RffId(..) => code::RFF_ID,
            Self::RsnnNn(..) => code::RSNN_NN,
            Self::DaId(_) => code::DA_ID,
            Self::Other(code) => *code,
        }
    }

    /// Reads what follows the header of a request of this code.
    ///
    /// # Errors
    /// It is shorter than its kind is.
    pub fn parse(code: CtCode, payload: &[u8]) -> Result<Self, CtError> {
        let reader = &mut ByteReader(payload);
        Ok(match code {
            code::GA_NXT => Self::GaNxt(id(reader)?),
            code::GI_A => Self::GiA(id(reader)?.bytes()[0]),
            code::GPN_ID => Self::GpnId(id(reader)?),
            code::GNN_ID => Self::GnnId(id(reader)?),
            code::GCS_ID => Self::GcsId(id(reader)?),
            code::GFT_ID => Self::GftId(id(reader)?),
            code::GSPN_ID => Self::GspnId(id(reader)?),
            code::GPT_ID => Self::GptId(id(reader)?),
            code::GFPN_ID => Self::GfpnId(id(reader)?),
            code::GFF_ID => Self::GffId(id(reader)?),
            code::GID_PN => Self::GidPn(name(reader)?),
            code::GID_NN => Self::GidNn(name(reader)?),
            code::GSNN_NN => Self::GsnnNn(name(reader)?),
            code::GID_FT | code::GPN_FT | code::GNN_FT | code::GID_PT | code::GID_FF => {
                return Self::parse_search(code, reader);
            }
            code::RSNN_NN => Self::RsnnNn(name(reader)?, SymbolicName::parse(reader)?),
            code::DA_ID => Self::DaId(id(reader)?),
            _ => return Self::parse_registration(code, reader),
        })
    }

    /// Requests that ask for all ports of a kind.
    fn parse_search(code: CtCode, reader: &mut ByteReader<'_>) -> Result<Self, CtError> {
        let [first, second, third, last] = reader.array()?;
        let scope = |domain, area| AddressScope { domain, area };
        Ok(match code {
            code::GID_PT => Self::GidPt(scope(second, third), PortType(first)),
            code::GID_FF => {
                let [_, _, features, kind] = reader.array()?;
                Self::GidFf(scope(second, third), features, FrameType(kind))
            }
            code::GID_FT => Self::GidFt(scope(second, third), FrameType(last)),
            code::GNN_FT => Self::GnnFt(scope(second, third), FrameType(last)),
            _ => Self::GpnFt(scope(second, third), FrameType(last)),
        })
    }

    /// Requests that register something for an address.
    fn parse_registration(code: CtCode, reader: &mut ByteReader<'_>) -> Result<Self, CtError> {
        Ok(match code {
            code::RPN_ID => Self::RpnId(id(reader)?, name(reader)?),
            code::RNN_ID => Self::RnnId(id(reader)?, name(reader)?),
            code::RCS_ID => Self::RcsId(id(reader)?, reader.u32()?),
            code::RFT_ID => Self::RftId(id(reader)?, Fc4Types(reader.array()?)),
            code::RSPN_ID => Self::RspnId(id(reader)?, SymbolicName::parse(reader)?),
            code::RPT_ID => Self::RptId(id(reader)?, PortType(reader.u8()?)),
            code::RFF_ID => {
                let (id, [_, _, features, kind]) = (id(reader)?, reader.array()?);
                Self::RffId(id, features, FrameType(kind))
            }
            other => Self::Other(other),
        })
    }

    /// Writes the whole CT_IU.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        super::request(CtService::NAME_SERVER, self.code(), &self.payload())
    }

    /// Writes what follows the header.
    fn payload(&self) -> Vec<u8> {
        let out = &mut Vec::new();
        match self {
            Self::GaNxt(id)
            | Self::GpnId(id)
            | Self::GnnId(id)
            | Self::GcsId(id)
            | Self::GftId(id)
            | Self::GspnId(id)
            | Self::GptId(id)
            | Self::GfpnId(id)
            | Self::GffId(id)
            | Self::DaId(id) => put_id(out, 0, *id),
            Self::GiA(domain) => out.extend_from_slice(&[0, *domain, 0, 0]),
            Self::GidPn(name) | Self::GidNn(name) | Self::GsnnNn(name) => put_name(out, *name),
            Self::GidFt(scope, kind) | Self::GpnFt(scope, kind) | Self::GnnFt(scope, kind) => {
                out.extend_from_slice(&[0, scope.domain, scope.area, kind.0]);
            }
            Self::GidPt(scope, kind) => {
                out.extend_from_slice(&[kind.0, scope.domain, scope.area, 0]);
            }
            Self::GidFf(scope, features, kind) => {
                let bytes = [0, scope.domain, scope.area, 0, 0, 0, *features, kind.0];
                out.extend_from_slice(&bytes);
            }
            _ => self.put_registration(out),
        }
        std::mem::take(out)
    }

    fn put_registration(&self, out: &mut Vec<u8>) {
        match self {
            Self::RpnId(id, name) | Self::RnnId(id, name) => {
                put_id(out, 0, *id);
                put_name(out, *name);
            }
            Self::RcsId(id, classes) => {
                put_id(out, 0, *id);
                out.extend_from_slice(&classes.to_be_bytes());
            }
            Self::RftId(id, types) => {
                put_id(out, 0, *id);
                out.extend_from_slice(&types.0);
            }
            Self::RspnId(id, name) => {
                put_id(out, 0, *id);
                name.put(out);
            }
            Self::RptId(id, kind) => {
                put_id(out, 0, *id);
                out.extend_from_slice(&[kind.0, 0, 0, 0]);
            }
            Self::RffId(id, features, kind) => {
                put_id(out, 0, *id);
                out.extend_from_slice(&[0, 0, *features, kind.0]);
            }
            Self::RsnnNn(node, name) => {
                put_name(out, *node);
                name.put(out);
            }
            _ => {}
        }
    }
}
