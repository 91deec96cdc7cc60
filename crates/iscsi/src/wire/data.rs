//! RFC 7143 §11.7, §11.8, §11.16: Data-Out, Data-In, the R2T that asks for data, and the SNACK that
//! asks for it again.

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use super::pdu::{
    At, Bit, Bits, EXP_STAT_SN, FINAL, HeaderField, ITT, LUN, ResidualAt, STAMPS, TTT, pdu,
};
use super::serial::{DataSn, StatSn};

pdu! {
    /// A SCSI Data-Out.
    DataOut: fixed() {
        /// F bit: the last of its sequence.
        last: bool = FINAL,
        /// Logical unit; reserved where no Target Transfer Tag is given.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Which R2T it answers; [`Ttt::NONE`] for unsolicited data.
        ttt: Ttt = TTT,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
        /// Its number in its sequence, from 0.
        data_sn: DataSn = At(36),
        /// Where its data belongs in the data of the command, in bytes.
        offset: u32 = At(40),
    }
}

pdu! {
    /// A SCSI Data-In.
    DataIn: fixed() {
        /// F bit: the last of its sequence.
        last: bool = FINAL,
        /// A bit: an acknowledgement is asked for; never at ErrorRecoveryLevel 0.
        acknowledge: bool = Bit(1, 0x40),
        /// With the S bit: the command has ended with this. StatSN is meaningful only then.
        status: Option<DataInStatus> = Ending,
        /// Logical unit; with a Target Transfer Tag only.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Target Transfer Tag; with the A bit only.
        ttt: Ttt = TTT,
        /// StatSN, ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// Its number in the data of the command, from 0.
        data_sn: DataSn = At(36),
        /// Where its data belongs in the data of the command, in bytes.
        offset: u32 = At(40),
    }
}

/// The end of a command, as the last Data-In tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataInStatus {
    /// SCSI status: one that is not an exception.
    pub status: u8,
    /// Residual.
    pub residual: Residual,
}

pdu! {
    /// A Ready To Transfer.
    R2t: fixed(FINAL => true) {
        /// Logical unit.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Names the R2T in the Data-Out that answers it.
        ttt: Ttt = TTT,
        /// The next StatSN (it is not used up), ExpCmdSN, MaxCmdSN.
        stamps: Stamps = STAMPS,
        /// Its number among the R2Ts of the command, from 0.
        r2t_sn: DataSn = At(36),
        /// Where the data asked for begins in the data of the command, in bytes.
        offset: u32 = At(40),
        /// How many bytes are asked for.
        desired: u32 = At(44),
    }
}

pdu! {
    /// A SNACK Request.
    SnackRequest: fixed(FINAL => true) {
        /// Type: 0 Data/R2T, 1 Status, 2 DataACK, 3 R-Data.
        kind: u8 = Bits(1, 0x0f, 0),
        /// Logical unit, of a DataACK.
        lun: Lun = LUN,
        /// Initiator Task Tag.
        itt: Itt = ITT,
        /// Target Transfer Tag or SNACK Tag.
        ttt: Ttt = TTT,
        /// ExpStatSN.
        exp_stat_sn: StatSn = EXP_STAT_SN,
        /// BegRun.
        first: u32 = At(40),
        /// RunLength; 0 means all from `first`.
        count: u32 = At(44),
    }
}

/// Where a Data-In has the end of its command.
#[derive(Clone, Copy)]
struct Ending;

impl HeaderField<Option<DataInStatus>> for Ending {
    fn get(self, bhs: &Bhs) -> Option<DataInStatus> {
        let status = DataInStatus {
            status: At(3).get(bhs),
            residual: RESIDUAL.get(bhs),
        };
        STATUS.get(bhs).then_some(status)
    }

    fn put(self, bhs: &mut Bhs, value: Option<DataInStatus>) {
        if let Some(ending) = value {
            STATUS.put(bhs, true);
            At(3).put(bhs, ending.status);
            RESIDUAL.put(bhs, ending.residual);
        }
    }
}

/// The S bit.
const STATUS: Bit = Bit(1, 0x01);
const RESIDUAL: ResidualAt = ResidualAt(0x04, 0x02, 44);
