//! The iSER header, the first 28 bytes of every message (RFC 7145 §9), and the iSCSI PDU behind it.
//!
//! | opcode | message | clause |
//! |---|---|---|
//! | 0001b | iSCSI control-type PDU | RFC 7145 §9.2 |
//! | 0010b | iSER Hello | RFC 7145 §9.3 |
//! | 0011b | iSER HelloReply | RFC 7145 §9.4 |
//!
//! All numbers are big-endian. Reserved fields are ignored when decoded and zero when encoded; so
//! are the STag and the Base Offset whose valid flag is not set.

use rdma::verbs::{self, Stag};
use scsi::violation::Violation;

use super::bhs::{BHS_LEN, Bhs};
use super::framer::padding;
use crate::parameters::MAX_AHS_LENGTH;

/// Bytes in an iSER header.
pub const ISER_HEADER_LEN: usize = 28;

/// The version of RFC 7145, as Hello and HelloReply tell it.
pub const ISER_VERSION: u8 = 10;

/// Whether a peer bears a Send with Invalidate, by its private data at the startup of a connection:
/// the iSER header for connections of InfiniBand (Annex A12), which Linux sends over iWARP too.
/// LIO does not invalidate where there is none, and initiators reckon with that.
#[must_use]
pub fn invalidates(private: &[u8]) -> bool {
    let header = private.first_chunk::<4>();
    header.is_some_and(|[flags, ..]| flags & NO_INVALIDATE == 0)
}

/// Private data of a target: it has no zero-based virtual addresses, and sends with invalidation
/// to who bears it.
#[must_use]
pub const fn private_data(can_invalidate: bool) -> [u8; 4] {
    let invalidation = if can_invalidate { 0 } else { NO_INVALIDATE };
    [NO_ZERO_BASE | invalidation, 0, 0, 0]
}

/// The longest message whose PDU has a data segment of at most `data_segment` bytes.
#[must_use]
pub const fn longest_message(data_segment: u32) -> u32 {
    let padded = data_segment.next_multiple_of(4);
    (ISER_HEADER_LEN + BHS_LEN) as u32 + MAX_AHS_LENGTH + padded
}

/// An iSER header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IserHeader {
    /// That of an iSCSI control-type PDU.
    Control(AdvertisedBuffers),
    /// iSER Hello.
    Hello(Hello),
    /// iSER HelloReply.
    HelloReply(HelloReply),
}

/// What an initiator lets the target reach for a task. A response advertises nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvertisedBuffers {
    /// Write STag and Write Base Offset, with WSV: where the target reads the data of a SCSI write.
    pub write: Option<verbs::Tag>,
    /// Read STag and Read Base Offset, with RSV: where the target writes the data of a SCSI read.
    pub read: Option<verbs::Tag>,
}

/// iSER Hello: the initiator tells what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// MaxVer, 4 bits.
    pub max_version: u8,
    /// MinVer, 4 bits.
    pub min_version: u8,
    /// iSER-IRD: how many RDMA Reads at once it answers.
    pub ird: u16,
}

/// iSER HelloReply: the target answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloReply {
    /// REJ: the target rejects the connection.
    pub reject: bool,
    /// MaxVer, 4 bits.
    pub max_version: u8,
    /// CurVer, 4 bits.
    pub current_version: u8,
    /// iSER-ORD: how many RDMA Reads at once it will ask for.
    pub ord: u16,
}

impl IserHeader {
    /// Splits a message into its iSER header and what follows.
    ///
    /// # Errors
    /// What is wrong with a header that is cut short, has an unassigned opcode, or is that of a
    /// Hello or HelloReply with more behind it (RFC 7145 §9.1, §9.3, §9.4).
    pub fn split(message: &[u8]) -> Result<(Self, &[u8]), Violation> {
        let (header, rest) = message.split_first_chunk().ok_or(SHORT_HEADER)?;
        let decoded = Self::decode(header)?;
        let is_alone = !matches!(decoded, Self::Control(_));
        if is_alone && !rest.is_empty() {
            return Err(LONG_HELLO);
        }
        Ok((decoded, rest))
    }

    fn decode(header: &[u8; ISER_HEADER_LEN]) -> Result<Self, Violation> {
        let [first, second, high, low, ..] = *header;
        let (left, right) = (second >> 4, second & 0xf);
        let depth = u16::from_be_bytes([high, low]);
        Ok(match first >> 4 {
            CONTROL => Self::Control(AdvertisedBuffers {
                write: (first & WSV != 0).then(|| tag(header, WRITE_STAG)),
                read: (first & RSV != 0).then(|| tag(header, READ_STAG)),
            }),
            HELLO => Self::Hello(Hello {
                max_version: left,
                min_version: right,
                ird: depth,
            }),
            HELLO_REPLY => Self::HelloReply(HelloReply {
                reject: first & REJ != 0,
                max_version: left,
                current_version: right,
                ord: depth,
            }),
            _ => return Err(UNKNOWN_OPCODE),
        })
    }

