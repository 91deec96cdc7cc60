//! RFC 7143 §11.4, RFC 7144 §5.2: SCSI Response.

use scsi::residual::Residual;

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::DataSn;

/// A SCSI Response. Its data segment holds SenseLength (2 bytes), sense data, response data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResponse {
    /// What is left of the data of a command in one direction, or of the write of a
    /// bidirectional one.
    pub residual: Residual,
    /// What is left of a bidirectional command's read.
    pub read_residual: Residual,
    /// Response: [`COMPLETED`], [`TARGET_FAILURE`] or vendor specific.
    pub response: u8,
    /// SCSI status; meaningful with [`COMPLETED`].
    pub status: u8,
    /// STATUS QUALIFIER; 0 below iSCSIProtocolLevel 2.
    pub qualifier: u16,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// SNACK Tag.
    pub snack_tag: u32,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// ExpDataSN: how many Data-In (and R2T) PDUs were sent.
    pub exp_data_sn: DataSn,
}

/// Response: command completed at target.
pub const COMPLETED: u8 = 0x00;

/// Response: target failure.
pub const TARGET_FAILURE: u8 = 0x01;

impl ScsiResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            residual: Residual::from_flags(bhs.bit(1, 0x04), bhs.bit(1, 0x02), bhs.word(44)),
            read_residual: Residual::from_flags(bhs.bit(1, 0x10), bhs.bit(1, 0x08), bhs.word(40)),
            response: bhs.0[2],
            status: bhs.0[3],
            qualifier: bhs.half(8),
            itt: bhs.itt(),
            snack_tag: bhs.word(20),
            stamps: Stamps::decode(bhs),
            exp_data_sn: DataSn(bhs.word(36)),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::ScsiResponse);
        bhs.0[1] = 0x80 | self.residual.flag(0x04, 0x02) | self.read_residual.flag(0x10, 0x08);
        bhs.0[2] = self.response;
        bhs.0[3] = self.status;
        bhs.put_half(8, self.qualifier);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.snack_tag);
        self.stamps.encode(&mut bhs);
        bhs.put_word(36, self.exp_data_sn.0);
        bhs.put_word(40, self.read_residual.count());
        bhs.put_word(44, self.residual.count());
        bhs
    }
}
