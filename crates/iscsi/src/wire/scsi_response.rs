//! RFC 7143 §11.4, RFC 7144 §5.2: SCSI Response.

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::DataSn;

/// A SCSI Response. Its data segment holds SenseLength (2 octets), sense data, response data.
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

/// RFC 7143 §11.4.5: the difference between the data length that was expected and the one that the
/// command asked to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Residual {
    /// None.
    #[default]
    Exact,
    /// So many octets were not transferred as fewer were expected.
    Overflow(u32),
    /// So many octets fewer than expected were transferred.
    Underflow(u32),
}

impl Residual {
    /// What is left when `expected` octets were announced and the command asks to move `presented`.
    /// An overflow that the field cannot hold is told as its greatest value.
    #[must_use]
    pub fn of(expected: u32, presented: u64) -> Self {
        let wide = u64::from(expected);
        if presented > wide {
            Self::Overflow(u32::try_from(presented - wide).unwrap_or(u32::MAX))
        } else if presented < wide {
            Self::Underflow((wide - presented) as u32)
        } else {
            Self::Exact
        }
    }

    /// The octets.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Exact => 0,
            Self::Overflow(count) | Self::Underflow(count) => count,
        }
    }

    /// Overflow and underflow bits at the given places.
    pub(super) const fn bits(self, overflow: u8, underflow: u8) -> u8 {
        match self {
            Self::Exact => 0,
            Self::Overflow(_) => overflow,
            Self::Underflow(_) => underflow,
        }
    }

    /// Both bits set is a protocol error and read as an overflow.
    pub(super) const fn decode(overflow: bool, underflow: bool, count: u32) -> Self {
        match (overflow, underflow) {
            (true, _) => Self::Overflow(count),
            (false, true) => Self::Underflow(count),
            (false, false) => Self::Exact,
        }
    }
}

impl ScsiResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            residual: Residual::decode(bhs.bit(1, 0x04), bhs.bit(1, 0x02), bhs.word(44)),
            read_residual: Residual::decode(bhs.bit(1, 0x10), bhs.bit(1, 0x08), bhs.word(40)),
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
        bhs.0[1] = 0x80 | self.residual.bits(0x04, 0x02) | self.read_residual.bits(0x10, 0x08);
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
