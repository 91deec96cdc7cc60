//! One side's part in the negotiation of operational keys: answers what the other side proposes.

use super::{
    Admitted, IrrelevantWhen, KeyMisuse, KeyRow, KeyRule, LoginKey, NegotiatedValue, TABLE, find,
    first,
};
use crate::parameters::{DEFAULT_DATA_SEGMENT, MAX_AHS_LENGTH, Operational, UNEXPECTED_PDUS};
use crate::target::NodeLogin;
use crate::text::Text;

/// What is agreed upon so far, and what we would choose.
#[derive(Clone, Debug)]
pub struct TargetNegotiation {
    ours: Operational,
    agreed: Operational,
    discovery: bool,
    /// The keys for which the node has a value of its own, which is that of `ours`.
    node: NodeLogin,
    /// The keys that were sent, by either side, and of those what we proposed and have no answer
    /// to: bits by [`LoginKey`].
    sent: u64,
    proposed: u64,
}

impl TargetNegotiation {
    /// Begins with the defaults. `ours` are our preferences; its `own_data_segment` is what we
    /// declare.
    #[must_use]
    pub fn new(ours: Operational, discovery: bool) -> Self {
        let agreed = Operational {
            transport: ours.transport,
            ..Operational::default()
        };
        Self {
            ours,
            agreed,
            discovery,
            node: NodeLogin::default(),
            sent: 0,
            proposed: 0,
        }
    }

    /// Begins a normal session with a node, whose values count before those of `ours`.
    #[must_use]
    pub fn with(ours: Operational, node: NodeLogin) -> Self {
        Self {
            node,
            ..Self::new(ours, false)
        }
    }

    /// Goes on in the full-feature phase from what was agreed upon there.
    #[must_use]
    pub fn resume(agreed: Operational, discovery: bool) -> Self {
        Self {
            ours: agreed,
            agreed,
            discovery,
            node: NodeLogin::default(),
            sent: 0,
            proposed: 0,
        }
    }

    /// Writes our declaration of MaxRecvDataSegmentLength, which holds from then on. Over RDMA
    /// there is none (RFC 7145 §6.2).
    pub fn declare(&mut self, out: &mut Text) {
        if self.is_rdma() {
            return;
        }
        self.agreed.own_data_segment = self.ours.own_data_segment;
        if let Some(row) = find("MaxRecvDataSegmentLength") {
            out.put(row.name, &self.ours.own_data_segment.to_string());
        }
    }

