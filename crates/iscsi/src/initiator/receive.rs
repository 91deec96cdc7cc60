//! From bytes to PDUs, and to their handlers (RFC 7143 §11.2, §7.8).

use scsi::medium::Lease;

use super::data_in::DataInFill;
use super::error::{LoginError, SessionEnd};
use super::login::LoginTurn;
use super::{Initiator, InitiatorEvent, InitiatorPhase};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::framer::{FrameError, Framer, PduPiece};
use crate::wire::login::LoginResponse;
use scsi::violation::Violation;

/// Where the data segment that comes next goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum InitiatorInbound {
    /// Nowhere.
    Drop,
    /// To be looked at when it is whole.
    Collect(Bhs),
    /// To a command.
    Fill(DataInFill),
}

impl<L: Lease> Initiator<L> {
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !self.is_ended() && self.events.is_empty() && !self.is_stalled() {
            match self.framer.next(&mut rest) {
                Ok(Some(PduPiece::Header(bhs))) => self.header(&bhs),
                Ok(Some(PduPiece::Data { bytes, end })) => self.data(bytes, end),
                Ok(Some(PduPiece::BadData)) => self.end(SessionEnd::Damaged("data")),
                Ok(None) => break,
                Err(FrameError::HeaderDigest) => self.end(SessionEnd::Damaged("header")),
                Err(FrameError::TooLong { .. }) => self.break_off(TOO_LONG),
            }
        }
        if self.is_ended() {
            bytes.len()
        } else {
            bytes.len() - rest.len()
        }
    }

    fn header(&mut self, bhs: &Bhs) {
        if let Err(violation) = self.fits(bhs) {
            return self.break_off(violation);
        }
        let has_data = bhs.data_len() > 0;
        if bhs.opcode() == Opcode::DataIn {
            match self.data_in(bhs) {
                Ok(fill) if has_data => self.inbound = InitiatorInbound::Fill(fill),
                Ok(fill) => self.filled(fill),
                Err(violation) => self.violated(violation),
            }
        } else if has_data {
            self.inbound = InitiatorInbound::Collect(*bhs);
        } else {
            self.whole(bhs, &[]);
        }
    }

    /// Whether such a PDU may come now, judged by its header.
    fn fits(&self, bhs: &Bhs) -> Result<(), Violation> {
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
    fn break_off(&mut self, violation: Violation) {
        self.end(match self.phase {
            InitiatorPhase::Login(..) => SessionEnd::Login(LoginError::Stranger(violation)),
            _ => SessionEnd::Violated(violation),
        });
    }

    fn data(&mut self, bytes: &[u8], end: bool) {
        match self.inbound {
            InitiatorInbound::Drop => {}
            InitiatorInbound::Collect(bhs) => {
                self.collected.extend_from_slice(bytes);
                if end {
                    self.inbound = InitiatorInbound::Drop;
                    let collected = std::mem::take(&mut self.collected);
                    self.whole(&bhs, &collected);
                    // Not the memory of a session that has ended.
                    if !self.is_ended() {
                        self.collected = collected;
                        self.collected.clear();
                    }
                }
            }
            InitiatorInbound::Fill(fill) => {
                self.fill(fill, bytes);
                if end {
                    self.inbound = InitiatorInbound::Drop;
                    self.filled(fill);
                } else {
                    self.inbound = InitiatorInbound::Fill(fill.after(bytes.len()));
                }
            }
        }
    }

    /// A PDU with its whole data segment.
    fn whole(&mut self, bhs: &Bhs, data: &[u8]) {
        let taken = match bhs.opcode() {
            Opcode::LoginResponse => return self.login_response(bhs, data),
            Opcode::ScsiResponse => self.scsi_response(bhs, data),
            Opcode::R2t => self.r2t(bhs),
            Opcode::NopIn => self.nop_in(bhs),
            Opcode::TaskResponse => self.task_response(bhs),
            Opcode::TextResponse => self.text_response(bhs, data),
            Opcode::LogoutResponse => self.logout_response(bhs),
            Opcode::AsyncMessage => self.async_message(bhs, data),
            Opcode::Reject => self.rejected(bhs, data),
            _ => Err(OUT_OF_PLACE),
        };
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
            && let Err(violation) = self.numbers.status(response.stamps)
        {
            return self.end(SessionEnd::Login(LoginError::Violated(violation)));
        }
        match login.response(&self.config, &response, data) {
            Ok(LoginTurn::Request(request)) => self.controls.push_back(request),
            Ok(LoginTurn::Over(outcome)) => {
                self.keys = outcome.keys;
                self.framer = Framer::of_target(self.keys.own_data_segment);
                self.framer
                    .set_digests(self.keys.header_digest, self.keys.data_digest);
                self.outcome = Some(outcome);
                self.phase = InitiatorPhase::Open;
                self.events.push_back(InitiatorEvent::LoggedIn);
            }
            Err(end) => self.end(end),
        }
    }
}

const TOO_LONG: Violation = Violation {
    rule: "a data segment longer than MaxRecvDataSegmentLength",
    clause: "RFC 7143 §13.12",
};

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
