//! FC-BB-5 and FC-BB-6: a Fibre Channel frame inside an Ethernet frame.
//!
//! Version and reserved bytes, SOF, FC frame header, payload with fill bytes, CRC, EOF, reserved
//! bytes. The shortest is just as long as an Ethernet frame must be, so nothing is ever padded and
//! CRC and EOF stand at the very end.

use std::fmt;

use super::ethernet;
use super::frame::{FrameHeader, HEADER_LEN, MAX_PAYLOAD};
use super::reader::Truncated;

/// A start-of-frame delimiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sof(pub u8);

impl Sof {
    /// Class 3, first frame of a sequence.
    pub const I3: Self = Self(0x2e);
    /// Class 3, any later frame of a sequence.
    pub const N3: Self = Self(0x36);
}

impl fmt::Debug for Sof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::I3 => f.write_str("SOFi3"),
            Self::N3 => f.write_str("SOFn3"),
            Self(other) => write!(f, "SOF {other:02x}"),
        }
    }
}

/// An end-of-frame delimiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eof(pub u8);

impl Eof {
    /// More frames of the sequence follow.
    pub const N: Self = Self(0x41);
    /// The last frame of a sequence.
    pub const T: Self = Self(0x42);
}

impl fmt::Debug for Eof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::N => f.write_str("EOFn"),
            Self::T => f.write_str("EOFt"),
            Self(other) => write!(f, "EOF {other:02x}"),
        }
    }
}

/// A Fibre Channel frame of class 3 that came whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame<'a> {
    /// How it begins.
    pub sof: Sof,
    /// How it ends.
    pub eof: Eof,
    /// Its header.
    pub header: FrameHeader,
    /// Its payload without fill bytes.
    pub payload: &'a [u8],
}

/// Why what came is not a frame that a port may look at: it is counted and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FcoeError {
    /// It ends before its end-of-frame delimiter.
    #[error("a truncated FCoE frame")]
    Truncated,
    /// It is longer than any frame of Fibre Channel, or no multiple of 4 bytes.
    #[error("an FCoE frame of a length invalid in Fibre Channel")]
    Length,
    /// Another version than 0.
    #[error("FCoE of version {0}")]
    Version(u8),
    /// Not of class 3, the only one there is.
    #[error("{0:?} instead of one of class 3")]
    Sof(Sof),
    /// Aborted or marked invalid on its way, or not of class 3.
    #[error("{0:?} instead of EOFn or EOFt")]
    Eof(Eof),
    /// It was damaged on its way.
    #[error("wrong CRC")]
    Crc,
    /// Optional headers stand before the payload, which FCP and link services never have.
    #[error("an FCoE frame with the optional headers {0:02x}")]
    OptionalHeaders(u8),
    /// More fill bytes than payload.
    #[error("more fill bytes than payload")]
    Fill,
}

impl From<Truncated> for FcoeError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Reads what follows the Ethernet header.
///
/// # Errors
/// Why it is to be dropped.
pub fn decode(bytes: &[u8]) -> Result<ReceivedFrame<'_>, FcoeError> {
    let WholeFrame {
        sof,
        eof,
        header,
        filled,
    } = inspect(bytes)?;
    if header.df_ctl != 0 {
        return Err(FcoeError::OptionalHeaders(header.df_ctl));
    }
    let fill = if header.f_ctl.end_sequence() {
        header.f_ctl.fill()
    } else {
        0
    };
    let len = filled.len().checked_sub(fill).ok_or(FcoeError::Fill)?;
    let payload = &filled[..len];
    Ok(ReceivedFrame {
        sof,
        eof,
        header,
        payload,
    })
}

/// A Fibre Channel frame of class 3 that came whole. What its payload is has not been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeFrame<'a> {
    /// How it begins.
    pub sof: Sof,
    /// How it ends.
    pub eof: Eof,
    /// Its header.
    pub header: FrameHeader,
    /// Optional headers, payload and fill bytes.
    pub filled: &'a [u8],
}

