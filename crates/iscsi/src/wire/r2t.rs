//! RFC 7143 §11.8: Ready To Transfer.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use super::serial::DataSn;

/// A Ready To Transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct R2t {
    /// Logical unit.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Names the R2T in the Data-Out that answers it.
    pub ttt: Ttt,
    /// The next StatSN (it is not used up), ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// Its number among the R2Ts of the command, from 0.
    pub r2t_sn: DataSn,
    /// Where the data asked for begins in the data of the command, in bytes.
    pub offset: u32,
    /// How many bytes are asked for.
    pub desired: u32,
}

impl R2t {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            stamps: Stamps::decode(bhs),
            r2t_sn: DataSn(bhs.word(36)),
            offset: bhs.word(40),
            desired: bhs.word(44),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::R2t);
        bhs.0[1] = 0x80;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        self.stamps.encode(&mut bhs);
        bhs.put_word(36, self.r2t_sn.0);
        bhs.put_word(40, self.offset);
        bhs.put_word(44, self.desired);
        bhs
    }
}
