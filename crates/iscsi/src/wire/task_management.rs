//! RFC 7143 §11.5, §11.6, RFC 7144 §6: Task Management Function Request and
//! Response.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::{CmdSn, DataSn, StatSn};

/// A Task Management Function Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRequest {
    /// I bit.
    pub immediate: bool,
    /// Function: [`function`] lists them.
    pub function: u8,
    /// Logical unit, where the function addresses one.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Referenced Task Tag.
    pub referenced: Itt,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
    /// RefCmdSN, of ABORT TASK and QUERY TASK.
    pub ref_cmd_sn: CmdSn,
    /// ExpDataSN, of TASK REASSIGN.
    pub exp_data_sn: DataSn,
}

/// Function codes; 9 to 12 need iSCSIProtocolLevel 2.
#[expect(missing_docs, reason = "the names are those of the functions")]
pub mod function {
    pub const ABORT_TASK: u8 = 1;
    pub const ABORT_TASK_SET: u8 = 2;
    pub const CLEAR_ACA: u8 = 3;
    pub const CLEAR_TASK_SET: u8 = 4;
    pub const LOGICAL_UNIT_RESET: u8 = 5;
    pub const TARGET_WARM_RESET: u8 = 6;
    pub const TARGET_COLD_RESET: u8 = 7;
    pub const TASK_REASSIGN: u8 = 8;
    pub const QUERY_TASK: u8 = 9;
    pub const QUERY_TASK_SET: u8 = 10;
    pub const I_T_NEXUS_RESET: u8 = 11;
    pub const QUERY_ASYNCHRONOUS_EVENT: u8 = 12;
}

impl TaskRequest {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            immediate: bhs.is_immediate(),
            function: bhs.0[1] & 0x7f,
            lun: bhs.lun(),
            itt: bhs.itt(),
            referenced: Itt(bhs.word(20)),
            cmd_sn: bhs.cmd_sn(),
            exp_stat_sn: bhs.exp_stat_sn(),
            ref_cmd_sn: CmdSn(bhs.word(32)),
            exp_data_sn: DataSn(bhs.word(36)),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::TaskRequest);
        bhs.set_immediate(self.immediate);
        bhs.0[1] = 0x80 | self.function;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.referenced.0);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs.put_word(32, self.ref_cmd_sn.0);
        bhs.put_word(36, self.exp_data_sn.0);
        bhs
    }
}

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
