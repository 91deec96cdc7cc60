//! RFC 7143 §11.12 to §11.15: Login and Logout Requests and Responses.

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::pdu::{
    At, Bits, CMD_SN, CONTINUE, EXP_STAT_SN, FINAL, HeaderField, IMMEDIATE, ITT, STAMPS, pdu,
};
use super::serial::{CmdSn, StatSn};

pdu! {
    /// A Login Request; always immediate.
    LoginRequest: fixed(IMMEDIATE => true) {
        /// T bit: ready to leave the stage.
        transit: bool = FINAL,
        /// C bit: the text goes on in the next request.
        more: bool = CONTINUE,
        /// CSG: [`stage`] lists them.
        current: u8 = Bits(1, 3, 2),
        /// NSG; with the T bit only.
        next: u8 = Bits(1, 3, 0),
        /// Version-max.
        version_max: u8 = At(2),
        /// Version-min.
        version_min: u8 = At(3),
        /// The initiator's part of the session identifier.
        isid: [u8; 6] = At(8),
        /// The target's part; 0 asks for a new session.
        tsih: u16 = At(14),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Connection id.
        cid: u16 = At(20),
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
    }
}

/// Stages of the login phase.
#[expect(missing_docs, reason = "the names are those of the stages")]
pub mod stage {
    pub const SECURITY: u8 = 0;
    pub const OPERATIONAL: u8 = 1;
    pub const FULL_FEATURE: u8 = 3;
}

pdu! {
    /// A Login Response.
    LoginResponse: fixed() {
        /// T bit: the stage ends.
        transit: bool = FINAL,
        /// C bit: the text goes on in the next response.
        more: bool = CONTINUE,
        /// CSG: [`stage`] lists them.
        current: u8 = Bits(1, 3, 2),
        /// NSG; with the T bit only.
        next: u8 = Bits(1, 3, 0),
        /// Version-max.
        version_max: u8 = At(2),
        /// Version-active.
        version_active: u8 = At(3),
        /// The initiator's part of the session identifier.
        isid: [u8; 6] = At(8),
        /// The target's part.
        tsih: u16 = At(14),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// Status-Class and Status-Detail, as 0xCCDD.
        status: u16 = At(36),
    }
}

pdu! {
    /// A Logout Request.
    LogoutRequest: fixed(FINAL => true) {
        /// I bit.
        immediate: bool = IMMEDIATE,
        /// Reason Code: [`reason`] lists them.
        reason: u8 = Bits(1, 0x7f, 0),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Which connection; ignored when the session is closed.
        cid: u16 = At(20),
        /// CmdSN.
        cmd_sn: CmdSn = CMD_SN,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
    }
}

/// Reason codes of a Logout Request.
#[expect(missing_docs, reason = "the names are those of the reasons")]
pub mod reason {
    pub const CLOSE_SESSION: u8 = 0;
    pub const CLOSE_CONNECTION: u8 = 1;
    pub const RECOVERY: u8 = 2;
}

pdu! {
    /// A Logout Response.
    LogoutResponse: fixed(FINAL => true) {
        /// Response: [`response`] lists them.
        response: u8 = At(2),
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// Time2Wait, in seconds.
        time_to_wait: u16 = At(40),
        /// Time2Retain, in seconds.
        time_to_retain: u16 = At(42),
    }
}

/// Response codes of a Logout Response.
#[expect(missing_docs, reason = "the names are those of the responses")]
pub mod response {
    pub const CLOSED: u8 = 0;
    pub const NO_CID: u8 = 1;
    pub const NO_RECOVERY: u8 = 2;
    pub const CLEANUP_FAILED: u8 = 3;
}
