//! RFC 7143 §11.19: NOP-In.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};

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
