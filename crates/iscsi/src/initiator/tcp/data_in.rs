//! Data-In (RFC 7143 §11.7): checked against what was asked for and agreed upon, then copied to
//! where it belongs. The A bit is passed over, as it means nothing at ErrorRecoveryLevel 0.

use scsi::medium::Lease;
use scsi::task::SenseBytes;
use scsi::wire::sense::Status;

use super::InitiatorTcpTransfer;
use crate::initiator::command::{InitiatorEnding, NO_TASK};
use crate::initiator::tasks::{InitiatorTask, InitiatorTaskSlot};
use crate::initiator::{Data, Initiator};
use crate::parameters::Operational;
use crate::wire::bhs::Bhs;
use crate::wire::data::{DataIn, DataInStatus};
use scsi::violation::Violation;

/// Data of a command that is coming in.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataInFill {
    slot: InitiatorTaskSlot,
    /// Where the next byte belongs.
    offset: u32,
    /// The command ends with this PDU.
    ending: Option<DataInStatus>,
}

impl DataInFill {
    /// What is left after this many bytes. The header was checked, so they do not run over.
    pub(super) const fn after(self, len: usize) -> Self {
        Self {
            offset: self.offset.saturating_add(len as u32),
            ..self
        }
    }
}

impl<L: Lease> Initiator<L> {
    /// The header of a Data-In.
    pub(super) fn data_in(&mut self, bhs: &Bhs) -> Result<DataInFill, Violation> {
        let pdu = DataIn::decode(bhs);
        match pdu.status {
            Some(_) => self.numbers.status(pdu.stamps)?,
            None => self.numbers.window(pdu.stamps)?,
        }
        let keys = self.keys;
        let (slot, task) = self.tasks.sent(pdu.itt).ok_or(NO_TASK)?;
        task.expects(&pdu, bhs.data_len(), &keys)?;
        Ok(DataInFill {
            slot,
            offset: pdu.offset,
            ending: pdu.status,
        })
    }

    /// Bytes of a data segment.
    pub(super) fn fill(&mut self, fill: DataInFill, bytes: &[u8]) {
        if let Some(task) = self.tasks.at(fill.slot)
            && let Data::In(into) = &mut task.data
        {
            into.copy_in(fill.offset as usize, bytes);
            task.moved += bytes.len() as u32;
        }
    }

    /// The whole Data-In was received.
    pub(super) fn filled(&mut self, fill: DataInFill) {
        let Some(ending) = fill.ending else {
            return;
        };
        let ending = InitiatorEnding {
            status: ending.status,
            residual: ending.residual,
            sense: SenseBytes::EMPTY,
            qualifier: 0,
        };
        match self.finish(fill.slot, ending) {
            Ok(()) => self.retry_stalled(),
            Err(violation) => self.violated(violation),
        }
    }
}

impl<L: Lease> InitiatorTask<L, InitiatorTcpTransfer> {
    /// Whether this Data-In may come next.
    fn expects(&mut self, pdu: &DataIn, len: u32, keys: &Operational) -> Result<(), Violation> {
        if !matches!(self.data, Data::In(_)) {
            return Err(NOT_A_READ);
        }
        let transfer = &mut self.transfer;
        if pdu.data_sn.0 != transfer.next_sn {
            return Err(GAP);
        }
        transfer.next_sn = transfer.next_sn.wrapping_add(1);
        let end = pdu.offset.checked_add(len).filter(|end| *end <= self.len);
        let end = end.ok_or(BEYOND)?;
        // That no sequence is longer than MaxBurstLength is not asked for: tgtd sends all of a read
        // as one, and it does no harm.
        let ordered = keys.pdu_in_order && (keys.sequence_in_order || transfer.in_sequence);
        if ordered && pdu.offset != transfer.next_offset {
            return Err(ORDER);
        }
        if !(keys.pdu_in_order && keys.sequence_in_order) {
            transfer.note_span(pdu.offset, end, [OVERLAP, SCATTERED])?;
        }
        transfer.next_offset = end;
        transfer.in_sequence = !pdu.last;
        match pdu.status {
            Some(_) if !pdu.last => Err(UNFINISHED),
            Some(ending) if ending.status == Status::CheckCondition as u8 => Err(NO_SENSE),
            _ => Ok(()),
        }
    }
}

const NOT_A_READ: Violation = Violation {
    rule: "Data-In for a command that does not read",
    clause: "RFC 7143 §11.7",
};

const GAP: Violation = Violation {
    rule: "a DataSN that is not the next one",
    clause: "RFC 7143 §11.7.5",
};

const BEYOND: Violation = Violation {
    rule: "Data-In beyond the Expected Data Transfer Length",
    clause: "RFC 7143 §11.7.6",
};

const ORDER: Violation = Violation {
    rule: "Data-In that is not the next in order",
    clause: "RFC 7143 §13.18",
};

const OVERLAP: Violation = Violation {
    rule: "Data-In for bytes already received",
    clause: "RFC 7143 §11.7.6",
};

const SCATTERED: Violation = Violation {
    rule: "Data-In out of order in too many pieces: set DataPDUInOrder=Yes at the target",
    clause: "RFC 7143 §13.18",
};

const UNFINISHED: Violation = Violation {
    rule: "a status in a Data-In that is not the last of its sequence",
    clause: "RFC 7143 §11.7.3",
};

const NO_SENSE: Violation = Violation {
    rule: "CHECK CONDITION without sense data, in a Data-In",
    clause: "RFC 7143 §11.7.3",
};
