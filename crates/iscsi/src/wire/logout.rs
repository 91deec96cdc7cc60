//! RFC 7143 §11.14, §11.15: Logout Request and Response.

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::{CmdSn, StatSn};

/// A Logout Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutRequest {
    /// I bit.
    pub immediate: bool,
    /// Reason Code: [`reason`] lists them.
    pub reason: u8,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Which connection; ignored when the session is closed.
    pub cid: u16,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
}

/// Reason codes.
#[expect(missing_docs, reason = "the names are those of the reasons")]
pub mod reason {
    pub const CLOSE_SESSION: u8 = 0;
    pub const CLOSE_CONNECTION: u8 = 1;
    pub const RECOVERY: u8 = 2;
}

impl LogoutRequest {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            immediate: bhs.is_immediate(),
            reason: bhs.0[1] & 0x7f,
            itt: bhs.itt(),
            cid: bhs.half(20),
            cmd_sn: bhs.cmd_sn(),
            exp_stat_sn: bhs.exp_stat_sn(),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::LogoutRequest);
        bhs.set_immediate(self.immediate);
        bhs.0[1] = 0x80 | self.reason;
        bhs.put_itt(self.itt);
        bhs.put_half(20, self.cid);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs
    }
}

/// A Logout Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutResponse {
    /// Response: [`response`] lists them.
    pub response: u8,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// Time2Wait, in seconds.
    pub time_to_wait: u16,
    /// Time2Retain, in seconds.
    pub time_to_retain: u16,
}

/// Response codes.
#[expect(missing_docs, reason = "the names are those of the responses")]
pub mod response {
    pub const CLOSED: u8 = 0;
    pub const NO_CID: u8 = 1;
    pub const NO_RECOVERY: u8 = 2;
    pub const CLEANUP_FAILED: u8 = 3;
}

impl LogoutResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            response: bhs.0[2],
            itt: bhs.itt(),
            stamps: Stamps::decode(bhs),
            time_to_wait: bhs.half(40),
            time_to_retain: bhs.half(42),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::LogoutResponse);
        bhs.0[1] = 0x80;
        bhs.0[2] = self.response;
        bhs.put_itt(self.itt);
        self.stamps.encode(&mut bhs);
        bhs.put_half(40, self.time_to_wait);
        bhs.put_half(42, self.time_to_retain);
        bhs
    }
}
