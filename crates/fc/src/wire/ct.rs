//! FC-GS: the common transport (CT), by which a port asks the services of a fabric.
//!
//! A CT_IU is a header of 16 bytes and what its code says. It is one sequence: a request is
//! unsolicited control, R_CTL 02h, its answer solicited control, 03h; the TYPE of both is 20h.
//! [`name_server`] has the requests of the directory service, [`fdmi`] those of the fabric-device
//! management interface.

use std::fmt;

use super::names::{FcId, Wwn};
use super::reader::{ByteReader, Truncated};

pub mod fdmi;
pub mod name_server;

/// Bytes of the header of a CT_IU.
pub const HEADER_LEN: usize = 16;

/// The revision that FC-GS-2 and later define.
pub const REVISION: u8 = 1;

/// Why bytes are not a CT_IU, or not the payload that its code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CtError {
    /// It ends too early.
    #[error("a truncated CT_IU")]
    Truncated,
    /// A length or count inside reaches beyond its end, or is less than what it counts has.
    #[error("a CT_IU with inconsistent lengths")]
    Length,
}

impl From<Truncated> for CtError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Which service: GS_Type and GS_Subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CtService {
    /// GS_Type.
    pub kind: u8,
    /// GS_Subtype.
    pub subtype: u8,
}

impl CtService {
    /// The name server of the directory service.
    pub const NAME_SERVER: Self = Self::new(0xfc, 0x02);
    /// The fabric-device management interface of the management service.
    pub const FDMI: Self = Self::new(0xfa, 0x10);

    const fn new(kind: u8, subtype: u8) -> Self {
        Self { kind, subtype }
    }
}

/// Command or response code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CtCode(pub u16);

impl CtCode {
    /// Reject CT_IU.
    pub const REJECT: Self = Self(0x8001);
    /// Accept CT_IU.
    pub const ACCEPT: Self = Self(0x8002);
}

impl fmt::Debug for CtCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CtReject {
    /// One of [`reason`].
    pub reason: u8,
    /// One of [`explanation`] in the name server; FDMI has others of the same numbers.
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}

impl CtReject {
    /// Without anything vendor specific.
    #[must_use]
    pub const fn new(reason: u8, explanation: u8) -> Self {
        Self {
            reason,
            explanation,
            vendor: 0,
        }
    }
}

/// Reason codes of a reject.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod reason {
    pub const INVALID_COMMAND: u8 = 0x01;
    pub const INVALID_VERSION: u8 = 0x02;
    pub const LOGICAL_ERROR: u8 = 0x03;
    pub const INVALID_IU_SIZE: u8 = 0x04;
    pub const LOGICAL_BUSY: u8 = 0x05;
    pub const PROTOCOL_ERROR: u8 = 0x07;
    pub const UNABLE: u8 = 0x09;
    pub const NOT_SUPPORTED: u8 = 0x0b;
}

/// Reason code explanations of the name server.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod explanation {
    pub const NONE: u8 = 0x00;
    pub const PORT_ID_NOT_REGISTERED: u8 = 0x01;
    pub const PORT_NAME_NOT_REGISTERED: u8 = 0x02;
    pub const NODE_NAME_NOT_REGISTERED: u8 = 0x03;
    pub const CLASS_NOT_REGISTERED: u8 = 0x04;
    pub const FC4_TYPES_NOT_REGISTERED: u8 = 0x07;
    pub const PORT_TYPE_NOT_REGISTERED: u8 = 0x0a;
    pub const ACCESS_DENIED: u8 = 0x10;
    pub const UNACCEPTABLE_PORT_ID: u8 = 0x11;
    pub const DATABASE_EMPTY: u8 = 0x12;
    pub const NO_OBJECT_IN_SCOPE: u8 = 0x13;
}

