//! RFC 7143 §11.16: SNACK Request.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Ttt};
use super::serial::StatSn;

/// A SNACK Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snack {
    /// Type: 0 Data/R2T, 1 Status, 2 DataACK, 3 R-Data.
    pub kind: u8,
    /// Logical unit, of a DataACK.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Target Transfer Tag or SNACK Tag.
    pub ttt: Ttt,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
    /// BegRun.
    pub first: u32,
    /// RunLength; 0 means all from `first`.
    pub count: u32,
}

impl Snack {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            kind: bhs.0[1] & 0x0f,
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            exp_stat_sn: bhs.exp_stat_sn(),
            first: bhs.word(40),
            count: bhs.word(44),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::SnackRequest);
        bhs.0[1] = 0x80 | self.kind & 0x0f;
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        bhs.put_word(28, self.exp_stat_sn.0);
        bhs.put_word(40, self.first);
        bhs.put_word(44, self.count);
        bhs
    }
}
