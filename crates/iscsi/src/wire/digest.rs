//! RFC 7143 §11.2.3, §13.1: CRC32C digests. They travel with the octet of the lowest powers first.

use crc_fast::{CrcAlgorithm, Digest};

use super::framer::padding;

/// Octets in a digest.
pub const DIGEST_LEN: usize = 4;

/// The digest of `octets`, which include padding.
#[must_use]
pub fn crc32c(octets: &[u8]) -> [u8; DIGEST_LEN] {
    crc_fast::crc32_iscsi(octets).to_le_bytes()
}

/// The digest of `octets` and the zeros that pad them.
#[must_use]
pub fn crc32c_padded(octets: &[u8]) -> [u8; DIGEST_LEN] {
    if octets.len().is_multiple_of(4) {
        return crc32c(octets);
    }
    let mut running = Running::default();
    running.update(octets);
    running.update(&[0; 3][..usize::from(padding(octets.len() as u32))]);
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
    /// Takes more octets.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// The digest of all octets since the last call; begins anew.
    pub fn finish(&mut self) -> [u8; DIGEST_LEN] {
        (self.0.finalize_reset() as u32).to_le_bytes()
    }
}
