//! FPDUs: the ULPDUs of DDP as they stand in a stream of bytes (RFC 5044 §4).
//!
//! | field | bytes |
//! |---|---|
//! | ULPDU Length | 2, big-endian; of the ULPDU alone |
//! | ULPDU | as many as that |
//! | PAD | 0 to 3 zeros, so that what comes before the CRC is a multiple of 4 |
//! | CRC | 4, CRC32c of all before it; any contents where both ends have waived it |
//!
//! Markers are 4 bytes more, at every 512th byte of the stream. They are sent to peers that demand
//! them ([`FpduWriter`]). They are never asked for, so [`FpduReader`] knows nothing of them.

#[cfg(test)]
pub(super) mod tests;
mod writer;

pub use self::writer::FpduWriter;
use super::crc::{CRC_LEN, crc32c};

/// Bytes of the ULPDU Length field.
const LENGTH_LEN: usize = 2;
/// The distance from marker to marker, in bytes of the stream (RFC 5044 §4.3).
const MARKER_INTERVAL: usize = 512;
/// Bytes of a marker: 2 that are reserved, and 2 of FPDUPTR.
const MARKER_LEN: usize = 4;
/// The smallest MULPDU, however small a segment of TCP is (RFC 5044 §4.5).
const MIN_MULPDU: usize = 128;

/// The longest FPDU, in bytes, where both ends have signalled that they take such: what siw does
/// behind the same signal. It is also the bound for segments of TCP that are longer still, as
/// those of a loopback interface, so that ULPDU Length and FPDUPTR always suffice.
pub const LONG_FPDU: usize = 64_768;

/// The longest ULPDU, in bytes, for TCP segments of `emss` bytes (RFC 5044 §4.5).
#[must_use]
pub const fn mulpdu(emss: usize, markers: bool) -> usize {
    let emss = if emss < LONG_FPDU { emss } else { LONG_FPDU };
    let for_markers = if markers {
        MARKER_LEN * emss.div_ceil(MARKER_INTERVAL)
    } else {
        0
    };
    let longest = emss.saturating_sub(LENGTH_LEN + CRC_LEN + for_markers + emss % 4);
    if longest > MIN_MULPDU {
        longest
    } else {
        MIN_MULPDU
    }
}

/// How many bytes of padding follow a ULPDU of `len` bytes.
const fn padding(len: usize) -> usize {
    (LENGTH_LEN + len).wrapping_neg() & 3
}

/// An FPDU whose CRC is wrong: neither its contents nor where it ends is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an FPDU with a wrong CRC")]
pub struct CrcError;

/// What was taken from a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpduCut<'a> {
    /// How many bytes were used.
    pub used: usize,
    /// The ULPDU of the FPDU that they end, if they end one. Otherwise all was used, and more is
    /// needed.
    pub ulpdu: Option<&'a [u8]>,
}

/// Cuts a stream of bytes into FPDUs, however it arrives.
///
/// An FPDU is given out when all of it is there and its CRC is right. It is given out as it lies in
/// the bytes that came; only one that comes in several parts is copied.
#[derive(Debug, Default)]
pub struct FpduReader {
    has_crc: bool,
    /// What came of an FPDU that is not whole.
    held: Vec<u8>,
    /// The FPDU in `held` was given out.
    is_done: bool,
}

impl FpduReader {
    /// For a stream with or without CRCs.
    #[must_use]
    pub const fn new(has_crc: bool) -> Self {
        Self {
            has_crc,
            held: Vec::new(),
            is_done: false,
        }
    }

    /// Takes the next FPDU from the front of `bytes`.
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Result<FpduCut<'a>, CrcError> {
        if self.is_done {
            self.held.clear();
            self.is_done = false;
        }
        if self.held.is_empty()
            && let Some((fpdu, _)) = whole(bytes)
        {
            return Ok(FpduCut {
                used: fpdu.len(),
                ulpdu: Some(check(fpdu, self.has_crc)?),
            });
        }
        let mut rest = bytes;
        self.hold(LENGTH_LEN, &mut rest);
        if let Some(len) = fpdu_len(&self.held) {
            self.hold(len, &mut rest);
            self.is_done = self.held.len() == len;
        }
        let ulpdu = if self.is_done {
            Some(check(&self.held, self.has_crc)?)
        } else {
            None
        };
        Ok(FpduCut {
            used: bytes.len() - rest.len(),
            ulpdu,
        })
    }

    /// Gives back the memory that FPDUs in parts needed.
    pub fn trim(&mut self) {
        if self.is_between() {
            self.held = Vec::new();
            self.is_done = false;
        }
    }

    /// Whether nothing of an FPDU waits for its rest.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.held.is_empty() || self.is_done
    }

    /// Moves bytes into `held` until that has `len`, as far as they go.
    fn hold(&mut self, len: usize, bytes: &mut &[u8]) {
        let missing = len.saturating_sub(self.held.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(missing);
        self.held.extend_from_slice(now);
        *bytes = rest;
    }
}

/// An FPDU that lies whole at the front of `bytes`, and what is behind it.
fn whole(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(fpdu_len(bytes)?)
}

/// How long the FPDU is that begins with `bytes`; `None` before it can be told.
fn fpdu_len(bytes: &[u8]) -> Option<usize> {
    let len = usize::from(u16::from_be_bytes(*bytes.first_chunk()?));
    Some(LENGTH_LEN + len + padding(len) + CRC_LEN)
}

/// The ULPDU of a whole FPDU, if its CRC is right.
fn check(fpdu: &[u8], has_crc: bool) -> Result<&[u8], CrcError> {
    let (covered, crc) = fpdu.split_last_chunk::<CRC_LEN>().ok_or(CrcError)?;
    if has_crc && crc32c(covered) != *crc {
        return Err(CrcError);
    }
    let (length, rest) = covered.split_first_chunk().ok_or(CrcError)?;
    let len = usize::from(u16::from_be_bytes(*length));
    rest.get(..len).ok_or(CrcError)
}
