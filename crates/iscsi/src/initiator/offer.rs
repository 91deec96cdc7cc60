//! The operational keys from the proposer's side: what is offered, and whether the answers go with
//! it (RFC 7143 §6.2, §13).

use super::config::{Digest, OperationalOffer};
use super::error::{LoginError, shown};
use crate::keys::{IrrelevantWhen, KeyRow, KeyRule, LoginKey, NegotiatedValue, TABLE};
use crate::parameters::{DEFAULT_DATA_SEGMENT, Operational, TaskReporting, Transport};
use crate::text::{self, Text};

/// What was offered, and what is agreed upon so far.
#[derive(Debug)]
pub(super) struct OfferNegotiation {
    offered: Operational,
    digests: (Digest, Digest),
    discovery: bool,
    agreed: Operational,
}

impl OfferNegotiation {
    /// Nothing is agreed upon; the defaults hold.
    pub(super) fn new(offer: &OperationalOffer, discovery: bool) -> Self {
        Self {
            offered: offer.keys,
            digests: (offer.header_digest, offer.data_digest),
            discovery,
            agreed: Operational::default(),
        }
    }

    /// Writes the offer. What would be irrelevant is left out; what the offer alone decides holds
    /// at once, as the target need not answer it (RFC 7143 §6.2.2).
    pub(super) fn offer(&mut self, out: &mut Text) {
        for row in in_order() {
            let Some(value) = self.proposal(row) else {
                continue;
            };
            out.put(row.name, &value);
            match (row.rule, text::boolean(&value)) {
                (KeyRule::And, Some(false)) => {
                    self.agreed.store(row.key, NegotiatedValue::Flag(false));
                }
                (KeyRule::Or, Some(true)) => {
                    self.agreed.store(row.key, NegotiatedValue::Flag(true));
                }
                _ => {}
            }
        }
        self.agreed.own_data_segment = self.offered.own_data_segment;
    }

    /// What is offered of a key.
    fn proposal(&self, row: &KeyRow) -> Option<String> {
        match row.key {
            _ if self.is_irrelevant(row) => None,
            // Nothing is to be negotiated where it is not wanted.
            LoginKey::RdmaExtensions if !self.offered.iser.rdma_extensions => None,
            LoginKey::HeaderDigest => Some(self.digests.0.offer().to_owned()),
            LoginKey::DataDigest => Some(self.digests.1.offer().to_owned()),
            LoginKey::MaxRecvDataSegmentLength => Some(self.offered.own_data_segment.to_string()),
            LoginKey::MaxOutstandingUnexpectedPdus => Some(UNEXPECTED_PDUS.to_string()),
            LoginKey::TaggedBufferForSolicitedDataOnly => Some(text::yes_no(true).to_owned()),
            LoginKey::TaskReporting => Some(reporting(self.offered.task_reporting).to_owned()),
            key => self.offered.value(key).map(|value| value.to_string()),
        }
    }

    fn is_irrelevant(&self, row: &KeyRow) -> bool {
        row.irrelevant.holds(&self.offered, self.discovery)
    }

    /// Takes the value of an operational key: an answer, a declaration, or a proposal of the
    /// target's own, which is answered in `out`.
    pub(super) fn take(
        &mut self,
        row: &'static KeyRow,
        value: &str,
        out: &mut Text,
    ) -> Result<(), LoginError> {
        match (row.rule, value) {
            _ if row.is_unknown_there(value) => {}
            (KeyRule::DeclareNumber(..) | KeyRule::DeclareLimit | KeyRule::DeclareFlag, _) => {
                let declared = row.declared(value);
                let declared = declared.ok_or_else(|| out_of_bounds(row, value))?;
                self.agreed.note(row.key, declared);
            }
            (KeyRule::Obsolete(answer), _) => {
                if !RESERVED.contains(&value) {
                    out.put(row.name, answer);
                }
            }
            // The default holds; whether that will do is told by `outcome`.
            (_, "Reject") => {}
            (_, "Irrelevant") if row.may_be_irrelevant() => {}
            (_, "Irrelevant" | "NotUnderstood") => {
                let rule = "to a key that every target must support";
                return Err(wrong(row, value, rule, "RFC 7143 §6.2"));
            }
            _ => self.negotiated(row, value, out)?,
        }
        Ok(())
    }

    fn negotiated(
        &mut self,
        row: &'static KeyRow,
        value: &str,
        out: &mut Text,
    ) -> Result<(), LoginError> {
        if let Some(offer) = self.proposal(row) {
            if matches!(row.rule, KeyRule::First(_)) && (&*offer, value) == (CRC32C, "None") {
                // As good as Reject: `outcome` says that it was required.
                return Ok(());
            }
            let agreed = accept(row, &offer, value).ok_or_else(|| out_of_bounds(row, value))?;
            self.agreed.store(row.key, agreed);
            return Ok(());
        }
        let irrelevant = self.is_irrelevant(row);
        let ours = self.offered.value(row.key);
        match ours.and_then(|ours| row.select(value, ours)) {
            _ if irrelevant => out.put(row.name, "Irrelevant"),
            None => out.put(row.name, "Reject"),
            Some(selected) => {
                out.put(row.name, &selected.to_string());
                self.agreed.store(row.key, selected);
            }
        }
        Ok(())
    }

