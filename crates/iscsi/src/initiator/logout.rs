//! The orderly end (RFC 7143 §11.14, §11.15).

use scsi::medium::{Lease, Now};

use super::error::SessionEnd;
use super::mover::InitiatorMover;
use super::tasks::kind;
use super::{Initiator, IscsiRefusal};
use crate::wire::bhs::{Bhs, Itt};
use crate::wire::login::{LogoutRequest, LogoutResponse, reason, response};
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// How far a logout is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Logout {
    /// What is in flight is waited for.
    Wanted,
    /// The request was queued.
    Asked { itt: Itt, deadline: Now },
    /// It was answered, and the target closes the connection.
    Answered { deadline: Now },
}

impl Logout {
    pub(super) const fn deadline(&self) -> Option<Now> {
        match self {
            Self::Wanted => None,
            Self::Asked { deadline, .. } | Self::Answered { deadline } => Some(*deadline),
        }
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Closes the session gracefully: takes nothing more, lets end what is in flight, each
    /// within its own time, and logs out.
    ///
    /// # Errors
    /// [`IscsiRefusal::NotYet`] and [`IscsiRefusal::Over`].
    pub fn logout(&mut self, now: Now) -> Result<(), IscsiRefusal> {
        self.now = now;
        if let Some(why) = self.refusal() {
            return Err(why);
        }
        self.logout = Some(Logout::Wanted);
        self.leave_if_done();
        Ok(())
    }

    /// Sends the request once nothing else is in flight.
    pub(super) fn leave_if_done(&mut self) {
        let busy = self.tasks.len() > 0 || self.is_managing() || self.text.is_some();
        if busy || !matches!(self.logout, Some(Logout::Wanted)) {
            return;
        }
        let itt = self.tasks.tag(kind::LOGOUT);
        let request = LogoutRequest {
            immediate: true,
            reason: reason::CLOSE_SESSION,
            itt,
            cid: self.config.cid,
            cmd_sn: CmdSn(0),
            exp_stat_sn: StatSn(0),
        };
        self.request(request.encode());
        self.logout = Some(Logout::Asked {
            itt,
            deadline: self.now.saturating_add(self.config.times.logout),
        });
    }

    pub(super) fn logout_response(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let pdu = LogoutResponse::decode(bhs);
        self.numbers.status(pdu.stamps)?;
        if !self.asked_to_leave(pdu.itt) {
            return Err(NOT_ASKED);
        }
        match pdu.response {
            response::CLOSED if M::TARGET_CLOSES => {
                self.logout = Some(Logout::Answered {
                    deadline: self.now.saturating_add(CLOSE_WAIT),
                });
            }
            response::CLOSED => self.end(SessionEnd::LoggedOut),
            code => self.end(SessionEnd::LogoutRefused(code)),
        }
        Ok(())
    }

    pub(super) fn logout_rejected(&mut self, itt: Itt, reason: u8) -> Option<()> {
        self.asked_to_leave(itt)
            .then(|| self.end(SessionEnd::LogoutRejected(reason)))
    }

    fn asked_to_leave(&self, itt: Itt) -> bool {
        matches!(self.logout, Some(Logout::Asked { itt: ours, .. }) if ours == itt)
    }

    /// Whether nothing is left to be done but to close the connection.
    pub(super) const fn is_logged_out(&self) -> bool {
        matches!(self.logout, Some(Logout::Answered { .. }))
    }

    pub(super) fn check_logout(&mut self) {
        let deadline = self.logout.as_ref().and_then(Logout::deadline);
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            self.end(if self.is_logged_out() {
                SessionEnd::LoggedOut
            } else {
                SessionEnd::Unanswered("logout")
            });
        }
    }
}

/// How long the target may take to close the connection of a session that is logged out.
const CLOSE_WAIT: Now = Now::from_secs(1);

const NOT_ASKED: Violation = Violation {
    rule: "an unexpected Logout Response",
    clause: "RFC 7143 §11.15",
};