/// The header of a CT_IU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtHeader {
    /// [`REVISION`]; any other is to be rejected.
    pub revision: u8,
    /// The N_Port_ID of who asked first, where a server passed the request on.
    pub in_id: FcId,
    /// Which service is asked, or answers.
    pub service: CtService,
    /// Options; 0 as long as one exchange is one request.
    pub options: u8,
    /// What is asked, or [`CtCode::ACCEPT`] or [`CtCode::REJECT`].
    pub code: CtCode,
    /// Of a request: the longest payload behind the header that its answer may have, in words of 4
    /// bytes; 0 for any. Of an answer: how many words did not fit.
    pub size: u16,
    /// Why, in a reject.
    pub why: CtReject,
}

impl CtHeader {
    /// Of a request.
    #[must_use]
    pub const fn request(service: CtService, code: CtCode) -> Self {
        Self {
            revision: REVISION,
            in_id: FcId::UNIDENTIFIED,
            service,
            options: 0,
            code,
            size: 0,
            why: CtReject::new(0, 0),
        }
    }

    /// Of the accept of this request, `residual` words of which did not fit.
    #[must_use]
    pub const fn accept(&self, residual: u16) -> Self {
        Self {
            revision: REVISION,
            in_id: self.in_id,
            size: residual,
            ..Self::request(self.service, CtCode::ACCEPT)
        }
    }

    /// Of the reject of this request.
    #[must_use]
    pub const fn reject(&self, why: CtReject) -> Self {
        Self {
            in_id: self.in_id,
            why,
            ..Self::request(self.service, CtCode::REJECT)
        }
    }

    /// Reads a header, and gives what follows it.
    ///
    /// # Errors
    /// There are fewer than 16 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), CtError> {
        let mut reader = ByteReader(bytes);
        let header = Self {
            revision: reader.u8()?,
            in_id: FcId(reader.u24()?),
            service: CtService::new(reader.u8()?, reader.u8()?),
            options: reader.u8()?,
            code: {
                reader.skip(1)?;
                CtCode(reader.u16()?)
            },
            size: reader.u16()?,
            why: {
                reader.skip(1)?;
                let [reason, explanation, vendor] = reader.array()?;
                CtReject {
                    vendor,
                    ..CtReject::new(reason, explanation)
                }
            },
        };
        Ok((header, reader.0))
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let [in_a, in_b, in_c] = self.in_id.bytes();
        let ([code_a, code_b], [size_a, size_b]) =
            (self.code.0.to_be_bytes(), self.size.to_be_bytes());
        let CtService { kind, subtype } = self.service;
        let CtReject {
            reason,
            explanation,
            vendor,
        } = self.why;
        let words = [
            [self.revision, in_a, in_b, in_c],
            [kind, subtype, self.options, 0],
            [code_a, code_b, size_a, size_b],
            [0, reason, explanation, vendor],
        ];
        let mut bytes = [0; HEADER_LEN];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }

    /// What the answer to a request says: its payload, or why it was rejected.
    ///
    /// # Errors
    /// The reasons of a reject; of anything but an accept, none.
    pub const fn outcome<'a>(&self, payload: &'a [u8]) -> Result<&'a [u8], CtReject> {
        match self.code {
            CtCode::ACCEPT => Ok(payload),
            _ => Err(self.why),
        }
    }
}

/// A whole CT_IU of a request.
fn request(service: CtService, code: CtCode, payload: &[u8]) -> Vec<u8> {
    [&CtHeader::request(service, code).encode(), payload].concat()
}

/// A byte that is reserved or a flag, and an address.
fn put_id(out: &mut Vec<u8>, first: u8, id: FcId) {
    out.push(first);
    out.extend_from_slice(&id.bytes());
}

fn put_name(out: &mut Vec<u8>, name: Wwn) {
    out.extend_from_slice(&name.0.to_be_bytes());
}

fn id(reader: &mut ByteReader<'_>) -> Result<FcId, Truncated> {
    reader.skip(1)?;
    reader.u24().map(FcId)
}

fn name(reader: &mut ByteReader<'_>) -> Result<Wwn, Truncated> {
    reader.u64().map(Wwn)
}
