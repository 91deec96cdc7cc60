//! RFC 7143 §11.14: Logout Request.

use super::bhs::{Bhs, Itt, Opcode};
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
