//! Reject, with the header of the PDU that is refused (RFC 7143 §11.17). SNACK is always refused:
//! at ErrorRecoveryLevel 0 nothing is kept to be sent again (§11.16, §7.8).

use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::Session;
use super::sense::Condition;
use crate::datamover::Datamover;
use crate::wire::bhs::{Bhs, Stamps};
use crate::wire::control::{Reject, reason};
use crate::wire::data::SnackRequest;
use crate::wire::serial::DataSn;

/// Rejects in one second after which a peer is thought to send garbage, or to fish. A conformance
/// suite that provokes one by one stays far below.
const MAX_REJECTS: u32 = 256;

/// How many PDUs were rejected within a second.
#[derive(Debug)]
pub(super) struct RejectRateLimit {
    since: Now,
    rejects: u32,
}

impl RejectRateLimit {
    pub(super) const fn new(now: Now) -> Self {
        Self {
            since: now,
            rejects: 0,
        }
    }

    /// Counts one more; `false` when it is one too many.
    fn spend(&mut self, now: Now) -> bool {
        if now.saturating_sub(self.since) >= Duration::from_secs(1) {
            *self = Self::new(now);
        }
        self.rejects += 1;
        self.rejects <= MAX_REJECTS
    }
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Queues a Reject of the PDU that just came.
    pub(super) fn reject(&mut self, reason: u8, bhs: &Bhs) {
        if !self.connection.rejects.spend(self.now) {
            self.violated("too many rejected PDUs", "RFC 7143 §11.17");
            return;
        }
        let mut header = bhs.0.to_vec();
        let ahs = self.connection.mover.ahs();
        // They can be longer than the initiator takes; the rest of the header never is.
        let fits = header.len() + ahs.len() <= self.keys().unasked_data_segment() as usize;
        if fits && bhs.ahs_len() == ahs.len() {
            header.extend_from_slice(ahs);
        }
        let pdu = Reject {
            reason,
            stamps: Stamps::default(),
            data_sn: DataSn(0),
        };
        self.queue_control(pdu.encode(), header, false);
    }
}

/// SNACK types.
const DATA_R2T: u8 = 0;
const DATA_ACK: u8 = 2;
const R_DATA: u8 = 3;

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Rejects a SNACK; data that cannot be sent again ends its command.
    pub(super) fn snack(&mut self, bhs: &Bhs) {
        let snack = SnackRequest::decode(bhs);
        let code = match snack.kind {
            // RFC 7145 §7.3.11.
            _ if self.keys().transport.is_rdma() => reason::PROTOCOL_ERROR,
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