    /// Takes keys that were admitted by [`super::SeenKeys::admit`], and writes the answers.
    /// FirstBurstLength is answered last, as InitialR2T, ImmediateData and MaxBurstLength bear upon
    /// it.
    ///
    /// # Errors
    /// [`KeyMisuse::Inadmissible`] for a declaration; what cannot be agreed upon is answered by
    /// `Reject` and stays as it was.
    pub fn answer(&mut self, admitted: &[Admitted<'_>], out: &mut Text) -> Result<(), KeyMisuse> {
        let last = |entry: &&Admitted<'_>| entry.0.key == LoginKey::FirstBurstLength;
        for (row, offered) in admitted.iter().filter(|entry| !last(entry)) {
            self.one(row, offered, out)?;
        }
        for (row, offered) in admitted.iter().filter(last) {
            self.one(row, offered, out)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        row: &'static KeyRow,
        offered: &str,
        out: &mut Text,
    ) -> Result<(), KeyMisuse> {
        let bit = 1 << row.key as u32;
        self.sent |= bit;
        if self.proposed & bit != 0 {
            self.proposed &= !bit;
            if let Some(value) = self.result(row, offered) {
                self.agreed.store(row.key, value);
            }
            return Ok(());
        }
        match row.rule {
            KeyRule::DeclareNumber(..) | KeyRule::DeclareLimit | KeyRule::DeclareFlag => {
                self.declared(row, offered, out)?;
            }
            KeyRule::Declare | KeyRule::Authentication | KeyRule::Request => {}
            KeyRule::Obsolete(answer) => out.put(row.name, answer),
            // open-iscsi ends a login over any answer but None and CRC32C.
            KeyRule::First(_) if row.irrelevant == IrrelevantWhen::OverRdma && self.is_rdma() => {
                out.put(row.name, "None");
            }
            _ if self.is_irrelevant(row) => out.put(row.name, "Irrelevant"),
            _ => self.select(row, offered, out),
        }
        Ok(())
    }

    /// A declaration, which is not answered, and not looked at where it is irrelevant.
    fn declared(&mut self, row: &KeyRow, offered: &str, out: &mut Text) -> Result<(), KeyMisuse> {
        if self.is_irrelevant(row) {
            return Ok(());
        }
        let value = row.declared(offered).ok_or(KeyMisuse::Inadmissible)?;
        self.agreed.note(row.key, value);
        // Only to an initiator that knows the key: open-iscsi ends a login over one that it does
        // not know, in place of answering NotUnderstood.
        match row.key {
            LoginKey::MaxOutstandingUnexpectedPdus => {
                out.put(row.name, &UNEXPECTED_PDUS.to_string());
            }
            LoginKey::MaxAhsLength => out.put(row.name, &MAX_AHS_LENGTH.to_string()),
            _ => {}
        }
        Ok(())
    }

    const fn is_rdma(&self) -> bool {
        self.agreed.transport.is_rdma()
    }

    fn is_irrelevant(&self, row: &KeyRow) -> bool {
        row.irrelevant.holds(&self.agreed, self.discovery)
    }

    fn select(&mut self, row: &'static KeyRow, offered: &str, out: &mut Text) {
        let Some(value) = self.result(row, offered) else {
            return out.put(row.name, "Reject");
        };
        self.agreed.store(row.key, value);
        out.put(row.name, &value.to_string());
    }

    /// What comes of a value that the initiator has sent; `None`: nothing that we allow.
    fn result(&self, row: &KeyRow, offered: &str) -> Option<NegotiatedValue> {
        let ours = self.preference(row.key)?;
        match (row.rule, ours) {
            (KeyRule::First(_), _) if row.key == LoginKey::TaskReporting && self.is_rdma() => {
                first(offered, REPORTING_OVER_RDMA).map(NegotiatedValue::Choice)
            }
            // Without a value of the node, the initiator's order decides on digests.
            (KeyRule::First(_), NegotiatedValue::Choice(only)) if self.node.sets(row.key) => {
                first(offered, &[only]).map(NegotiatedValue::Choice)
            }
            _ => row.select(offered, ours),
        }
    }

    /// Proposes the keys that were not sent and have defaults that the node does not allow:
    /// "default values should not be relied upon" (RFC 7143 §6.2). Returns whether there are any.
    pub fn propose(&mut self, out: &mut Text) -> bool {
        let before = self.sent;
        while let Some((row, value)) = self.unmet_beside(self.sent) {
            let bit = 1 << row.key as u32;
            self.sent |= bit;
            self.proposed |= bit;
            // Where what we say decides, an answer is optional (§6.2.2).
            if let NegotiatedValue::Flag(_) = value {
                self.agreed.store(row.key, value);
            }
            out.put(row.name, &value.to_string());
        }
        self.sent != before
    }

    /// The first key of the node whose value, negotiated or not, is one that the node does not
    /// allow.
    #[must_use]
    pub fn unmet(&self) -> Option<&'static KeyRow> {
        Some(self.unmet_beside(0)?.0)
    }

    /// The same, but for these keys, and with what we would choose.
    fn unmet_beside(&self, but: u64) -> Option<(&'static KeyRow, NegotiatedValue)> {
        if self.node == NodeLogin::default() {
            return None;
        }
        let outcome = self.outcome();
        let mut rows = TABLE.iter().filter(|row| self.node.sets(row.key));
        rows.find_map(|row| {
            let value = outcome.value(row.key)?;
            let is_met = self.is_irrelevant(row)
                || but & (1 << row.key as u32) != 0
                || self.result(row, &value.to_string()) == Some(value);
            (!is_met).then_some((row, self.preference(row.key)?))
        })
    }

    fn preference(&self, key: LoginKey) -> Option<NegotiatedValue> {
        let mut ours = self.ours;
        ours.first_burst = ours.first_burst.min(self.agreed.max_burst);
        ours.value(key)
    }

    /// What was agreed upon. FirstBurstLength must not exceed MaxBurstLength (RFC 7143 §13.14); if
    /// it does because only one of them was negotiated, or in another order, it gives way. Over
    /// RDMA two other keys stand for MaxRecvDataSegmentLength (RFC 7145 §6.2), but in a discovery
    /// session. There what the initiator declares counts as far as a message of a login goes:
    /// ib_iser declares 32768 and has a receive of 8192 bytes.
    #[must_use]
    pub fn outcome(&self) -> Operational {
        let mut outcome = self.agreed;
        outcome.first_burst = outcome.first_burst.min(outcome.max_burst);
        if self.is_rdma() && self.discovery {
            outcome.peer_data_segment = outcome.peer_data_segment.min(DEFAULT_DATA_SEGMENT);
        } else if self.is_rdma() {
            outcome.own_data_segment = outcome.iser.target_data_segment;
            outcome.peer_data_segment = outcome.iser.initiator_data_segment;
        }
        outcome
    }
}

/// Without FastAbort: the message that tells an initiator of the end of a task would have to wait
/// for RDMA Reads, as their memory may be withdrawn after it (RFC 7143 §4.2.3.4, RFC 7145 §7.3.3).
const REPORTING_OVER_RDMA: &[&str] = &["RFC3720", "ResponseFence"];
