//! CRC32c, as iSCSI has it (RFC 5044 §4.4).

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes in a CRC field.
pub(super) const CRC_LEN: usize = 4;

/// The CRC field for `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> [u8; CRC_LEN] {
    crc_fast::crc32_iscsi(bytes).to_le_bytes()
}

/// A CRC that is made piece by piece.
#[derive(Clone, Debug)]
pub(super) struct RunningCrc(Digest);

impl RunningCrc {
    pub(super) fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The CRC field for all bytes since the last call; begins anew.
    pub(super) fn finish(&mut self) -> [u8; CRC_LEN] {
        (self.0.finalize_reset() as u32).to_le_bytes()
    }
}
