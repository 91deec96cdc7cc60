//! RFC 7143 §11.7: SCSI Data-Out.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Ttt};
use super::serial::{DataSn, StatSn};

/// A SCSI Data-Out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// F bit: the last of its sequence.
    pub last: bool,
    /// Logical unit; reserved where no Target Transfer Tag is given.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Which R2T it answers; [`Ttt::NONE`] for unsolicited data.
    pub ttt: Ttt,
    /// ExpStatSN.
    pub exp_stat_sn: StatSn,
    /// Its number in its sequence, from 0.
    pub data_sn: DataSn,
    /// Where its data belongs in the data of the command, in bytes.
    pub offset: u32,
}

impl DataOut {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            last: bhs.is_final(),
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            exp_stat_sn: bhs.exp_stat_sn(),
            data_sn: DataSn(bhs.word(36)),
            offset: bhs.word(40),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::DataOut);
        bhs.put_bit(1, 0x80, self.last);
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        bhs.put_word(28, self.exp_stat_sn.0);
        bhs.put_word(36, self.data_sn.0);
        bhs.put_word(40, self.offset);
        bhs
    }
}
