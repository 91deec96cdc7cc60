//! Headers of DDP segments, with the control byte of RDMAP in them (RFC 5041 §4, RFC 5040 §4).
//! All numbers are big-endian.

#[cfg(test)]
mod tests;

use super::terminate::TerminateCode;
use crate::verbs::{Stag, Tag};

/// An opcode of RDMAP (RFC 5040 Figure 4). 4 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

impl Opcode {
    /// RDMA Write.
    pub const WRITE: Self = Self(0);
    /// RDMA Read Request.
    pub const READ_REQUEST: Self = Self(1);
    /// RDMA Read Response.
    pub const READ_RESPONSE: Self = Self(2);
    /// Send.
    pub const SEND: Self = Self(3);
    /// Send with Invalidate.
    pub const SEND_INVALIDATE: Self = Self(4);
    /// Send with Solicited Event. It is taken, and never sent.
    pub const SEND_EVENT: Self = Self(5);
    /// Send with Solicited Event and Invalidate. It is taken, and never sent.
    pub const SEND_EVENT_INVALIDATE: Self = Self(6);
    /// Terminate.
    pub const TERMINATE: Self = Self(7);

    /// Whether its segments are tagged; `None` for what is reserved.
    const fn is_tagged(self) -> Option<bool> {
        match self {
            Self::WRITE | Self::READ_RESPONSE => Some(true),
            Self(1 | 3..=7) => Some(false),
            _ => None,
        }
    }

    /// Whether the message invalidates an STag.
    #[must_use]
    pub const fn invalidates(self) -> bool {
        matches!(self, Self::SEND_INVALIDATE | Self::SEND_EVENT_INVALIDATE)
    }
}

/// The queues of untagged messages (RFC 5040 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueNumber(pub u32);

impl QueueNumber {
    /// Sends of all kinds.
    pub const SEND: Self = Self(0);
    /// RDMA Read Requests.
    pub const READ_REQUEST: Self = Self(1);
    /// The Terminate.
    pub const TERMINATE: Self = Self(2);
    /// How many there are.
    pub const COUNT: usize = 3;

    /// The queue that an untagged opcode belongs to.
    #[must_use]
    pub const fn of(opcode: Opcode) -> Self {
        match opcode {
            Opcode::READ_REQUEST => Self::READ_REQUEST,
            Opcode::TERMINATE => Self::TERMINATE,
            _ => Self::SEND,
        }
    }
}

/// The header of a tagged segment: 14 bytes (RFC 5041 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedHeader {
    /// The message ends with this segment.
    pub last: bool,
    /// What the message is.
    pub opcode: Opcode,
    /// Where the first byte of the segment goes.
    pub to: Tag,
}

/// The header of an untagged segment: 18 bytes (RFC 5041 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntaggedHeader {
    /// The message ends with this segment.
    pub last: bool,
    /// What the message is.
    pub opcode: Opcode,
    /// The Invalidate STag; of opcodes that do not invalidate it is 0, and ignored.
    pub invalidate: Stag,
    /// Queue number.
    pub queue: QueueNumber,
    /// Message sequence number, from 1 on in each queue.
    pub msn: u32,
    /// Message offset of the first byte of the segment, in bytes.
    pub offset: u32,
}

/// The header of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DdpHeader {
    /// Of a segment that says itself where it goes.
    Tagged(TaggedHeader),
    /// Of a segment of a queued message.
    Untagged(UntaggedHeader),
}

/// Bytes of a tagged header.
pub const TAGGED_LEN: usize = 14;
/// Bytes of an untagged header.
pub const UNTAGGED_LEN: usize = 18;

/// The tagged flag and the last flag of the first byte.
const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
/// The version of DDP in the first byte; the bits between are reserved, and not checked.
const DDP_VERSION_MASK: u8 = 0x03;
const DDP_VERSION: u8 = 1;
/// The version of RDMAP in the second byte. 0 is that of the RDMA Consortium, which goes with
/// revision 0 of MPA alone (RFC 5044 Appendix C), so it is refused as that is.
const RDMAP_VERSION_MASK: u8 = 0xc0;
const RDMAP_VERSION: u8 = 0x40;
const OPCODE_MASK: u8 = 0x0f;

/// How long the header of a segment has to be, by its first byte.
#[must_use]
pub fn header_len(ulpdu: &[u8]) -> usize {
    match ulpdu.first() {
        Some(first) if first & TAGGED != 0 => TAGGED_LEN,
        _ => UNTAGGED_LEN,
    }
}

