//! RFC 7143 §11.18, §11.19: NOP-Out and NOP-In.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use super::serial::{CmdSn, StatSn};

/// A NOP-Out. Its data segment, if any, is to be echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopOut {
    /// I bit.
    pub immediate: bool,
    /// Copied from the NOP-In that it answers.
    pub lun: Lun,
    /// A ping; [`Itt::NONE`] where no answer is wanted.
    pub itt: Itt,
    /// The NOP-In that it answers; [`Ttt::NONE`] otherwise.
    pub ttt: Ttt,
    /// CmdSN.
    pub cmd_sn: CmdSn,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
}

impl NopOut {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            immediate: bhs.is_immediate(),
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
        let mut bhs = Bhs::new(Opcode::NopOut);
        bhs.set_immediate(self.immediate);
        bhs.0[1] = 0x80;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        bhs.put_request(self.cmd_sn, self.exp_stat_sn);
        bhs
    }
}

/// A NOP-In. Its data segment, if any, echoes that of the NOP-Out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopIn {
    /// Goes with the Target Transfer Tag.
    pub lun: Lun,
    /// The NOP-Out that it answers; [`Itt::NONE`] otherwise.
    pub itt: Itt,
    /// Asks for an answer; [`Ttt::NONE`] otherwise.
    pub ttt: Ttt,
    /// StatSN (the next one where it answers no NOP-Out), ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
}

impl NopIn {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            stamps: Stamps::decode(bhs),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::NopIn);
        bhs.0[1] = 0x80;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        self.stamps.encode(&mut bhs);
        bhs
    }
}
