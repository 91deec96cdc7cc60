//! RFC 7143 §11.3, §11.4, RFC 7144 §5.1, §5.2: SCSI Command and Response.

use scsi::residual::Residual;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::pdu::{
    At, Bit, Bits, CMD_SN, EXP_STAT_SN, FINAL, HeaderField, IMMEDIATE, ITT, LUN, ResidualAt,
    STAMPS, pdu,
};
use super::serial::{CmdSn, DataSn, StatSn};

pdu! {
    /// A SCSI Command without its additional header segments.
    ScsiCommand: fixed() {
        /// I bit.
        immediate: bool = IMMEDIATE,
        /// F bit: no unsolicited Data-Out follows.
        last: bool = FINAL,
        /// R bit: data is expected from the target.
        read: bool = Bit(1, 0x40),
        /// W bit: data goes to the target.
        write: bool = Bit(1, 0x20),
        /// ATTR: 0 untagged, 1 simple, 2 ordered, 3 head of queue, 4 ACA.
        attribute: u8 = Bits(1, 7, 0),
        /// PRI; to be ignored below iSCSIProtocolLevel 2.
        priority: u8 = Bits(2, 0x0f, 4),
        /// Logical unit.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Expected Data Transfer Length, in bytes.
        expected: u32 = At(20),
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
        /// The first 16 bytes of the CDB.
        cdb: [u8; 16] = At(32),
    }
}

impl ScsiCommand {
    /// The task attribute; `None` for the reserved codes.
    #[must_use]
    pub const fn task_attribute(&self) -> Option<Attribute> {
        match self.attribute {
            0 | 1 => Some(Attribute::Simple),
            2 => Some(Attribute::Ordered),
            3 => Some(Attribute::HeadOfQueue),
            4 => Some(Attribute::Aca),
            _ => None,
        }
    }
}

pdu! {
    /// A SCSI Response. Its data segment holds SenseLength (2 bytes), sense data, response data.
    ScsiResponse: fixed(FINAL => true) {
        /// What is left of the data of a command in one direction, or of the write of a
        /// bidirectional one.
        residual: Residual = ResidualAt(0x04, 0x02, 44),
        /// What is left of a bidirectional command's read.
        read_residual: Residual = ResidualAt(0x10, 0x08, 40),
        /// Response: [`COMPLETED`], [`TARGET_FAILURE`] or vendor specific.
        response: u8 = At(2),
        /// SCSI status; meaningful with [`COMPLETED`].
        status: u8 = At(3),
        /// STATUS QUALIFIER; 0 below iSCSIProtocolLevel 2.
        qualifier: u16 = At(8),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// SNACK Tag.
        snack_tag: u32 = At(20),
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// ExpDataSN: how many Data-In (and R2T) PDUs were sent.
        exp_data_sn: DataSn = At(36),
    }
}

/// Response: command completed at target.
pub const COMPLETED: u8 = 0x00;

/// Response: target failure.
pub const TARGET_FAILURE: u8 = 0x01;
