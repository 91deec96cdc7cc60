//! RFC 7143 §11.15: Logout Response.

use super::bhs::{Bhs, Itt, Opcode, Stamps};

/// A Logout Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutResponse {
    /// Response: [`response`] lists them.
    pub response: u8,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// Time2Wait, in seconds.
    pub time_to_wait: u16,
    /// Time2Retain, in seconds.
    pub time_to_retain: u16,
}

/// Response codes.
#[expect(missing_docs, reason = "the names are those of the responses")]
pub mod response {
    pub const CLOSED: u8 = 0;
    pub const NO_CID: u8 = 1;
    pub const NO_RECOVERY: u8 = 2;
    pub const CLEANUP_FAILED: u8 = 3;
}

impl LogoutResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            response: bhs.0[2],
            itt: bhs.itt(),
            stamps: Stamps::decode(bhs),
            time_to_wait: bhs.half(40),
            time_to_retain: bhs.half(42),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::LogoutResponse);
        bhs.0[1] = 0x80;
        bhs.0[2] = self.response;
        bhs.put_itt(self.itt);
        self.stamps.encode(&mut bhs);
        bhs.put_half(40, self.time_to_wait);
        bhs.put_half(42, self.time_to_retain);
        bhs
    }
}
