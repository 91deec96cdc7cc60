//! RFC 7143 §11.5, §11.6, RFC 7144 §6: Task Management Function Request and Response.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::pdu::{
    At, Bits, CMD_SN, EXP_STAT_SN, FINAL, HeaderField, IMMEDIATE, ITT, LUN, STAMPS, pdu,
};
use super::serial::{CmdSn, DataSn, StatSn};

pdu! {
    /// A Task Management Function Request.
    TaskRequest: fixed(FINAL => true) {
        /// I bit.
        immediate: bool = IMMEDIATE,
        /// Function: [`function`] lists them.
        function: u8 = Bits(1, 0x7f, 0),
        /// Logical unit, where the function addresses one.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Referenced Task Tag.
        referenced: Itt = At(20),
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
        /// RefCmdSN, of ABORT TASK and QUERY TASK.
        ref_cmd_sn: CmdSn = At(32),
        /// ExpDataSN, of TASK REASSIGN.
        exp_data_sn: DataSn = At(36),
    }
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

pdu! {
    /// A Task Management Function Response.
    TaskResponse: fixed(FINAL => true) {
        /// Response: [`response`] lists them.
        response: u8 = At(2),
        /// Additional Response Information; 0 below iSCSIProtocolLevel 2.
        information: [u8; 3] = At(8),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
    }
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