    /// The header as it travels.
    #[must_use]
    pub fn encode(&self) -> [u8; ISER_HEADER_LEN] {
        match self {
            Self::Control(buffers) => buffers.encode(),
            Self::Hello(hello) => {
                let versions = [hello.max_version, hello.min_version];
                greeting(HELLO << 4, versions, hello.ird)
            }
            Self::HelloReply(reply) => {
                let first = HELLO_REPLY << 4 | if reply.reject { REJ } else { 0 };
                let versions = [reply.max_version, reply.current_version];
                greeting(first, versions, reply.ord)
            }
        }
    }
}

impl AdvertisedBuffers {
    fn encode(&self) -> [u8; ISER_HEADER_LEN] {
        let mut header = [0; ISER_HEADER_LEN];
        header[0] = CONTROL << 4;
        if let Some(write) = self.write {
            header[0] |= WSV;
            put_tag(&mut header, WRITE_STAG, write);
        }
        if let Some(read) = self.read {
            header[0] |= RSV;
            put_tag(&mut header, READ_STAG, read);
        }
        header
    }
}

/// An iSCSI control-type PDU in a message, behind the iSER header (RFC 7145 §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlMessage<'a> {
    /// The Basic Header Segment.
    pub bhs: Bhs,
    /// Additional header segments.
    pub ahs: &'a [u8],
    /// The data segment, without padding.
    pub data: &'a [u8],
}

impl<'a> ControlMessage<'a> {
    /// Cuts what stands behind the iSER header.
    ///
    /// The message has the length of its PDU. The data may go without its padding: ib_iser sends
    /// immediate data as long as it is, and pads texts.
    ///
    /// # Errors
    /// The lengths within the PDU are not those of the message (RFC 7145 §10.1.3.3).
    pub fn split(rest: &'a [u8]) -> Result<Self, Violation> {
        let (header, rest) = rest.split_first_chunk::<BHS_LEN>().ok_or(SHORT_PDU)?;
        let bhs = Bhs(*header);
        let (ahs, rest) = rest.split_at_checked(bhs.ahs_len()).ok_or(WRONG_LENGTH)?;
        let length = bhs.data_len();
        let (data, rest) = rest.split_at_checked(length as usize).ok_or(WRONG_LENGTH)?;
        let is_whole = rest.is_empty() || rest.len() == usize::from(padding(length));
        let pdu = Self { bhs, ahs, data };
        is_whole.then_some(pdu).ok_or(WRONG_LENGTH)
    }
}

fn tag(header: &[u8; ISER_HEADER_LEN], at: usize) -> verbs::Tag {
    let mut stag = [0; 4];
    let mut offset = [0; 8];
    stag.copy_from_slice(&header[at..at + 4]);
    offset.copy_from_slice(&header[at + 4..at + 12]);
    verbs::Tag {
        stag: Stag(u32::from_be_bytes(stag)),
        offset: u64::from_be_bytes(offset),
    }
}

fn put_tag(header: &mut [u8; ISER_HEADER_LEN], at: usize, tag: verbs::Tag) {
    header[at..at + 4].copy_from_slice(&tag.stag.0.to_be_bytes());
    header[at + 4..at + 12].copy_from_slice(&tag.offset.to_be_bytes());
}

/// Hello or HelloReply: first byte, versions, depth.
fn greeting(first: u8, [max, other]: [u8; 2], depth: u16) -> [u8; ISER_HEADER_LEN] {
    let mut header = [0; ISER_HEADER_LEN];
    header[0] = first;
    header[1] = max << 4 | other & 0xf;
    header[2..4].copy_from_slice(&depth.to_be_bytes());
    header
}

const CONTROL: u8 = 0b0001;
const HELLO: u8 = 0b0010;
const HELLO_REPLY: u8 = 0b0011;

/// Flags in the first byte.
const WSV: u8 = 0x08;
const RSV: u8 = 0x04;
const REJ: u8 = 0x01;

/// Of the private data: zero-based virtual addresses are not supported.
const NO_ZERO_BASE: u8 = 0x80;

/// Of the private data: Send with Invalidate is not supported.
const NO_INVALIDATE: u8 = 0x40;

/// Where the two STags stand, each with its Base Offset behind it.
const WRITE_STAG: usize = 4;
const READ_STAG: usize = 16;

const SHORT_HEADER: Violation = Violation {
    rule: "a message shorter than an iSER header",
    clause: "RFC 7145 §9.1",
};

const UNKNOWN_OPCODE: Violation = Violation {
    rule: "an unassigned opcode in an iSER header",
    clause: "RFC 7145 §9.1",
};

const LONG_HELLO: Violation = Violation {
    rule: "an iSER Hello with more than its header",
    clause: "RFC 7145 §9.3",
};

const SHORT_PDU: Violation = Violation {
    rule: "a message shorter than a PDU's header",
    clause: "RFC 7145 §9.2",
};

const WRONG_LENGTH: Violation = Violation {
    rule: "a PDU whose lengths are not that of its message",
    clause: "RFC 7145 §10.1.3.3",
};
