//! Logout, asked for by either side (RFC 7143 §11.14, §11.15, §11.9.1), and other events that the
//! initiator is told of.

use std::time::Duration;

use scsi::medium::{Lease, Now};
use scsi::task::Function;
use scsi::wire::asc;
use scsi::wire::lun::Lun;
use scsi::wire::sense::{Format, Sense};

use super::task::TaskStage;
use super::{Session, SessionEvent, manage};
use crate::datamover::Datamover;
use crate::wire::bhs::{Bhs, Itt, Stamps};
use crate::wire::control;
use crate::wire::control::event;
use crate::wire::login::{LogoutRequest, LogoutResponse, reason, response};

/// Unit attentions that change what an initiator should believe of a unit, and that it would
/// otherwise learn only with its next command.
const TOLD: [u16; 4] = [
    asc::INQUIRY_DATA_CHANGED,
    asc::REPORTED_LUNS_DATA_CHANGED,
    asc::CAPACITY_CHANGED,
    asc::ASYMMETRIC_ACCESS_STATE_CHANGED,
];

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// A Logout Request; whether it was not rejected.
    pub(super) fn logout_request(&mut self, bhs: &Bhs) -> bool {
        let request = LogoutRequest::decode(bhs);
        if bhs.data_len() > 0 {
            self.violated("a logout request with data", "RFC 7143 §11.14.2");
            return false;
        }
        if self.is_itt_in_use(request.itt) {
            self.reject(control::reason::TASK_IN_PROGRESS, bhs);
            return false;
        }
        let closes = match request.reason {
            reason::CLOSE_SESSION => true,
            // §4.3: of a discovery session only the whole may be closed.
            _ if self.is_discovery() => {
                self.reject(control::reason::PROTOCOL_ERROR, bhs);
                return false;
            }
            reason::CLOSE_CONNECTION if request.cid == self.parameters.cid => true,
            reason::CLOSE_CONNECTION | reason::RECOVERY => false,
            _ => {
                self.reject(control::reason::INVALID_FIELD, bhs);
                return false;
            }
        };
        if closes {
            self.log_out(request.itt);
        } else {
            let code = match request.reason {
                reason::RECOVERY => response::NO_RECOVERY,
                _ => response::NO_CID,
            };
            self.logout_response(request.itt, code, !request.immediate);
        }
        true
    }

    /// Ends the session; first its commands, if some are with the device server. What has ended
    /// is answered still: a function that was to end it may have said that there is no such task.
    fn log_out(&mut self, itt: Itt) {
        let busy = self
            .tasks
            .iter()
            .any(|(_, task)| task.stage == TaskStage::Executing);
        // T9 from S5 LOGGED_IN, T10 from S7 LOGOUT_REQUESTED: to S6 IN_LOGOUT.
        self.is_open = false;
        let tasks = &self.tasks;
        let mover = &mut self.connection.mover;
        mover.retain(|slot| tasks.is_answered(slot));
        self.logout = Some(itt);
        if busy {
            self.events.push_back(SessionEvent::Manage {
                id: manage::LOGOUT,
                lun: Lun([0; 8]),
                function: Function::NexusReset,
            });
        } else {
            self.logged_out();
        }
    }

    /// All commands have ended. T13: S6 IN_LOGOUT to S1 FREE.
    pub(super) fn logged_out(&mut self) {
        if let Some(itt) = self.logout.take() {
            self.logout_response(itt, response::CLOSED, false);
            self.events.push_back(SessionEvent::LoggedOut);
        }
    }

    fn logout_response(&mut self, itt: Itt, code: u8, releases: bool) {
        let pdu = LogoutResponse {
            response: code,
            itt,
            stamps: Stamps::default(),
            time_to_wait: self.keys().time2wait,
            // At ErrorRecoveryLevel 0 nothing is retained.
            time_to_retain: 0,
        };
        self.queue_control(pdu.encode(), Vec::new(), releases);
    }

    /// The target goes down: asks the initiator to log out within `seconds`. Async event 1: T11 to
    /// S7 LOGOUT_REQUESTED, or T12 there. A discovery session is not told, but closed in time all
    /// the same (§7.4.3).
    pub fn request_logout(&mut self, now: Now, seconds: u16) {
        self.now = now;
        if !self.is_open {
            return;
        }
        let wait = Duration::from_secs(u64::from(seconds));
        self.connection
            .liveness
            .expect_logout(self.now.saturating_add(wait));
        if !self.is_discovery() {
            let parameters = [0, 0, seconds];
            self.queue_async(Lun([0; 8]), event::LOGOUT_REQUEST, parameters, Vec::new());
        }
    }

    pub(super) fn check_logout(&mut self) {
        if self
            .connection
            .liveness
            .logout_deadline()
            .is_some_and(|by| self.now >= by)
        {
            self.violated("no logout after a logout request", "RFC 7143 §11.9.1");
        }
    }

    /// A unit attention became pending on `lun`: async event 0, for sessions that speak RFC 7144
    /// (§5).
    pub fn attention(&mut self, lun: Lun, code: u16) {
        if !self.is_open
            || self.is_discovery()
            || self.keys().protocol_level < 2
            || !TOLD.contains(&code)
            || self.is_stalled()
        {
            return;
        }
        let sense = Sense::attention(code).encode(Format::Fixed);
        let sense = sense.as_slice();
        let mut data = (sense.len() as u16).to_be_bytes().to_vec();
        data.extend_from_slice(sense);
        self.queue_async(lun, event::SCSI, [0; 3], data);
    }
}
