//! What counts for one connection of a session: StatSN, what its initiator has acknowledged and
//! whether it is heard of (RFC 7143 §4.2.2.2, §4.2.3).
//!
//! A task belongs to its session; the connection that its command came by is its allegiance, by
//! which its data and its response go. There is one connection (ErrorRecoveryLevel 0, no MC/S), so
//! that allegiance is not written down with a task.

use scsi::medium::{Lease, Now};
use scsi::task::SenseBytes;

use super::Session;
use super::nop::PeerLiveness;
use super::reject::RejectRateLimit;
use super::sense::DeliveredAttentions;
use super::stall::SendStall;
use crate::datamover::{ControlPdu, Datamover, TaskSlot};
use crate::wire::bhs::{Bhs, Stamps};
use crate::wire::serial::StatSn;

/// One connection of a session.
#[derive(Debug)]
pub(crate) struct Connection<D> {
    pub(crate) mover: D,
    pub(super) stat_sn: StatSn,
    pub(super) attentions: DeliveredAttentions,
    pub(super) liveness: PeerLiveness,
    pub(super) rejects: RejectRateLimit,
    pub(super) send_stall: SendStall,
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Queues a PDU that is not of a SCSI command.
    pub(super) fn queue_control(&mut self, bhs: Bhs, data: Vec<u8>, releases: bool) {
        self.connection.mover.send_control(ControlPdu {
            bhs,
            data,
            numbered: true,
            releases,
        });
    }

    /// Queues a PDU that uses up no StatSN.
    pub(super) fn queue_unnumbered(&mut self, bhs: Bhs) {
        self.connection.mover.send_control(ControlPdu {
            bhs,
            data: Vec::new(),
            numbered: false,
            releases: false,
        });
    }

    /// This many bytes came.
    pub(crate) fn heard(&mut self, now: Now, bytes: usize) {
        self.now = now;
        if bytes > 0 {
            self.connection.liveness.heard(now);
        }
    }

    /// The numbers of a PDU that leaves and uses up no StatSN.
    pub(crate) fn stamps(&self) -> Stamps {
        Stamps {
            stat_sn: self.connection.stat_sn,
            exp_cmd_sn: self.window.exp_cmd_sn(),
            max_cmd_sn: self.window.max_cmd_sn(),
        }
    }

    /// The numbers of a response, which uses up a StatSN.
    fn next_stamps(&mut self) -> Stamps {
        let stamps = self.stamps();
        self.connection.stat_sn = stamps.stat_sn.next();
        stamps
    }

    /// The response of a command leaves. The window opens with this very PDU, so the task goes
    /// before the numbers are taken.
    pub(crate) fn response_leaves(&mut self, task: TaskSlot) -> Stamps {
        self.remove_task(task);
        self.next_stamps()
    }

    /// Another PDU leaves.
    pub(crate) fn control_leaves(&mut self, control: &ControlPdu) -> Stamps {
        if control.releases {
            self.window.release();
        }
        if control.numbered {
            self.next_stamps()
        } else {
            self.stamps()
        }
    }

    /// Sense data leaves in the response of this number.
    pub(crate) fn sense_leaves(&mut self, sense: &SenseBytes, number: StatSn) {
        self.connection.attentions.sent(sense, number);
    }
}