/// Reads what follows the Ethernet header as far as a switch does, which forwards optional headers
/// as they are.
///
/// # Errors
/// Why it is to be dropped; neither [`FcoeError::OptionalHeaders`] nor [`FcoeError::Fill`].
pub fn inspect(bytes: &[u8]) -> Result<WholeFrame<'_>, FcoeError> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>().ok_or(Truncated)?;
    let (content, tail) = rest.split_last_chunk::<TAIL_LEN>().ok_or(Truncated)?;
    let header = FrameHeader::parse(content)?;
    let (version, sof, eof) = (head[0] >> 4, Sof(head[HEAD_LEN - 1]), Eof(tail[4]));
    if version != 0 {
        return Err(FcoeError::Version(version));
    }
    if !matches!(sof, Sof::I3 | Sof::N3) {
        return Err(FcoeError::Sof(sof));
    }
    if !matches!(eof, Eof::N | Eof::T) {
        return Err(FcoeError::Eof(eof));
    }
    if !content.len().is_multiple_of(4) || content.len() > HEADER_LEN + MAX_PAYLOAD {
        return Err(FcoeError::Length);
    }
    if !tail.starts_with(&crc(content)) {
        return Err(FcoeError::Crc);
    }
    Ok(WholeFrame {
        sof,
        eof,
        header,
        filled: &content[HEADER_LEN..],
    })
}

/// Bytes of the Ethernet frame that [`encode`] makes.
#[must_use]
pub const fn frame_len(ethernet: &ethernet::EthernetHeader, payload_len: usize) -> usize {
    ethernet.len() + HEAD_LEN + HEADER_LEN + payload_len.next_multiple_of(4) + TAIL_LEN
}

/// Writes a whole Ethernet frame at the front of `slot`, which must have room for [`frame_len`]
/// bytes, and gives its length. `fill` writes the payload, all `payload_len` bytes of it.
///
/// The CRC is taken over what then stands in the slot: a payload that was changing while it was
/// copied never leaves with a wrong one. The fill bytes in F_CTL follow from the length; only the
/// last frame of a sequence may have one that is not a multiple of 4.
pub fn encode(
    slot: &mut [u8],
    ethernet: &ethernet::EthernetHeader,
    (sof, eof): (Sof, Eof),
    header: &FrameHeader,
    payload_len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> usize {
    let len = frame_len(ethernet, payload_len);
    let filled_len = payload_len.next_multiple_of(4);
    let filling = filled_len - payload_len;
    debug_assert!(filling == 0 || header.f_ctl.end_sequence());
    let bytes = ethernet.put(&mut slot[..len]);
    let (head, rest) = bytes.split_at_mut(HEAD_LEN);
    head.fill(0);
    head[HEAD_LEN - 1] = sof.0;
    let (content, tail) = rest.split_at_mut(HEADER_LEN + filled_len);
    let f_ctl = header.f_ctl.with_fill(filling);
    content[..HEADER_LEN].copy_from_slice(&FrameHeader { f_ctl, ..*header }.encode());
    let (payload, zeros) = content[HEADER_LEN..].split_at_mut(payload_len);
    fill(payload);
    zeros.fill(0);
    tail[..4].copy_from_slice(&crc(content));
    tail[4..].copy_from_slice(&[eof.0, 0, 0, 0]);
    len
}

/// FC-FS-3: the CRC of a frame, which FCoE carries with the byte of the lowest powers first. By
/// `crc32fast`, as `crc-fast` takes half as long again for a full frame, and twice as long for a
/// command: what it wins by wider registers it loses where they begin and end.
fn crc(content: &[u8]) -> [u8; 4] {
    crc32fast::hash(content).to_le_bytes()
}

/// Bytes before the FC frame header: version, reserved, SOF.
pub(crate) const HEAD_LEN: usize = 14;

/// Bytes after the payload: CRC, EOF, reserved.
const TAIL_LEN: usize = 8;
