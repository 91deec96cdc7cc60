//! Data-Out: what goes along with the command, what follows it without being asked for, and what
//! R2Ts ask for (RFC 7143 §11.7, §11.8, §4.2.5).

use scsi::medium::Lease;

use super::InitiatorTcpTransfer;
use crate::initiator::command::NO_TASK;
use crate::initiator::tasks::{InitiatorTask, InitiatorTaskSlot};
use crate::initiator::{Data, Initiator};
use crate::parameters::Operational;
use crate::wire::bhs::{Bhs, Ttt};
use crate::wire::data::R2t;
use scsi::violation::Violation;

/// A sequence of Data-Out that may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataOutSequence {
    pub(super) slot: InitiatorTaskSlot,
    /// The R2T that it answers; [`Ttt::NONE`] for the first burst.
    pub(super) ttt: Ttt,
    pub(super) offset: u32,
    pub(super) left: u32,
    pub(super) data_sn: u32,
}

/// What of a write leaves without an R2T.
pub(super) struct First {
    /// With the command.
    pub(super) immediate: u32,
    /// In Data-Out after it.
    pub(super) unsolicited: u32,
}

impl<L: Lease> InitiatorTask<L, InitiatorTcpTransfer> {
    /// As much as is allowed: an R2T costs a round trip.
    pub(super) fn first_burst(&self, keys: &Operational) -> First {
        let first = match self.data {
            Data::Out(_) => self.len.min(keys.first_burst),
            _ => 0,
        };
        let immediate = if keys.immediate_data {
            first.min(keys.peer_data_segment)
        } else {
            0
        };
        let unsolicited = if keys.initial_r2t {
            0
        } else {
            first - immediate
        };
        First {
            immediate,
            unsolicited,
        }
    }

    /// Whether this R2T may come next.
    fn grants(&mut self, pdu: &R2t, keys: &Operational) -> Result<(), Violation> {
        if !matches!(self.data, Data::Out(_)) {
            return Err(NOT_A_WRITE);
        }
        if pdu.ttt == Ttt::NONE {
            return Err(NO_TAG);
        }
        let transfer = &mut self.transfer;
        if pdu.r2t_sn.0 != transfer.next_sn {
            return Err(GAP);
        }
        if pdu.desired == 0 || pdu.desired > keys.max_burst {
            return Err(BURST);
        }
        let end = pdu.offset.checked_add(pdu.desired);
        let end = end.filter(|end| *end <= self.len).ok_or(BEYOND)?;
        if transfer.outstanding >= keys.outstanding_r2t {
            return Err(TOO_MANY);
        }
        if keys.sequence_in_order {
            if pdu.offset != transfer.next_offset {
                return Err(ORDER);
            }
        } else {
            transfer.note_span(pdu.offset, end, [OVERLAP, SCATTERED])?;
        }
        transfer.next_offset = end;
        transfer.next_sn += 1;
        transfer.outstanding += 1;
        transfer.queued += 1;
        Ok(())
    }
}

impl InitiatorTcpTransfer {
    /// Notes what is sent without being asked for.
    pub(super) fn unasked(&mut self, len: u32, keys: &Operational) {
        self.next_offset = len;
        if !keys.sequence_in_order {
            // The first part fits among none.
            let _fits = self.spans.add(0, len);
        }
    }
}

impl<L: Lease> Initiator<L> {
    pub(super) fn r2t(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let pdu = R2t::decode(bhs);
        self.numbers.window(pdu.stamps)?;
        if bhs.data_len() > 0 {
            return Err(WITH_DATA);
        }
        let keys = self.keys;
        let (slot, task) = self.tasks.sent(pdu.itt).ok_or(NO_TASK)?;
        task.grants(&pdu, &keys)?;
        self.mover.sequences.push_back(DataOutSequence {
            slot,
            ttt: pdu.ttt,
            offset: pdu.offset,
            left: pdu.desired,
            data_sn: 0,
        });
        Ok(())
    }
}

const NOT_A_WRITE: Violation = Violation {
    rule: "an R2T for a command that does not write",
    clause: "RFC 7143 §11.8",
};

const NO_TAG: Violation = Violation {
    rule: "an R2T with the reserved Target Transfer Tag",
    clause: "RFC 7143 §11.8.5",
};

const GAP: Violation = Violation {
    rule: "an R2TSN that is not the next one",
    clause: "RFC 7143 §11.8.2",
};

const BURST: Violation = Violation {
    rule: "an R2T for zero bytes, or for more than MaxBurstLength",
    clause: "RFC 7143 §11.8.4",
};

const BEYOND: Violation = Violation {
    rule: "an R2T beyond the Expected Data Transfer Length",
    clause: "RFC 7143 §11.8.4",
};

const TOO_MANY: Violation = Violation {
    rule: "more outstanding R2Ts than MaxOutstandingR2T",
    clause: "RFC 7143 §13.17",
};

const ORDER: Violation = Violation {
    rule: "an R2T that is not the next in order",
    clause: "RFC 7143 §13.19",
};

const OVERLAP: Violation = Violation {
    rule: "an R2T for bytes already sent or requested",
    clause: "RFC 7143 §11.8",
};

const SCATTERED: Violation = Violation {
    rule: "R2Ts out of order in too many pieces: set DataSequenceInOrder=Yes at the target",
    clause: "RFC 7143 §13.19",
};

const WITH_DATA: Violation = Violation {
    rule: "an R2T with a data segment",
    clause: "RFC 7143 §11.8",
};
