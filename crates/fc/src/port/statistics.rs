//! What an N_Port counts, as `fcoeadm -s` and RLS show it.

use crate::wire::fcoe::FcoeError;

/// Counted since the port was made. Frames are those of FCoE and FIP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatistics {
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes of them, from the Ethernet header on.
    pub sent_bytes: u64,
    /// Frames received.
    pub received_frames: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// FCoE frames whose CRC is wrong.
    pub bad_crc: u64,
    /// FCoE frames that cannot be read.
    pub malformed: u64,
    /// Frames of another VLAN, from a port that is not a neighbour, or not to us.
    pub strangers: u64,
    /// Frames of FCP from a port that there is no nexus with.
    pub unexpected: u64,
    /// Link services that were neither answered nor sent, as too many waited.
    pub dropped: u64,
    /// Nexuses that came up.
    pub nexuses: u64,
}

impl PortStatistics {
    pub(super) const fn spoiled(&mut self, error: FcoeError) {
        match error {
            FcoeError::Crc => self.bad_crc += 1,
            _ => self.malformed += 1,
        }
    }
}
