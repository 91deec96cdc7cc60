//! PDUs that an initiator does not expect: how many may be outstanding (RFC 7145 §6.7, §8.1.2).
//!
//! Where the initiator has declared nothing there is no limit by the standard, but ib_iser has
//! receives for four, and libiscsi for as many as there are commands: one ping and one other PDU is
//! what all take.

use std::collections::VecDeque;

use crate::datamover::ControlPdu;
use crate::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use crate::wire::serial::StatSn;

/// What waits to be sent and what was not acknowledged.
#[derive(Debug)]
pub(super) struct UnexpectedPdus {
    /// How many may be outstanding; `None`: any number.
    limit: Option<u32>,
    waiting: VecDeque<Box<ControlPdu>>,
    outstanding: Vec<OutstandingPdu>,
}

/// One that was sent: it is so until its StatSN is acknowledged, or the ping answered.
#[derive(Debug)]
struct OutstandingPdu {
    number: StatSn,
    ping: Option<Ttt>,
}

/// One ping and one other.
const UNDECLARED: u32 = 2;

/// PDUs that are remembered until they are acknowledged, whatever an initiator declares.
const MAX_OUTSTANDING: u32 = 64;

/// PDUs that wait for an initiator that acknowledges nothing; more are not generated (RFC 7145
/// §8.1.2).
const MAX_WAITING: usize = 16;

impl UnexpectedPdus {
    /// With MaxOutstandingUnexpectedPDUs as the initiator has `declared` it.
    pub(super) const fn new(declared: Option<u32>) -> Self {
        let limit = match declared {
            Some(0) => None,
            Some(limit) if limit < MAX_OUTSTANDING => Some(limit),
            Some(_) => Some(MAX_OUTSTANDING),
            None => Some(UNDECLARED),
        };
        Self {
            limit,
            waiting: VecDeque::new(),
            outstanding: Vec::new(),
        }
    }

    /// Has a PDU wait.
    pub(super) fn push(&mut self, pdu: Box<ControlPdu>) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(pdu);
        }
    }

    /// Whether one of those that wait may be sent before anything is acknowledged.
    pub(super) fn has_next(&self) -> bool {
        self.waiting.iter().any(|pdu| self.may_leave(pdu))
    }

    /// The oldest that may be sent now.
    pub(super) fn pop(&mut self) -> Option<Box<ControlPdu>> {
        let at = (0..self.waiting.len()).find(|at| self.may_leave(&self.waiting[*at]))?;
        self.waiting.remove(at)
    }

    /// Whether a PDU may be sent now. The last place is that of a ping, which makes the initiator
    /// tell what it has got.
    pub(super) fn may_leave(&self, pdu: &ControlPdu) -> bool {
        if !is_unexpected(pdu) {
            return true;
        }
        let used = self.outstanding.len() as u32;
        let pings = self.outstanding.iter().filter(|pdu| pdu.ping.is_some());
        let others = used - pings.count() as u32;
        let is_ping = ping(&pdu.bhs).is_some();
        self.limit
            .is_none_or(|limit| used < limit && (is_ping || others + 1 < limit))
    }

    /// A PDU was sent with this number.
    pub(super) fn sent(&mut self, pdu: &ControlPdu, number: StatSn) {
        if self.limit.is_some() && is_unexpected(pdu) {
            let ping = ping(&pdu.bhs);
            self.outstanding.push(OutstandingPdu { number, ping });
        }
    }

    /// A PDU has come, which may retire some.
    pub(super) fn heard(&mut self, bhs: &Bhs) {
        let expected = bhs.exp_stat_sn();
        let answered = answered(bhs);
        let is_retired = |pdu: &OutstandingPdu| {
            pdu.number.is_before(expected) || answered.is_some() && pdu.ping == answered
        };
        self.outstanding.retain(|pdu| !is_retired(pdu));
    }
}

/// Whether an initiator has no receive for it but those that it keeps for such PDUs.
pub(super) fn is_unexpected(pdu: &ControlPdu) -> bool {
    match pdu.bhs.opcode() {
        Opcode::AsyncMessage => true,
        Opcode::Reject => !is_in_place_of_a_response(pdu),
        Opcode::NopIn => pdu.bhs.itt() == Itt::NONE,
        _ => false,
    }
}

/// Whether a Reject takes the place of a response: then the initiator has a receive for it (RFC
/// 7145 §8.1.1.1).
fn is_in_place_of_a_response(reject: &ControlPdu) -> bool {
    let rejected = reject.data.first_chunk().map(|header| Bhs(*header));
    rejected.is_some_and(|rejected| match rejected.opcode() {
        Opcode::ScsiCommand | Opcode::TaskRequest | Opcode::TextRequest | Opcode::LogoutRequest => {
            true
        }
        Opcode::NopOut => rejected.itt() != Itt::NONE,
        _ => false,
    })
}

/// The Target Transfer Tag of a NOP-In that asks for an answer.
fn ping(bhs: &Bhs) -> Option<Ttt> {
    let ttt = Ttt(bhs.word(20));
    (bhs.opcode() == Opcode::NopIn && ttt != Ttt::NONE).then_some(ttt)
}

/// The Target Transfer Tag of the NOP-In that a NOP-Out answers.
fn answered(bhs: &Bhs) -> Option<Ttt> {
    let ttt = Ttt(bhs.word(20));
    (bhs.opcode() == Opcode::NopOut && ttt != Ttt::NONE).then_some(ttt)
}
