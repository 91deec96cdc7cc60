//! RFC 7143 §11.3, RFC 7144 §5.1: SCSI Command.

use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode};
use super::serial::{CmdSn, StatSn};

/// A SCSI Command without its additional header segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// I bit.
    pub immediate: bool,
    /// F bit: no unsolicited Data-Out follows.
    pub last: bool,
    /// R bit: data is expected from the target.
    pub read: bool,
    /// W bit: data goes to the target.
    pub write: bool,
    /// ATTR: 0 untagged, 1 simple, 2 ordered, 3 head of queue, 4 ACA.
    pub attribute: u8,
    /// PRI; to be ignored below iSCSIProtocolLevel 2.
    pub priority: u8,
    /// Logical unit.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Expected Data Transfer Length, in bytes.
    pub expected: u32,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
    /// The first 16 bytes of the CDB.
    pub cdb: [u8; 16],
}

impl ScsiCommand {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&bhs.0[32..48]);
        Self {
            immediate: bhs.is_immediate(),
            last: bhs.is_final(),
            read: bhs.bit(1, 0x40),
            write: bhs.bit(1, 0x20),
            attribute: bhs.0[1] & 0x07,
            priority: bhs.0[2] >> 4,
            lun: bhs.lun(),
            itt: bhs.itt(),
            expected: bhs.word(20),
            cmd_sn: bhs.cmd_sn(),
            exp_stat_sn: bhs.exp_stat_sn(),
            cdb,
        }
    }

    /// Writes the header; TotalAHSLength and DataSegmentLength are 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::ScsiCommand);
        bhs.set_immediate(self.immediate);
        bhs.put_bit(1, 0x80, self.last);
        bhs.put_bit(1, 0x40, self.read);
        bhs.put_bit(1, 0x20, self.write);
        bhs.0[1] |= self.attribute & 0x07;
        bhs.0[2] = self.priority << 4;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.expected);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs.0[32..48].copy_from_slice(&self.cdb);
        bhs
    }

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
