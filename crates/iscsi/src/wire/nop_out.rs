//! RFC 7143 §11.18: NOP-Out.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Ttt};
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
