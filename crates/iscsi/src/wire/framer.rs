//! Cuts a stream of bytes into PDUs, however it arrives (RFC 7143 §11.2).
//!
//! Only a header that is not there whole is kept, in a small array; data is handed through as it
//! lies in the bytes that came. Digests are checked on the way.

use crc_fast::{CrcAlgorithm, Digest};

use super::bhs::{BHS_LEN, Bhs};

/// Cuts bytes into PDUs.
#[derive(Debug)]
pub struct Framer {
    max_data: u32,
    /// Additional header segments are waited for: a mask of TotalAHSLength.
    extends: u8,
    header_digest: bool,
    data_digest: Option<Box<Running>>,
    stage: FramerStage,
    /// What came of a header that is not whole; at most BHS, 1,020 bytes and a digest.
    held: Vec<u8>,
    /// Additional header segments of the last header.
    ahs: Vec<u8>,
}

/// Where in a PDU the stream stands.
#[derive(Clone, Copy, Debug)]
enum FramerStage {
    /// In the header.
    Header,
    /// In the data segment: this many bytes are left, then its padding.
    Data { left: u32, padding: u8 },
    /// In what follows the data: this many bytes of padding are left, and a digest, of which so
    /// many bytes came.
    Trailer {
        padding: u8,
        digest: [u8; DIGEST_LEN],
        have: u8,
    },
}

/// A piece of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduPiece<'a> {
    /// A whole header; [`Framer::ahs`] has the additional header segments. Where `data_len` is not
    /// zero, `Data` follows.
    Header(Bhs),
    /// Bytes of the data segment, next to those before.
    Data {
        /// The bytes, without padding; there may be none when `end` is set.
        bytes: &'a [u8],
        /// Whether the PDU ends with them, its digest (if there is one) being right.
        end: bool,
    },
    /// The PDU ends, and its data digest is wrong.
    BadData,
}

/// A stream that cannot be cut any more, as the place of the next PDU is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header digest is wrong (RFC 7143 §7.8).
    #[error("header digest error")]
    HeaderDigest,
    /// The data segment is longer than MaxRecvDataSegmentLength (RFC 7143 §13.12).
    #[error("a data segment of {length} bytes, above the declared {limit}")]
    TooLong {
        /// The header.
        header: Bhs,
        /// DataSegmentLength.
        length: u32,
        /// MaxRecvDataSegmentLength.
        limit: u32,
    },
}

impl Framer {
    /// For PDUs without digests, with data segments of at most `max_data` bytes.
    #[must_use]
    pub const fn new(max_data: u32) -> Self {
        Self {
            max_data,
            extends: !0,
            header_digest: false,
            data_digest: None,
            stage: FramerStage::Header,
            held: Vec::new(),
            ahs: Vec::new(),
        }
    }

    /// The same for what a target sends. Only a SCSI Command has additional header segments (RFC
    /// 7143 §11.2.2), so the caller refuses a header that announces some. It gets that before they
    /// come, unless a header digest has to tell first whether it is what the target sent.
    #[must_use]
    pub fn of_target(max_data: u32) -> Self {
        Self {
            extends: 0,
            ..Self::new(max_data)
        }
    }

    /// From the next PDU on there are these digests. To be called between PDUs.
    pub fn set_digests(&mut self, header: bool, data: bool) {
        self.header_digest = header;
        if header {
            self.extends = !0;
        }
        self.data_digest = data.then(Box::default);
    }

    /// Whether data segments have digests.
    #[must_use]
    pub const fn has_data_digest(&self) -> bool {
        self.data_digest.is_some()
    }

