//! RFC 7143 §11.10, §11.11: Text Request and Response.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use super::serial::{CmdSn, StatSn};

/// A Text Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRequest {
    /// I bit.
    pub immediate: bool,
    /// F bit: the last or only request of a sequence.
    pub last: bool,
    /// C bit: the text goes on in the next request.
    pub more: bool,
    /// Copied from the response that gave the Target Transfer Tag.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Which exchange it goes on with; [`Ttt::NONE`] for a new one.
    pub ttt: Ttt,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
}

impl TextRequest {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            immediate: bhs.is_immediate(),
            last: bhs.is_final(),
            more: bhs.bit(1, 0x40),
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            cmd_sn: bhs.cmd_sn(),
            exp_stat_sn: bhs.exp_stat_sn(),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::TextRequest);
        bhs.set_immediate(self.immediate);
        bhs.put_bit(1, 0x80, self.last);
        bhs.put_bit(1, 0x40, self.more);
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs
    }
}

/// A Text Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextResponse {
    /// F bit: the target has finished the operation.
    pub last: bool,
    /// C bit: the text goes on in the next response.
    pub more: bool,
    /// Goes with the Target Transfer Tag.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// To be copied into the request that goes on; [`Ttt::NONE`] with the F bit.
    pub ttt: Ttt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
}

impl TextResponse {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            last: bhs.is_final(),
            more: bhs.bit(1, 0x40),
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            stamps: Stamps::decode(bhs),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::TextResponse);
        bhs.put_bit(1, 0x80, self.last);
        bhs.put_bit(1, 0x40, self.more);
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        self.stamps.encode(&mut bhs);
        bhs
    }
}
