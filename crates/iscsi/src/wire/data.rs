//! RFC 7143 §11.7, §11.8: Data-Out, Data-In and the R2T that asks for data.

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
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

/// A SCSI Data-In.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataIn {
    /// F bit: the last of its sequence.
    pub last: bool,
    /// A bit: an acknowledgement is asked for; never at ErrorRecoveryLevel 0.
    pub acknowledge: bool,
    /// With the S bit: the command has ended with this. StatSN is meaningful only then.
    pub status: Option<DataInStatus>,
    /// Logical unit; with a Target Transfer Tag only.
    pub lun: Lun,
    /// Initiator Task Tag.
    pub itt: Itt,
    /// Target Transfer Tag; with the A bit only.
    pub ttt: Ttt,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// Its number in the data of the command, from 0.
    pub data_sn: DataSn,
    /// Where its data belongs in the data of the command, in bytes.
    pub offset: u32,
}

/// The end of a command, as the last Data-In tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataInStatus {
    /// SCSI status: one that is not an exception.
    pub status: u8,
    /// Residual.
    pub residual: Residual,
}

impl DataIn {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        let ending = DataInStatus {
            status: bhs.0[3],
            residual: Residual::from_flags(bhs.bit(1, 0x04), bhs.bit(1, 0x02), bhs.word(44)),
        };
        Self {
            last: bhs.is_final(),
            acknowledge: bhs.bit(1, 0x40),
            status: bhs.bit(1, 0x01).then_some(ending),
            lun: bhs.lun(),
            itt: bhs.itt(),
            ttt: Ttt(bhs.word(20)),
            stamps: Stamps::decode(bhs),
            data_sn: DataSn(bhs.word(36)),
            offset: bhs.word(40),
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::DataIn);
        bhs.put_bit(1, 0x80, self.last);
        bhs.put_bit(1, 0x40, self.acknowledge);
        if let Some(ending) = self.status {
            bhs.0[1] |= 0x01 | ending.residual.flag(0x04, 0x02);
            bhs.0[3] = ending.status;
            bhs.put_word(44, ending.residual.count());
        }
        bhs.put_lun(self.lun);
        bhs.put_itt(self.itt);
        bhs.put_word(20, self.ttt.0);
        self.stamps.encode(&mut bhs);
        bhs.put_word(36, self.data_sn.0);
        bhs.put_word(40, self.offset);
        bhs
    }
}

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
