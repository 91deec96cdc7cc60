//! RFC 7143 §11.6, RFC 7144 §6.4: Task Management Function Response.

use super::bhs::{Bhs, Itt, Opcode, Stamps};

/// A Task Management Function Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskResponse {
    /// Response: [`response`] lists them.
    pub response: u8,
    /// Additional Response Information; 0 below iSCSIProtocolLevel 2.
    pub information: [u8; 3],
    /// Initiator Task Tag.
    pub itt: Itt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
}

/// Response codes; 7 needs iSCSIProtocolLevel 2.
#[expect(missing_docs, reason = "the names are those of the responses")]
pub mod response {
    pub const COMPLETE: u8 = 0;
    pub const NO_TASK: u8 = 1;
    pub const NO_LUN: u8 = 2;
    pub const STILL_ALLEGIANT: u8 = 3;
    pub const REASSIGN_NOT_SUPPORTED: u8 = 4;
    pub const NOT_SUPPORTED: u8 = 5;
    pub const NOT_AUTHORIZED: u8 = 6;
    pub const SUCCEEDED: u8 = 7;
    pub const REJECTED: u8 = 255;
}

impl TaskResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            response: bhs.0[2],
            information: [bhs.0[8], bhs.0[9], bhs.0[10]],
            itt: bhs.itt(),
            stamps: Stamps::decode(bhs),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::TaskResponse);
        bhs.0[1] = 0x80;
        bhs.0[2] = self.response;
        bhs.0[8..11].copy_from_slice(&self.information);
        bhs.put_itt(self.itt);
        self.stamps.encode(&mut bhs);
        bhs
    }
}
