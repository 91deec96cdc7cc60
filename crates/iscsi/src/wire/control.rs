//! RFC 7143 §11.9 to §11.11, §11.17 to §11.19: Asynchronous Message, Text, Reject and NOP, which
//! are about the session and none of its tasks.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use super::pdu::{
    At, CMD_SN, CONTINUE, EXP_STAT_SN, FINAL, HeaderField, IMMEDIATE, ITT, LUN, STAMPS, TTT, pdu,
};
use super::serial::{CmdSn, DataSn, StatSn};

pdu! {
    /// An Asynchronous Message. Its data segment holds SenseLength (2 bytes), sense data, event
    /// data.
    AsyncMessage: fixed(FINAL => true, ITT => Itt::NONE) {
        /// Logical unit, of a SCSI event.
        lun: Lun = LUN,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// AsyncEvent: [`event`] lists them.
        event: u8 = At(36),
        /// AsyncVCode.
        vendor_code: u8 = At(37),
        /// Parameter1 to Parameter3.
        parameters: [u16; 3] = At(38),
    }
}

/// AsyncEvent codes.
#[expect(missing_docs, reason = "the names are those of the events")]
pub mod event {
    pub const SCSI: u8 = 0;
    pub const LOGOUT_REQUEST: u8 = 1;
    pub const CONNECTION_DROP: u8 = 2;
    pub const SESSION_DROP: u8 = 3;
    pub const NEGOTIATION_REQUEST: u8 = 4;
    pub const TASK_TERMINATION: u8 = 5;
}

pdu! {
    /// A Text Request.
    TextRequest: fixed() {
        /// I bit.
        immediate: bool = IMMEDIATE,
        /// F bit: the last or only request of a sequence.
        last: bool = FINAL,
        /// C bit: the text goes on in the next request.
        more: bool = CONTINUE,
        /// Copied from the response that gave the Target Transfer Tag.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Which exchange it goes on with; [`Ttt::NONE`] for a new one.
        ttt: Ttt = TTT,
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
    }
}

pdu! {
    /// A Text Response.
    TextResponse: fixed() {
        /// F bit: the target has finished the operation.
        last: bool = FINAL,
        /// C bit: the text goes on in the next response.
        more: bool = CONTINUE,
        /// Goes with the Target Transfer Tag.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// To be copied into the request that goes on; [`Ttt::NONE`] with the F bit.
        ttt: Ttt = TTT,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
    }
}

pdu! {
    /// A Reject. Its data segment holds the header of the PDU that is rejected, without digests.
    Reject: fixed(FINAL => true, ITT => Itt::NONE) {
        /// Reason: [`reason`] lists them.
        reason: u8 = At(2),
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// DataSN/R2TSN: with a rejected Data/R2T SNACK or DataACK, the next of either.
        data_sn: DataSn = At(36),
    }
}

/// Reason codes of a Reject.
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

pdu! {
    /// A NOP-Out. Its data segment, if any, is to be echoed.
    NopOut: fixed(FINAL => true) {
        /// I bit.
        immediate: bool = IMMEDIATE,
        /// Copied from the NOP-In that it answers.
        lun: Lun = LUN,
        /// A ping; [`Itt::NONE`] where no answer is wanted.
        itt: Itt = ITT,
        /// The NOP-In that it answers; [`Ttt::NONE`] otherwise.
        ttt: Ttt = TTT,
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
    }
}

pdu! {
    /// A NOP-In. Its data segment, if any, echoes that of the NOP-Out.
    NopIn: fixed(FINAL => true) {
        /// Goes with the Target Transfer Tag.
        lun: Lun = LUN,
        /// The NOP-Out that it answers; [`Itt::NONE`] otherwise.
        itt: Itt = ITT,
        /// Asks for an answer; [`Ttt::NONE`] otherwise.
        ttt: Ttt = TTT,
        /// StatSN (the next one where it answers no NOP-Out), ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
    }
}
