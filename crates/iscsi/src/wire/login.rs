//! RFC 7143 §11.12, §11.13: Login Request and Response.

use super::bhs::{Bhs, Itt, Opcode, Stamps};
use super::serial::{CmdSn, StatSn};

/// A Login Request; always immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// T bit: ready to leave the stage.
    pub transit: bool,
    /// C bit: the text goes on in the next request.
    pub more: bool,
    /// CSG: [`stage`] lists them.
    pub current: u8,
    /// NSG; with the T bit only.
    pub next: u8,
    /// Version-max.
    pub version_max: u8,
    /// Version-min.
    pub version_min: u8,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// The target's part; 0 asks for a new session.
    pub tsih: u16,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Connection id.
    pub cid: u16,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
}

/// Stages of the login phase.
#[expect(missing_docs, reason = "the names are those of the stages")]
pub mod stage {
    pub const SECURITY: u8 = 0;
    pub const OPERATIONAL: u8 = 1;
    pub const FULL_FEATURE: u8 = 3;
}

impl LoginRequest {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        let o = &bhs.0;
        Self {
            transit: bhs.is_final(),
            more: bhs.bit(1, 0x40),
            current: o[1] >> 2 & 3,
            next: o[1] & 3,
            version_max: o[2],
            version_min: o[3],
            isid: [o[8], o[9], o[10], o[11], o[12], o[13]],
            tsih: bhs.half(14),
            itt: bhs.itt(),
            cid: bhs.half(20),
            cmd_sn: bhs.cmd_sn(),
            exp_stat_sn: bhs.exp_stat_sn(),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::LoginRequest);
        bhs.set_immediate(true);
        bhs.0[1] = (self.current & 3) << 2 | self.next & 3;
        bhs.put_bit(1, 0x80, self.transit);
        bhs.put_bit(1, 0x40, self.more);
        bhs.0[2] = self.version_max;
        bhs.0[3] = self.version_min;
        bhs.0[8..14].copy_from_slice(&self.isid);
        bhs.put_half(14, self.tsih);
        bhs.put_itt(self.itt);
        bhs.put_half(20, self.cid);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs
    }
}

/// A Login Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginResponse {
    /// T bit: the stage ends.
    pub transit: bool,
    /// C bit: the text goes on in the next response.
    pub more: bool,
    /// CSG: [`stage`] lists them.
    pub current: u8,
    /// NSG; with the T bit only.
    pub next: u8,
    /// Version-max.
    pub version_max: u8,
    /// Version-active.
    pub version_active: u8,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// The target's part.
    pub tsih: u16,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// Status-Class and Status-Detail, as 0xCCDD.
    pub status: u16,
}

impl LoginResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        let o = &bhs.0;
        Self {
            transit: bhs.is_final(),
            more: bhs.bit(1, 0x40),
            current: o[1] >> 2 & 3,
            next: o[1] & 3,
            version_max: o[2],
            version_active: o[3],
            isid: [o[8], o[9], o[10], o[11], o[12], o[13]],
            tsih: bhs.half(14),
            itt: bhs.itt(),
            stamps: Stamps::decode(bhs),
            status: bhs.half(36),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::LoginResponse);
        bhs.0[1] = (self.current & 3) << 2 | self.next & 3;
        bhs.put_bit(1, 0x80, self.transit);
        bhs.put_bit(1, 0x40, self.more);
        bhs.0[2] = self.version_max;
        bhs.0[3] = self.version_active;
        bhs.0[8..14].copy_from_slice(&self.isid);
        bhs.put_half(14, self.tsih);
        bhs.put_itt(self.itt);
        self.stamps.encode(&mut bhs);
        bhs.put_half(36, self.status);
        bhs
    }
}
