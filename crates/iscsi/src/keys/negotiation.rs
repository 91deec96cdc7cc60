//! One side's part in the negotiation of operational keys: answers what the other side proposes.

use super::{
    Admitted, IrrelevantWhen, KeyMisuse, KeyRow, KeyRule, LoginKey, NegotiatedValue, find,
};
use crate::parameters::Operational;
use crate::text::Text;

/// What is agreed upon so far, and what we would choose.
#[derive(Clone, Debug)]
pub struct TargetNegotiation {
    ours: Operational,
    agreed: Operational,
    discovery: bool,
}

impl TargetNegotiation {
    /// Begins with the defaults. `ours` are our preferences; its `own_data_segment` is what we
    /// declare.
    #[must_use]
    pub fn new(ours: Operational, discovery: bool) -> Self {
        let agreed = Operational::default();
        Self {
            ours,
            agreed,
            discovery,
        }
    }

    /// Goes on in the full-feature phase from what was agreed upon there.
    #[must_use]
    pub const fn resume(agreed: Operational, discovery: bool) -> Self {
        Self {
            ours: agreed,
            agreed,
            discovery,
        }
    }

    /// Writes our declaration of MaxRecvDataSegmentLength, which holds from then on.
    pub fn declare(&mut self, out: &mut Text) {
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
        match row.rule {
            KeyRule::DeclareNumber(..) => {
                self.agreed.peer_data_segment =
                    row.number(offered).ok_or(KeyMisuse::Inadmissible)?;
            }
            KeyRule::Declare | KeyRule::Authentication | KeyRule::Request => {}
            KeyRule::Obsolete(answer) => out.put(row.name, answer),
            _ if self.is_irrelevant(row) => out.put(row.name, "Irrelevant"),
            _ => self.select(row, offered, out),
        }
        Ok(())
    }

    fn is_irrelevant(&self, row: &KeyRow) -> bool {
        let solicited = self.agreed.initial_r2t && !self.agreed.immediate_data;
        match row.irrelevant {
            IrrelevantWhen::Never => false,
            IrrelevantWhen::Discovery => self.discovery,
            IrrelevantWhen::DiscoveryOrSolicited => self.discovery || solicited,
        }
    }

    fn select(&mut self, row: &'static KeyRow, offered: &str, out: &mut Text) {
        let selected = self
            .preference(row.key)
            .and_then(|ours| row.select(offered, ours));
        let Some(value) = selected else {
            return out.put(row.name, "Reject");
        };
        self.agreed.store(row.key, value);
        out.put(row.name, &value.to_string());
    }

    fn preference(&self, key: LoginKey) -> Option<NegotiatedValue> {
        let mut ours = self.ours;
        ours.first_burst = ours.first_burst.min(self.agreed.max_burst);
        ours.value(key)
    }

    /// What was agreed upon. FirstBurstLength must not exceed MaxBurstLength (RFC 7143 §13.14); if
    /// it does because only one of them was negotiated, or in another order, it gives way.
    #[must_use]
    pub fn outcome(&self) -> Operational {
        let first_burst = self.agreed.first_burst.min(self.agreed.max_burst);
        Operational {
            first_burst,
            ..self.agreed
        }
    }
}
