//! RFC 7143 §11.17: Reject.

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::DataSn;

/// A Reject. Its data segment holds the header of the PDU that is rejected, without digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Reason: [`reason`] lists them.
    pub reason: u8,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// DataSN/R2TSN: with a rejected Data/R2T SNACK or DataACK, the next of either.
    pub data_sn: DataSn,
}

/// Reason codes.
#[expect(missing_docs, reason = "the names are those of the reasons")]
pub mod reason {
    pub const DATA_DIGEST: u8 = 0x02;
    pub const SNACK: u8 = 0x03;
    pub const PROTOCOL_ERROR: u8 = 0x04;
    pub const COMMAND_NOT_SUPPORTED: u8 = 0x05;
    pub const TOO_MANY_IMMEDIATE: u8 = 0x06;
    pub const TASK_IN_PROGRESS: u8 = 0x07;
    pub const INVALID_DATA_ACK: u8 = 0x08;
    pub const INVALID_FIELD: u8 = 0x09;
    pub const OUT_OF_RESOURCES: u8 = 0x0a;
    pub const WAITING_FOR_LOGOUT: u8 = 0x0c;
}

impl Reject {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            reason: bhs.0[2],
            stamps: Stamps::decode(bhs),
            data_sn: DataSn(bhs.word(36)),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::Reject);
        bhs.0[1] = 0x80;
        bhs.0[2] = self.reason;
        bhs.put_itt(Itt::NONE);
        self.stamps.encode(&mut bhs);
        bhs.put_word(36, self.data_sn.0);
        bhs
    }
}
