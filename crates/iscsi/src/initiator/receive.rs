//! From PDUs to their handlers (RFC 7143 §11.2).

use scsi::medium::Lease;

use super::error::{LoginError, SessionEnd};
use super::login::LoginTurn;
use super::mover::InitiatorMover;
use super::{Initiator, InitiatorEvent, InitiatorPhase};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::login::LoginResponse;
use scsi::violation::Violation;

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Whether the next PDU is looked at now: not before what the last one led to is done.
    pub(super) fn takes_more(&self) -> bool {
        !self.is_ended() && self.events.is_empty() && !self.is_stalled()
    }

    /// Whether such a PDU may come now, judged by its header.
    pub(super) fn fits(&self, bhs: &Bhs) -> Result<(), Violation> {
        let opcode = bhs.opcode();
        if bhs.ahs_len() > 0 {
            return Err(ADDITIONAL_HEADER);
        }
        let in_place = match self.phase {
            InitiatorPhase::Login(..) => opcode == Opcode::LoginResponse,
            _ if self.config.is_discovery() => matches!(
                opcode,
                Opcode::TextResponse
                    | Opcode::LogoutResponse
                    | Opcode::NopIn
                    | Opcode::AsyncMessage
                    | Opcode::Reject
            ),
            _ => !opcode.is_request() && opcode != Opcode::LoginResponse,
        };
        match opcode {
            Opcode::Other(_) => Err(UNKNOWN_OPCODE),
            _ if in_place => Ok(()),
            _ => Err(OUT_OF_PLACE),
        }
    }

    /// A rule that is broken before it is known what the PDU is for.
    pub(super) fn break_off(&mut self, violation: Violation) {
        self.end(match self.phase {
            InitiatorPhase::Login(..) => SessionEnd::Login(LoginError::Stranger(violation)),
            _ => SessionEnd::Violated(violation),
        });
    }

    /// A PDU that does not move data, with its whole data segment.
    pub(super) fn control(&mut self, bhs: &Bhs, data: &[u8]) {
        let taken = match bhs.opcode() {
            Opcode::LoginResponse => return self.login_response(bhs, data),
            Opcode::ScsiResponse => self.scsi_response(bhs, data),
            Opcode::NopIn => self.nop_in(bhs),
            Opcode::TaskResponse => self.task_response(bhs),
            Opcode::TextResponse => self.text_response(bhs, data),
            Opcode::LogoutResponse => self.logout_response(bhs),
            Opcode::AsyncMessage => self.async_message(bhs, data),
            Opcode::Reject => self.rejected(bhs, data),
            _ => Err(OUT_OF_PLACE),
        };
        self.took(taken);
    }

    /// A PDU was taken, or breaks a rule.
    pub(super) fn took(&mut self, taken: Result<(), Violation>) {
        match taken {
            Ok(()) => self.retry_stalled(),
            Err(violation) => self.violated(violation),
        }
    }

    /// What may have become possible.
    pub(super) fn retry_stalled(&mut self) {
        self.leave_if_done();
    }

    fn login_response(&mut self, bhs: &Bhs, data: &[u8]) {
        let InitiatorPhase::Login(login, _) = &mut self.phase else {
            return;
        };
        let response = LoginResponse::decode(bhs);
        // StatSN is valid only where the login goes on (RFC 7143 §11.13.4).
        if response.status == 0
            && let Err(violation) = self.numbers.login(response.stamps, M::MAY_COUNT_LOGINS)
        {
            return self.end(SessionEnd::Login(LoginError::Violated(violation)));
        }
        match login.response(&self.config, &response, data) {
            Ok(LoginTurn::Request(request)) => self.controls.push_back(request),
            Ok(LoginTurn::Over(outcome)) => {
                self.keys = outcome.keys;
                self.mover.notice_keys(&self.keys);
                self.outcome = Some(outcome);
                self.phase = InitiatorPhase::Open;
                self.events.push_back(InitiatorEvent::LoggedIn);
            }
            Err(end) => self.end(end),
        }
    }
}

const ADDITIONAL_HEADER: Violation = Violation {
    rule: "an additional header segment from a target",
    clause: "RFC 7143 §11.2.1.5",
};

const UNKNOWN_OPCODE: Violation = Violation {
    rule: "an unassigned opcode",
    clause: "RFC 7143 §11.2.1.2",
};

const OUT_OF_PLACE: Violation = Violation {
    rule: "a PDU that a target must not send in this phase",
    clause: "RFC 7143 §4.3",
};
