//! Text in the full-feature phase: SendTargets, and what the target wants negotiated anew (RFC
//! 7143 §11.10, §11.11, §6.4, Appendix C).

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;
use scsi::wire::transport_id::ISCSI_NAME_MAX;

use super::error::{SessionEnd, harmless};
use super::mover::InitiatorMover;
use super::portal::ReportedPortal;
use super::tasks::kind;
use super::transmit::ControlRequest;
use super::{Initiator, InitiatorEvent, IscsiRefusal, TargetRecord};
use crate::keys::{self, LoginKey};
use crate::text::{self, KeyValue, Text};
use crate::wire::bhs::{BHS_LEN, Bhs, Itt, Ttt};
use crate::wire::control::{TextRequest, TextResponse};
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// A text that was not answered whole.
#[derive(Debug)]
pub(super) struct PendingText {
    itt: Itt,
    for_targets: bool,
    bytes: Vec<u8>,
    /// What the answer cost so far, headers included: empty parts may not go on for ever.
    cost: usize,
    deadline: Now,
}

impl PendingText {
    pub(super) const fn deadline(&self) -> Now {
        self.deadline
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Asks which targets there are: `All` of them, the one of this name, or, with an empty
    /// value, the one of this session (RFC 7143 §13.3). [`InitiatorEvent::Targets`] has the answer.
    ///
    /// # Errors
    /// Nothing is sent.
    pub fn send_targets(&mut self, now: Now, value: &str) -> Result<(), IscsiRefusal> {
        self.now = now;
        if let Some(why) = self.refusal() {
            return Err(why);
        }
        if self.text.is_some() {
            return Err(IscsiRefusal::Full);
        }
        if value.len() > ISCSI_NAME_MAX || value.contains('\0') {
            return Err(IscsiRefusal::Value);
        }
        let mut text = Text::default();
        text.put("SendTargets", value);
        let segment = text.next_segment(self.keys.peer_data_segment).0.to_vec();
        self.converse(segment, true);
        Ok(())
    }

    /// The target wants to negotiate: it is asked for what it has to say. Another exchange that is
    /// in flight gives it the same chance.
    pub(super) fn negotiate_anew(&mut self) {
        if self.text.is_none() {
            self.converse(Vec::new(), false);
        }
    }

    fn converse(&mut self, text: Vec<u8>, for_targets: bool) {
        let itt = self.tasks.tag(kind::TEXT);
        self.text = Some(PendingText {
            itt,
            for_targets,
            bytes: Vec::new(),
            cost: 0,
            deadline: self.now.saturating_add(self.config.times.command),
        });
        self.request_text(itt, Ttt::NONE, Lun([0; 8]), text);
    }

    fn request_text(&mut self, itt: Itt, ttt: Ttt, lun: Lun, text: Vec<u8>) {
        let request = TextRequest {
            immediate: true,
            last: true,
            more: false,
            lun,
            itt,
            ttt,
            cmd_sn: CmdSn(0),
            exp_stat_sn: StatSn(0),
        };
        let request = ControlRequest(request.encode(), text);
        self.controls.push_back(request);
    }

    pub(super) fn text_response(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let pdu = TextResponse::decode(bhs);
        self.numbers.status(pdu.stamps)?;
        let known = self.text.take_if(|exchange| exchange.itt == pdu.itt);
        let mut exchange = known.ok_or(NO_EXCHANGE)?;
        if pdu.last == (pdu.ttt != Ttt::NONE) || (pdu.last && pdu.more) {
            return Err(FLAGS);
        }
        exchange.cost += BHS_LEN + data.len();
        if exchange.cost > self.config.limits.targets {
            return Err(ENDLESS);
        }
        exchange.bytes.extend_from_slice(data);
        if pdu.last {
            let pairs = text::parse(&exchange.bytes).map_err(|_| UNREADABLE)?;
            return self.answered(&exchange, &pairs);
        }
        self.text = Some(exchange);
        self.request_text(pdu.itt, pdu.ttt, pdu.lun, Vec::new());
        Ok(())
    }

    /// The whole answer.
    fn answered(
        &mut self,
        exchange: &PendingText,
        pairs: &[KeyValue<'_>],
    ) -> Result<(), Violation> {
        for pair in pairs {
            let row = keys::find(pair.key);
            if let Some(row) = row.filter(|row| row.key == LoginKey::MaxRecvDataSegmentLength) {
                let length = row.number(pair.value).ok_or(INADMISSIBLE)?;
                // Over RDMA other keys tell it, at the login alone.
                if !self.keys.transport.is_rdma() {
                    self.keys.peer_data_segment = length;
                }
            }
        }
        if exchange.for_targets {
            let targets = found(pairs)?;
            self.events.push_back(InitiatorEvent::Targets(targets));
        }
        Ok(())
    }

    pub(super) fn text_rejected(&mut self, itt: Itt, reason: u8) -> Option<()> {
        let exchange = self.text.take_if(|exchange| exchange.itt == itt)?;
        if exchange.for_targets {
            self.events
                .push_back(InitiatorEvent::TargetsRefused(reason));
        }
        Some(())
    }

    pub(super) fn check_text(&mut self) {
        let late = |exchange: &PendingText| exchange.deadline <= self.now;
        if self.text.as_ref().is_some_and(late) {
            self.end(SessionEnd::Unanswered("text"));
        }
    }
}

/// Each TargetName, with the addresses up to the next one (Appendix C).
fn found(pairs: &[KeyValue<'_>]) -> Result<Vec<TargetRecord>, Violation> {
    let mut targets: Vec<TargetRecord> = Vec::new();
    for pair in pairs {
        match (pair.key, targets.last_mut()) {
            ("TargetName", _) if pair.value.is_empty() || pair.value.len() > ISCSI_NAME_MAX => {
                return Err(NO_NAME);
            }
            ("TargetName", _) => targets.push(TargetRecord {
                name: harmless(pair.value),
                portals: Vec::new(),
            }),
            ("TargetAddress", None) => return Err(NO_NAME),
            ("TargetAddress", Some(target)) => {
                target.portals.extend(ReportedPortal::parse(pair.value));
            }
            _ => {}
        }
    }
    Ok(targets)
}

const NO_EXCHANGE: Violation = Violation {
    rule: "an unexpected Text Response",
    clause: "RFC 7143 §11.11",
};

const FLAGS: Violation = Violation {
    rule: "a Text Response whose F bit, C bit and Target Transfer Tag contradict each other",
    clause: "RFC 7143 §11.11.4",
};

const ENDLESS: Violation = Violation {
    rule: "more text than the limit",
    clause: "RFC 7143 §6.2",
};

const UNREADABLE: Violation = Violation {
    rule: "malformed text",
    clause: "RFC 7143 §6.1",
};

const INADMISSIBLE: Violation = Violation {
    rule: "a MaxRecvDataSegmentLength out of bounds",
    clause: "RFC 7143 §13.12",
};

const NO_NAME: Violation = Violation {
    rule: "a SendTargets response with a TargetName missing",
    clause: "RFC 7143 Appendix C",
};
