//! RFC 7143 §11.2.3, §13.1: CRC32C digests. They travel with the byte of the lowest powers first.

use crc_fast::{CrcAlgorithm, Digest};

use super::framer::padding;

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
