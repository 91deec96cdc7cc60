//! SNACK at ErrorRecoveryLevel 0, where nothing is kept to be sent again (RFC 7143 §11.16, §7.8).

use scsi::medium::Lease;

use super::Session;
use super::sense::Condition;
use crate::datamover::Datamover;
use crate::wire::bhs::Bhs;
use crate::wire::reject::reason;
use crate::wire::snack::Snack;

/// SNACK types.
const DATA_R2T: u8 = 0;
const DATA_ACK: u8 = 2;
const R_DATA: u8 = 3;

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Rejects a SNACK; data that cannot be sent again ends its command.
    pub(super) fn snack(&mut self, bhs: &Bhs) {
        let snack = Snack::decode(bhs);
        let code = match snack.kind {
            // No A bit was ever set.
            DATA_ACK => reason::INVALID_DATA_ACK,
            kind if kind <= R_DATA => reason::SNACK,
            _ => reason::INVALID_FIELD,
        };
        self.reject(code, bhs);
        self.remark("a SNACK at ErrorRecoveryLevel 0", "RFC 7143 §11.16");
        if matches!(snack.kind, DATA_R2T | R_DATA)
            && let Some(slot) = self.tasks.find(snack.itt)
        {
            self.end_with(slot, Condition::SnackRejected);
            self.answer_if_complete(slot);
        }
    }
}
