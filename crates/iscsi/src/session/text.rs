//! Text requests: SendTargets, and the few keys that may be negotiated in the full-feature phase
//! (RFC 7143 §11.10, §11.11, §6.4).

use scsi::medium::Lease;
use scsi::wire::lun::Lun;

use super::Session;
use crate::datamover::Datamover;
use crate::discovery;
use crate::keys::negotiation::TargetNegotiation;
use crate::keys::{KeyMisuse, KeyPhase, KeySide, LoginKey, SeenKeys};
use crate::text::{self, Assembly, Text};
use crate::wire::bhs::{Bhs, Itt, Stamps, Ttt};
use crate::wire::control::{TextRequest, TextResponse, reason};
use scsi::violation::Violation;

/// A sequence of text requests and responses that has not ended.
#[derive(Debug)]
pub(super) struct TextNegotiation {
    pub(super) itt: Itt,
    /// What the next request has to carry.
    ttt: Ttt,
    assembly: Assembly,
    seen: SeenKeys,
    negotiation: TargetNegotiation,
    reply: Text,
}

/// Why an exchange fails; nothing that it brought takes effect.
struct NegotiationError(Violation);

impl From<KeyMisuse> for NegotiationError {
    fn from(misuse: KeyMisuse) -> Self {
        Self(misuse.into())
    }
}

impl From<text::MalformedText> for NegotiationError {
    fn from(_: text::MalformedText) -> Self {
        Self(Violation {
            rule: "malformed text",
            clause: "RFC 7143 §6.1",
        })
    }
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// A Text Request, its text in `collected`; whether it was not rejected.
    pub(super) fn text_request(&mut self, bhs: &Bhs) -> bool {
        let request = TextRequest::decode(bhs);
        let Some(mut exchange) = self.exchange(&request, bhs) else {
            return false;
        };
        match self.converse(&mut exchange, &request) {
            Ok(()) => self.reply(exchange, &request),
            Err(NegotiationError(why)) => {
                self.reject(reason::PROTOCOL_ERROR, bhs);
                self.remark(why.rule, why.clause);
                return false;
            }
        }
        true
    }

    /// The exchange that a request goes on with, or a new one, which takes the place of any other:
    /// an initiator has only one at a time.
    fn exchange(&mut self, request: &TextRequest, bhs: &Bhs) -> Option<TextNegotiation> {
        let current = self.text.take();
        if request.ttt != Ttt::NONE {
            let goes_on =
                |known: &TextNegotiation| known.itt == request.itt && known.ttt == request.ttt;
            let current = current.filter(goes_on);
            if current.is_none() {
                self.reject(reason::INVALID_FIELD, bhs);
                self.remark(
                    "a Text Request for an unknown exchange",
                    "RFC 7143 §11.10.4",
                );
            }
            return current;
        }
        if self.is_itt_in_use(request.itt) {
            self.reject(reason::TASK_IN_PROGRESS, bhs);
            return None;
        }
        self.next_ttt = self.next_ttt.wrapping_add(1);
        Some(TextNegotiation {
            itt: request.itt,
            ttt: Ttt(u32::from(self.next_ttt)),
            assembly: Assembly::default(),
            seen: SeenKeys::default(),
            negotiation: TargetNegotiation::resume(*self.keys(), self.is_discovery()),
            reply: Text::default(),
        })
    }

    /// Takes the text of one request in.
    fn converse(
        &self,
        exchange: &mut TextNegotiation,
        request: &TextRequest,
    ) -> Result<(), NegotiationError> {
        if request.more && request.last {
            return Err(NegotiationError(Violation {
                rule: "a text request with both C and F",
                clause: "RFC 7143 §11.10.2",
            }));
        }
        if !exchange.reply.is_empty() {
            // The rest of a long answer is asked for by empty requests.
            return if self.collected.is_empty() {
                Ok(())
            } else {
                Err(NegotiationError(Violation {
                    rule: "text in the middle of a response",
                    clause: "RFC 7143 §11.10.4",
                }))
            };
        }
        exchange.assembly.push(&self.collected)?;
        if request.more {
            return Ok(());
        }
        let bytes = exchange.assembly.take();
        self.answer(exchange, &text::parse(&bytes)?)
    }

    fn answer(
        &self,
        exchange: &mut TextNegotiation,
        pairs: &[text::KeyValue<'_>],
    ) -> Result<(), NegotiationError> {
        let reply = &mut exchange.reply;
        let admitted =
            exchange
                .seen
                .admit(pairs, KeyPhase::FullFeature, KeySide::Initiator, reply)?;
        exchange.negotiation.answer(&admitted, reply)?;
        for (row, value) in &admitted {
            if row.key == LoginKey::SendTargets {
                discovery::send_targets(value, &self.parameters, &self.config, reply)?;
            }
        }
        Ok(())
    }

    /// Sends as much of the answer as one response holds, and ends the exchange or waits for more.
    fn reply(&mut self, mut exchange: TextNegotiation, request: &TextRequest) {
        let limit = self.keys().peer_data_segment;
        let (segment, more) = exchange.reply.next_segment(limit);
        let data = segment.to_vec();
        let last = request.last && !more;
        let pdu = TextResponse {
            last,
            more,
            lun: Lun([0; 8]),
            itt: request.itt,
            ttt: if last { Ttt::NONE } else { exchange.ttt },
            stamps: Stamps::default(),
        };
        self.queue_control(pdu.encode(), data, !request.immediate);
        if last {
            self.parameters.keys = exchange.negotiation.outcome();
            self.connection.mover.notice_keys(&self.parameters.keys);
        } else {
            self.text = Some(exchange);
        }
    }

    /// Ends an exchange by ABORT TASK; whether there was one.
    pub(super) fn abort_text(&mut self, itt: Itt) -> bool {
        self.text.take_if(|exchange| exchange.itt == itt).is_some()
    }
}