    /// What was agreed upon. FirstBurstLength must not exceed MaxBurstLength (RFC 7143 §13.14); if
    /// it does because only one of them was negotiated, it gives way.
    pub(super) fn outcome(&self) -> Result<Operational, LoginError> {
        let required = |key, digest, agreed: bool| match digest {
            Digest::Require if !agreed => Err(LoginError::Required { key, value: CRC32C }),
            _ => Ok(()),
        };
        required("HeaderDigest", self.digests.0, self.agreed.header_digest)?;
        required("DataDigest", self.digests.1, self.agreed.data_digest)?;
        let agreed = Operational {
            first_burst: self.agreed.first_burst.min(self.agreed.max_burst),
            ..self.agreed
        };
        match self.offered.transport {
            Transport::Tcp => Ok(agreed),
            Transport::Iser { .. } => self.outcome_over_rdma(agreed),
        }
    }

    /// Two other keys stand for MaxRecvDataSegmentLength (RFC 7145 §6.2), but in a discovery
    /// session, where it counts as far as a message of a login goes.
    fn outcome_over_rdma(&self, agreed: Operational) -> Result<Operational, LoginError> {
        let lengths = if self.discovery {
            let own = agreed.own_data_segment;
            (own, agreed.peer_data_segment.min(DEFAULT_DATA_SEGMENT))
        } else if agreed.iser.rdma_extensions {
            let iser = agreed.iser;
            (iser.initiator_data_segment, iser.target_data_segment)
        } else {
            return Err(LoginError::NoRdma);
        };
        Ok(Operational {
            transport: self.offered.transport,
            own_data_segment: lengths.0,
            peer_data_segment: lengths.1,
            ..agreed
        })
    }
}

/// RDMAExtensions is told before the keys that depend on it (RFC 7145 §6.3).
fn in_order() -> impl Iterator<Item = &'static KeyRow> {
    let is_first = |row: &&KeyRow| row.key == LoginKey::RdmaExtensions;
    let others = TABLE.iter().filter(move |row| !is_first(row));
    TABLE.iter().filter(is_first).chain(others)
}

impl KeyRow {
    /// Whether a target may find it irrelevant. To a digest, None would be its answer.
    const fn may_be_irrelevant(&self) -> bool {
        let never = matches!(
            self.irrelevant,
            IrrelevantWhen::Never | IrrelevantWhen::OverRdma
        );
        !never
    }

    /// Whether a target says that it does not know the key, and may: those of RFC 3720's time know
    /// none of RFC 7143 and RFC 7145, and LIO knows but some of iSER's.
    pub(super) fn is_unknown_there(&self, value: &str) -> bool {
        let is_late = matches!(
            self.key,
            LoginKey::TaskReporting
                | LoginKey::ProtocolLevel
                | LoginKey::RdmaExtensions
                | LoginKey::MaxOutstandingUnexpectedPdus
                | LoginKey::TaggedBufferForSolicitedDataOnly
        );
        is_late && value == "NotUnderstood"
    }
}

/// An answer that may follow from the offer, as a value.
fn accept(row: &KeyRow, offer: &str, answer: &str) -> Option<NegotiatedValue> {
    let number = |admissible: fn(u32, u32) -> bool| {
        let (answer, offer) = (row.number(answer)?, row.number(offer)?);
        admissible(answer, offer).then_some(NegotiatedValue::Number(answer))
    };
    let flag = |neutral: bool| {
        let (answer, offer) = (text::boolean(answer)?, text::boolean(offer)?);
        (answer == offer || offer == neutral).then_some(NegotiatedValue::Flag(answer))
    };
    match row.rule {
        KeyRule::Minimum(..) => number(|answer, offer| answer <= offer),
        KeyRule::Maximum(..) => number(|answer, offer| answer >= offer),
        KeyRule::And => flag(true),
        KeyRule::Or => flag(false),
        KeyRule::First(known) => {
            let known = known.iter().find(|known| **known == answer)?;
            let offered = offer.split(',').any(|value| value == *known);
            offered.then_some(NegotiatedValue::Choice(known))
        }
        _ => None,
    }
}

fn out_of_bounds(row: &KeyRow, value: &str) -> LoginError {
    let rule = match row.rule {
        KeyRule::DeclareNumber(..) => "which is out of bounds",
        _ => "which is not valid for what was offered",
    };
    wrong(row, value, rule, row.clause)
}

/// A key with a value that cannot be.
pub(super) fn wrong(
    row: &KeyRow,
    value: &str,
    rule: &'static str,
    clause: &'static str,
) -> LoginError {
    LoginError::Key {
        key: row.name.to_owned(),
        value: shown(value),
        rule,
        clause,
    }
}

const fn reporting(reporting: TaskReporting) -> &'static str {
    match reporting {
        TaskReporting::Rfc3720 => "RFC3720",
        TaskReporting::ResponseFence => "ResponseFence,RFC3720",
        TaskReporting::FastAbort => "FastAbort,ResponseFence,RFC3720",
    }
}

/// Our MaxOutstandingUnexpectedPDUs (RFC 7145 §6.7), as ib_iser reckons: two pings, two other PDUs.
pub const UNEXPECTED_PDUS: u32 = 4;

const CRC32C: &str = "CRC32C";

/// Words that are answers only (RFC 7143 §6.2).
pub(super) const RESERVED: [&str; 3] = ["Reject", "Irrelevant", "NotUnderstood"];
