//! *Execute Command*, as an application client asks a transport for it, and as it ends
//! (SAM-5 §5.4.2).

use std::time::Duration;

use super::{CommandStatus, Data, UnitRequest};
use crate::medium::Now;
use crate::residual::Residual;
use crate::task::{Attribute, SenseBytes};
use crate::wire::cdb::opcode;
use crate::wire::lun::Lun;

/// A command. CDBs of more than 16 bytes are not sent.
#[derive(Clone, Debug)]
pub struct ClientCommand<L> {
    /// The caller's name for it, told when it ends; unique among those that have not.
    pub id: u64,
    /// To which logical unit.
    pub lun: Lun,
    /// The CDB, padded with zeros.
    pub cdb: [u8; 16],
    /// Task attribute.
    pub attribute: Attribute,
    /// Its data; the whole lease is what is announced.
    pub data: Data<L>,
    /// When it has to have ended; `None`: after the time that the transport was told, as
    /// [`Self::ends_by`] says.
    pub deadline: Option<Now>,
}

impl<L> ClientCommand<L> {
    /// What a [`super::Client`] wants of a unit, under the name that it has there.
    #[must_use]
    pub fn of(request: UnitRequest<L>, lun: Lun) -> Self {
        Self {
            id: request.id.into(),
            lun,
            cdb: request.cdb,
            attribute: Attribute::Simple,
            data: request.data,
            deadline: None,
        }
    }

    /// When it has to have ended: at its own deadline, or so long after `now` as a command usually
    /// may take. A flush of a cold array, and what writes or frees many blocks without sending
    /// them, is given more: 60 s and 120 s where others have 30 s. Linux gives a flush and WRITE
    /// SAME as much (`SD_FLUSH_TIMEOUT_MULTIPLIER` and `SD_WRITE_SAME_TIMEOUT` in `drivers/scsi`),
    /// and UNMAP only what others have; but some arrays take as long for that as for WRITE SAME.
    #[must_use]
    pub fn ends_by(&self, now: Now, usual: Duration) -> Now {
        let usual = || match self.cdb[0] {
            opcode::SYNCHRONIZE_CACHE_10 | opcode::SYNCHRONIZE_CACHE_16 => usual.saturating_mul(2),
            opcode::WRITE_SAME_10 | opcode::WRITE_SAME_16 | opcode::UNMAP => {
                usual.saturating_mul(4)
            }
            _ => usual,
        };
        let deadline = self.deadline;
        deadline.unwrap_or_else(|| now.saturating_add(usual()))
    }
}

/// A command that is not taken up, and comes back. `R` are the transport's reasons.
#[derive(Clone, Debug)]
pub struct Refused<L, R> {
    /// The reason.
    pub why: R,
    /// The command, with its data.
    pub command: ClientCommand<L>,
}

/// A command that the target ended.
#[derive(Clone, Debug)]
pub struct Done<L> {
    /// The number of the command.
    pub id: u64,
    /// SCSI status.
    pub status: u8,
    /// Sense data, of CHECK CONDITION.
    pub sense: SenseBytes,
    /// What is left of its data.
    pub residual: Residual,
    /// Bytes of its data that really came or went, whatever the residual says.
    pub moved: u32,
    /// STATUS QUALIFIER or retry delay timer; 0 is none.
    pub qualifier: u16,
    /// Its lease, of which all but the residual was filled where the status is GOOD.
    pub data: Data<L>,
}

impl<L> Done<L> {
    /// What [`super::Client::answered`] wants to know.
    #[must_use]
    pub fn answer(&self) -> CommandStatus<'_> {
        // What the target says it did not use is not done, though it was sent.
        let unused = match (&self.data, self.residual) {
            (Data::Out(_), Residual::Underflow(left)) => left,
            _ => 0,
        };
        CommandStatus {
            status: self.status,
            sense: self.sense.as_slice(),
            moved: self.moved.saturating_sub(unused) as usize,
        }
    }
}

/// A command that ended without a status. `W` are the transport's own reasons.
#[derive(Clone, Debug)]
pub struct Failed<L, W> {
    /// The number of the command.
    pub id: u64,
    /// What is known of it.
    pub fate: Fate,
    /// The reason.
    pub why: Why<W>,
    /// Its lease.
    pub data: Data<L>,
}

/// What is known of a command that ended without a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was not sent, or came damaged and was refused before anything was done. It may be sent
    /// on any nexus.
    NeverSent,
    /// It was sent, and may have been carried out, or be so later, as long as the target has the
    /// nexus.
    Unknown,
    /// It was sent, and may have been carried out, in part too; but the target has ended it, and
    /// nothing of it happens from now on.
    Aborted,
}

/// Why a command ended without a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why<W> {
    /// The nexus ended.
    Ended,
    /// Its deadline passed.
    Late,
    /// Something of the transport's own.
    Own(W),
}
