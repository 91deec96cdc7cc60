//! PRLI, PRLO and TPRLO: pages of one form, one for each FC-4 type; and what those of FCP say.

use super::{Code, ElsError};
use crate::wire::frame::FrameType;
use crate::wire::reader::{ByteReader, Truncated};

/// A service parameter page or logout parameter page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePage {
    /// The FC-4 type.
    pub kind: FrameType,
    /// Type extension.
    pub extension: u8,
    /// Validity of the associators, [`Self::IMAGE_PAIR`] and, in an answer, the response code.
    pub flags: u8,
    /// Originator process associator.
    pub originator: u32,
    /// Responder process associator.
    pub responder: u32,
    /// PRLI: service parameters. TPRLO: the third party's address.
    pub parameters: u32,
}

impl ServicePage {
    /// PRLI: an image pair is to be, or is, established.
    pub const IMAGE_PAIR: u8 = 0x20;
    /// TPRLO: the third party's address is valid.
    pub const THIRD_PARTY: u8 = 0x20;
    /// TPRLO: every image pair of the port is to be removed.
    pub const GLOBAL: u8 = 0x10;

    /// Response: request executed.
    pub const EXECUTED: u8 = 1;
    /// Response: no resources.
    pub const NO_RESOURCES: u8 = 2;
    /// Response: initialization not complete.
    pub const NOT_READY: u8 = 3;
    /// Response: image pair precluded by configuration.
    pub const PRECLUDED: u8 = 5;
    /// Response: executed conditionally, some parameters were not taken over.
    pub const CONDITIONAL: u8 = 6;
    /// Response: the page is invalid, such as of an unknown type.
    pub const INVALID: u8 = 8;

    /// One of FCP that asks for an image pair.
    #[must_use]
    pub const fn fcp(parameters: FcpParameters) -> Self {
        Self {
            kind: FrameType::FCP,
            extension: 0,
            flags: Self::IMAGE_PAIR,
            originator: 0,
            responder: 0,
            parameters: parameters.0,
        }
    }

    /// The same with another response code.
    #[must_use]
    pub const fn answered(self, response: u8) -> Self {
        let flags = self.flags & 0xf0 | response & RESPONSE;
        Self { flags, ..self }
    }

    /// The answer to a page of PRLO or TPRLO: nothing but a response code in its flags.
    #[must_use]
    pub const fn logged_out(self, response: u8) -> Self {
        Self {
            flags: response,
            ..self
        }
    }

    /// Whether an image pair is to be, or is, established.
    #[must_use]
    pub const fn image_pair(&self) -> bool {
        self.flags & Self::IMAGE_PAIR != 0
    }

    /// Whether it is about FCP; type 0 is about every FC-4 type.
    #[must_use]
    pub fn concerns_fcp(&self) -> bool {
        matches!(self.kind, FrameType::FCP | FrameType::BLS)
    }

    /// The response code of an answer.
    #[must_use]
    pub const fn response(&self) -> u8 {
        self.flags & RESPONSE
    }

    fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        let [kind, extension, flags, _] = reader.array()?;
        Ok(Self {
            kind: FrameType(kind),
            extension,
            flags,
            originator: reader.u32()?,
            responder: reader.u32()?,
            parameters: reader.u32()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind.0, self.extension, self.flags, 0]);
        let words = [self.originator, self.responder, self.parameters];
        out.extend(words.into_iter().flat_map(u32::to_be_bytes));
    }
}

/// FCP-4 clause 6.3: the service parameters of FCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FcpParameters(pub u32);

impl FcpParameters {
    /// REC is supported.
    pub const REC: Self = Self(0x0400);
    /// Task retry identification is asked for.
    pub const TASK_RETRY_ID: Self = Self(0x0200);
    /// Sequence-level recovery is supported.
    pub const RETRY: Self = Self(0x0100);
    /// FCP_CONF may be asked for.
    pub const CONFIRM: Self = Self(0x0080);
    /// The port is an initiator.
    pub const INITIATOR: Self = Self(0x0020);
    /// The port is a target.
    pub const TARGET: Self = Self(0x0010);
    /// No FCP_XFER_RDY before data to the initiator: the only form there is.
    pub const READ_XFER_RDY_DISABLED: Self = Self(0x0002);
}

bit_set!(FcpParameters);

/// The pages of a payload that begins with a code, the length of a page and its own length. PRLO's
/// length of a page is obsolete but 10h; TPRLO, and answers to both, have it too.
pub(super) fn pages(
    code: Code,
    (page_len, payload_len): (usize, usize),
    payload: &[u8],
) -> Result<Vec<ServicePage>, ElsError> {
    let list = payload.get(HEAD_LEN..payload_len);
    let list = list.ok_or(ElsError::Length(code))?;
    if page_len != PAGE_LEN || list.is_empty() || !list.len().is_multiple_of(PAGE_LEN) {
        return Err(ElsError::Length(code));
    }
    let pages = list
        .chunks(PAGE_LEN)
        .map(|page| ServicePage::parse(&mut ByteReader(page)));
    Ok(pages.collect::<Result<_, _>>()?)
}

/// Appends pages, and tells their lengths in the first word.
pub(super) fn put(pages: &[ServicePage], out: &mut Vec<u8>) {
    let len = (HEAD_LEN + pages.len() * PAGE_LEN) as u16;
    let [high, low] = len.to_be_bytes();
    out[1..HEAD_LEN].copy_from_slice(&[PAGE_LEN as u8, high, low]);
    pages.iter().for_each(|page| page.put(out));
}

/// Bytes before the first page.
const HEAD_LEN: usize = 4;

/// Bytes of a page.
const PAGE_LEN: usize = 16;

/// The response code within the flags.
const RESPONSE: u8 = 0x0f;