    /// Whether nothing of a PDU has come yet.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        matches!(self.stage, FramerStage::Header) && self.held.is_empty()
    }

    /// Takes the next piece from the front of `bytes`, which becomes shorter by what was used.
    /// `None`: all has been used, and more is needed.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<PduPiece<'a>>, FrameError> {
        match self.stage {
            FramerStage::Header => self.header(bytes),
            FramerStage::Data { left, padding } => Ok(self.data(bytes, left, padding)),
            FramerStage::Trailer {
                padding,
                digest,
                have,
            } => Ok(self.trailer(bytes, padding, digest, have)),
        }
    }

    /// The additional header segments of the header that `next` returned last.
    #[must_use]
    pub fn ahs(&self) -> &[u8] {
        &self.ahs
    }

    fn header<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<PduPiece<'a>>, FrameError> {
        if self.held.is_empty()
            && let Some((head, rest)) = self.split_header(bytes)
        {
            *bytes = rest;
            return self.accept(head).map(Some);
        }
        self.header_in_parts(bytes)
    }

    /// The same for one that has come in part before, or does now. Apart from the usual case, which
    /// is short enough to be inlined.
    #[cold]
    fn header_in_parts<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<PduPiece<'a>>, FrameError> {
        self.hold(BHS_LEN, bytes);
        let Some(len) = self.header_len(&self.held) else {
            return Ok(None);
        };
        self.hold(len, bytes);
        if self.held.len() < len {
            return Ok(None);
        }
        let held = std::mem::take(&mut self.held);
        let piece = self.accept(&held);
        self.held = held;
        self.held.clear();
        piece.map(Some)
    }

    /// A header that lies whole at the front of `bytes`.
    fn split_header<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        bytes.split_at_checked(self.header_len(bytes)?)
    }

    /// How long the header is that begins with `bytes`, with its digest; `None` before it can be
    /// told.
    fn header_len(&self, bytes: &[u8]) -> Option<usize> {
        let bhs = bytes.first_chunk::<BHS_LEN>()?;
        let digest = if self.header_digest { DIGEST_LEN } else { 0 };
        Some(BHS_LEN + usize::from(bhs[4] & self.extends) * 4 + digest)
    }

    /// Moves bytes into `held` until that has `len`, as far as they go.
    fn hold(&mut self, len: usize, bytes: &mut &[u8]) {
        let missing = len.saturating_sub(self.held.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(missing);
        self.held.extend_from_slice(now);
        *bytes = rest;
    }

    /// Looks at a whole header.
    fn accept<'a>(&mut self, head: &[u8]) -> Result<PduPiece<'a>, FrameError> {
        let head = self.check_header(head)?;
        let (bhs, ahs) = head.split_first_chunk().ok_or(FrameError::HeaderDigest)?;
        let bhs = Bhs(*bhs);
        self.ahs.clear();
        self.ahs.extend_from_slice(ahs);
        let length = bhs.data_len();
        if length > self.max_data {
            return Err(FrameError::TooLong {
                header: bhs,
                length,
                limit: self.max_data,
            });
        }
        if length > 0 {
            self.stage = FramerStage::Data {
                left: length,
                padding: padding(length),
            };
        }
        Ok(PduPiece::Header(bhs))
    }

    /// The header without its digest, which is checked.
    fn check_header<'h>(&self, head: &'h [u8]) -> Result<&'h [u8], FrameError> {
        if !self.header_digest {
            return Ok(head);
        }
        let (head, digest) = head.split_last_chunk().ok_or(FrameError::HeaderDigest)?;
        if crc32c(head) != *digest {
            return Err(FrameError::HeaderDigest);
        }
        Ok(head)
    }

    fn data<'a>(&mut self, bytes: &mut &'a [u8], left: u32, padding: u8) -> Option<PduPiece<'a>> {
        if bytes.is_empty() {
            return None;
        }
        let (now, rest) = bytes.split_at(bytes.len().min(left as usize));
        *bytes = rest;
        if let Some(digest) = &mut self.data_digest {
            digest.update(now);
        }
        let left = left - now.len() as u32;
        self.stage = if left > 0 {
            FramerStage::Data { left, padding }
        } else if padding == 0 && self.data_digest.is_none() {
            FramerStage::Header
        } else {
            FramerStage::Trailer {
                padding,
                digest: [0; DIGEST_LEN],
                have: 0,
            }
        };
        Some(PduPiece::Data {
            bytes: now,
            end: matches!(self.stage, FramerStage::Header),
        })
    }

    fn trailer<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        padding: u8,
        mut digest: [u8; DIGEST_LEN],
        have: u8,
    ) -> Option<PduPiece<'a>> {
        let (pad, rest) = bytes.split_at(bytes.len().min(usize::from(padding)));
        let padding = padding - pad.len() as u8;
        *bytes = rest;
        let Some(running) = &mut self.data_digest else {
            return self.end_trailer(padding == 0, padding, true);
        };
        running.update(pad);
        let missing = &mut digest[usize::from(have)..];
        let (now, rest) = rest.split_at(rest.len().min(missing.len()));
        missing[..now.len()].copy_from_slice(now);
        *bytes = rest;
        let have = have + now.len() as u8;
        if usize::from(have) < DIGEST_LEN {
            self.stage = FramerStage::Trailer {
                padding,
                digest,
                have,
            };
            return None;
        }
        let right = running.finish() == digest;
        self.end_trailer(true, 0, right)
    }

    fn end_trailer<'a>(&mut self, ended: bool, padding: u8, right: bool) -> Option<PduPiece<'a>> {
        if !ended {
            self.stage = FramerStage::Trailer {
                padding,
                digest: [0; DIGEST_LEN],
                have: 0,
            };
            return None;
        }
        self.stage = FramerStage::Header;
        Some(if right {
            PduPiece::Data {
                bytes: &[],
                end: true,
            }
        } else {
            PduPiece::BadData
        })
    }
}

/// How many bytes of padding follow a segment of `length` bytes.
#[must_use]
pub const fn padding(length: u32) -> u8 {
    (length.wrapping_neg() & 3) as u8
}

/// Bytes in a digest.
pub const DIGEST_LEN: usize = 4;

/// The digest of `bytes`, which include padding.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    crc_fast::crc32_iscsi(bytes).to_le_bytes()
}

/// The digest of `bytes` and the zeros that pad them.
#[must_use]
pub fn crc32c_padded(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    if bytes.len().is_multiple_of(4) {
        return crc32c(bytes);
    }
    let mut running = Running::default();
    running.update(bytes);
    running.update(&[0; 3][..usize::from(padding(bytes.len() as u32))]);
    running.finish()
}

/// A digest that is made piece by piece.
#[derive(Clone, Debug)]
pub struct Running(Digest);

impl Default for Running {
    fn default() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Running {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes since the last call; begins anew.
    pub fn finish(&mut self) -> [u8; DIGEST_LEN] {
        (self.0.finalize_reset() as u32).to_le_bytes()
    }
}