impl DdpHeader {
    /// Reads the header of a segment; returns the payload, too. Fails with what the peer is to be
    /// told: a segment shorter than its header, a version, or an opcode. The queue number is not
    /// checked.
    pub fn parse(ulpdu: &[u8]) -> Result<(Self, &[u8]), TerminateCode> {
        const TOO_SHORT: TerminateCode = TerminateCode::FPDU_START;
        if header_len(ulpdu) == TAGGED_LEN {
            let (header, payload) = ulpdu.split_first_chunk().ok_or(TOO_SHORT)?;
            return Ok((Self::Tagged(TaggedHeader::parse(header)?), payload));
        }
        let (header, payload) = ulpdu.split_first_chunk().ok_or(TOO_SHORT)?;
        Ok((Self::Untagged(UntaggedHeader::parse(header)?), payload))
    }
}

/// The last flag and the opcode, if both versions are right and the opcode is of such segments.
fn parse_control(
    [ddp, rdmap]: [u8; 2],
    wrong_version: TerminateCode,
) -> Result<(bool, Opcode), TerminateCode> {
    if ddp & DDP_VERSION_MASK != DDP_VERSION {
        return Err(wrong_version);
    }
    if rdmap & RDMAP_VERSION_MASK != RDMAP_VERSION {
        return Err(TerminateCode::RDMAP_VERSION);
    }
    let opcode = Opcode(rdmap & OPCODE_MASK);
    if opcode.is_tagged() != Some(ddp & TAGGED != 0) {
        return Err(TerminateCode::UNEXPECTED_OPCODE);
    }
    Ok((ddp & LAST != 0, opcode))
}

fn control(tagged: u8, last: bool, opcode: Opcode) -> [u8; 2] {
    let last = if last { LAST } else { 0 };
    [tagged | last | DDP_VERSION, RDMAP_VERSION | opcode.0]
}

impl TaggedHeader {
    fn parse(bytes: &[u8; TAGGED_LEN]) -> Result<Self, TerminateCode> {
        let control = [bytes[0], bytes[1]];
        let (last, opcode) = parse_control(control, TerminateCode::TAGGED_VERSION)?;
        Ok(Self {
            last,
            opcode,
            to: tag_at(bytes, 2),
        })
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> [u8; TAGGED_LEN] {
        let mut bytes = [0; TAGGED_LEN];
        bytes[..2].copy_from_slice(&control(TAGGED, self.last, self.opcode));
        put_tag(&mut bytes, 2, self.to);
        bytes
    }
}

impl UntaggedHeader {
    fn parse(bytes: &[u8; UNTAGGED_LEN]) -> Result<Self, TerminateCode> {
        let control = [bytes[0], bytes[1]];
        let (last, opcode) = parse_control(control, TerminateCode::UNTAGGED_VERSION)?;
        Ok(Self {
            last,
            opcode,
            invalidate: Stag(word_at(bytes, 2)),
            queue: QueueNumber(word_at(bytes, 6)),
            msn: word_at(bytes, 10),
            offset: word_at(bytes, 14),
        })
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> [u8; UNTAGGED_LEN] {
        let mut bytes = [0; UNTAGGED_LEN];
        bytes[..2].copy_from_slice(&control(0, self.last, self.opcode));
        put_word(&mut bytes, 2, self.invalidate.0);
        put_word(&mut bytes, 6, self.queue.0);
        put_word(&mut bytes, 10, self.msn);
        put_word(&mut bytes, 14, self.offset);
        bytes
    }
}

/// An RDMA Read Request behind its DDP header: 28 bytes (RFC 5040 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Where the response is to go, in the buffer of the end that asks.
    pub sink: Tag,
    /// How many bytes are asked for.
    pub size: u32,
    /// Where they are.
    pub source: Tag,
}

/// Bytes of an RDMA Read Request.
pub const READ_REQUEST_LEN: usize = 28;

impl ReadRequest {
    /// Reads one.
    #[must_use]
    pub fn parse(bytes: &[u8; READ_REQUEST_LEN]) -> Self {
        Self {
            sink: tag_at(bytes, 0),
            size: word_at(bytes, 12),
            source: tag_at(bytes, 16),
        }
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> [u8; READ_REQUEST_LEN] {
        let mut bytes = [0; READ_REQUEST_LEN];
        put_tag(&mut bytes, 0, self.sink);
        put_word(&mut bytes, 12, self.size);
        put_tag(&mut bytes, 16, self.source);
        bytes
    }
}

/// The 32 bits at `at`, which is inside.
fn word_at<const LEN: usize>(bytes: &[u8; LEN], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// An STag and the Tagged Offset behind it, which are inside.
fn tag_at<const LEN: usize>(bytes: &[u8; LEN], at: usize) -> Tag {
    let halves = [word_at(bytes, at + 4), word_at(bytes, at + 8)];
    Tag {
        stag: Stag(word_at(bytes, at)),
        offset: u64::from(halves[0]) << 32 | u64::from(halves[1]),
    }
}

fn put_word(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
}

fn put_tag(bytes: &mut [u8], at: usize, tag: Tag) {
    put_word(bytes, at, tag.stag.0);
    bytes[at + 4..at + 12].copy_from_slice(&tag.offset.to_be_bytes());
}
