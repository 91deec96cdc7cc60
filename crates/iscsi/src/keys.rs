//! The table of text keys: RFC 7143 §12 and §13, RFC 7144 §7.1, RFC 7145 §6. One row a key, the
//! same for both sides; the side that answers brings its own preferences, as [`Operational`]
//! values.
//!
//! Adding a key: a variant of [`LoginKey`], a row of [`TABLE`] (`keys/table.rs`), and, if it is
//! negotiated, a field of [`Operational`] with its arm in `Operational::field` (`keys/value.rs`).

use crate::parameters::Operational;
use crate::text::{self, KeyValue, MAX_VALUE, Text};
use scsi::violation::Violation;

pub mod negotiation;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use table::TABLE;
pub use value::NegotiatedValue;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub enum LoginKey {
    AuthMethod,
    ChapA,
    ChapI,
    ChapC,
    ChapN,
    ChapR,
    HeaderDigest,
    DataDigest,
    MaxConnections,
    SendTargets,
    TargetName,
    InitiatorName,
    TargetAlias,
    InitiatorAlias,
    TargetAddress,
    TargetPortalGroupTag,
    InitialR2T,
    ImmediateData,
    MaxRecvDataSegmentLength,
    MaxBurstLength,
    FirstBurstLength,
    DefaultTime2Wait,
    DefaultTime2Retain,
    MaxOutstandingR2T,
    DataPduInOrder,
    DataSequenceInOrder,
    ErrorRecoveryLevel,
    SessionType,
    TaskReporting,
    ProtocolLevel,
    OfMarker,
    IfMarker,
    OfMarkInt,
    IfMarkInt,
    NodeArchitecture,
    RdmaExtensions,
    TargetRecvDataSegmentLength,
    InitiatorRecvDataSegmentLength,
    MaxOutstandingUnexpectedPdus,
    MaxAhsLength,
    TaggedBufferForSolicitedDataOnly,
    IserHelloRequired,
}

/// What the standards say of a key.
#[derive(Debug)]
pub struct KeyRow {
    /// The key that is negotiated.
    pub key: LoginKey,
    /// As it is written.
    pub name: &'static str,
    /// Use: when.
    pub usage: KeyUse,
    /// In which stage of the login.
    pub stage: KeyStage,
    /// By whom.
    pub senders: Senders,
    /// How a value comes about.
    pub rule: KeyRule,
    /// When the answer is `Irrelevant`.
    pub irrelevant: IrrelevantWhen,
    /// The value without negotiation, as it would be written; `None` where there is none.
    pub default: Option<&'static str>,
    /// Where it is defined.
    pub clause: &'static str,
}

/// RFC 7143 §13: *Use*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// LO: in the login of a session's first connection.
    LeadingOnly,
    /// IO: in every login.
    InitializeOnly,
    /// ALL: in logins and in the full-feature phase.
    All,
    /// FFPO: in the full-feature phase.
    FullFeatureOnly,
}

/// In which stage of a login a key may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStage {
    /// SecurityNegotiation.
    Security,
    /// LoginOperationalNegotiation.
    Operational,
    /// *Any-Stage*.
    Any,
}

/// The side that may send a key that is not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// Initiators.
    Initiator,
    /// Targets.
    Target,
    /// Both.
    Both,
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySide {
    /// The initiator.
    Initiator,
    /// The target.
    Target,
}

/// How the value of a key comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// One side declares a number of bytes for itself.
    DeclareNumber(u32, u32),
    /// One side declares how much it takes: 0 for any, or 2 and more.
    DeclareLimit,
    /// One side declares Yes or No.
    DeclareFlag,
    /// One side tells the other, which does not answer.
    Declare,
    /// The smaller of two numbers, both in these bounds.
    Minimum(u32, u32),
    /// The greater of two numbers, both in these bounds.
    Maximum(u32, u32),
    /// Yes if both say Yes.
    And,
    /// Yes if one says Yes.
    Or,
    /// The first in the proposer's list that the other side supports: these.
    First(&'static [&'static str]),
    /// Part of an authentication exchange (RFC 7143 §12).
    Authentication,
    /// Asks for something that is not a negotiation.
    Request,
    /// Obsolete; the answer is always this one.
    Obsolete(&'static str),
}

/// *Irrelevant when*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrrelevantWhen {
    /// Never.
    Never,
    /// SessionType=Discovery.
    Discovery,
    /// SessionType=Discovery, or InitialR2T=Yes with ImmediateData=No.
    DiscoveryOrSolicited,
    /// The connection is one of RDMA (RFC 7145 §6.1). There is no byte stream there that could have
    /// digests.
    OverRdma,
    /// RDMAExtensions=Yes (RFC 7145 §6.2), which over RDMA is all but discovery.
    WithRdma,
    /// RDMAExtensions=No. That is known from the first byte: a session over RDMA other than one of
    /// discovery has it at Yes, or does not come about.
    WithoutRdma,
}

impl IrrelevantWhen {
    /// Whether it is so, with these keys.
    #[must_use]
    pub const fn holds(self, keys: &Operational, discovery: bool) -> bool {
        let rdma = keys.transport.is_rdma();
        match self {
            Self::Never => false,
            Self::Discovery => discovery,
            Self::DiscoveryOrSolicited => discovery || keys.initial_r2t && !keys.immediate_data,
            Self::OverRdma => rdma,
            Self::WithRdma => rdma && !discovery,
            Self::WithoutRdma => discovery || !rdma,
        }
    }
}

/// Where a connection stands when a key comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    /// Login, SecurityNegotiation.
    Security,
    /// Login, LoginOperationalNegotiation.
    Operational,
    /// Full-feature phase.
    FullFeature,
}

impl KeyRow {
    /// Whether the key may be sent there.
    #[must_use]
    pub const fn allowed(&self, phase: KeyPhase) -> bool {
        let in_login = !matches!(self.usage, KeyUse::FullFeatureOnly);
        match phase {
            KeyPhase::Security => in_login && !matches!(self.stage, KeyStage::Operational),
            KeyPhase::Operational => in_login && !matches!(self.stage, KeyStage::Security),
            KeyPhase::FullFeature => matches!(self.usage, KeyUse::All | KeyUse::FullFeatureOnly),
        }
    }

    /// Whether that side may send the key of its own accord.
    #[must_use]
    pub const fn sent_by(&self, side: KeySide) -> bool {
        match self.senders {
            Senders::Both => true,
            Senders::Initiator => matches!(side, KeySide::Initiator),
            Senders::Target => matches!(side, KeySide::Target),
        }
    }

    /// The value of a key that is negotiated: what was offered, and what we would choose. `None`
    /// is `Reject`: it was not admissible, or nothing in the list is supported.
    #[must_use]
    pub fn select(&self, offered: &str, ours: NegotiatedValue) -> Option<NegotiatedValue> {
        match (self.rule, ours) {
            (KeyRule::Minimum(..), NegotiatedValue::Number(ours)) => {
                Some(NegotiatedValue::Number(self.number(offered)?.min(ours)))
            }
            (KeyRule::Maximum(..), NegotiatedValue::Number(ours)) => {
                Some(NegotiatedValue::Number(self.number(offered)?.max(ours)))
            }
            (KeyRule::And, NegotiatedValue::Flag(ours)) => {
                Some(NegotiatedValue::Flag(text::boolean(offered)? & ours))
            }
            (KeyRule::Or, NegotiatedValue::Flag(ours)) => {
                Some(NegotiatedValue::Flag(text::boolean(offered)? | ours))
            }
            (KeyRule::First(supported), _) => {
                first(offered, supported).map(NegotiatedValue::Choice)
            }
            _ => None,
        }
    }

    /// A declaration, if it is admissible.
    #[must_use]
    pub fn declared(&self, value: &str) -> Option<NegotiatedValue> {
        match self.rule {
            KeyRule::DeclareFlag => text::boolean(value).map(NegotiatedValue::Flag),
            _ => self.number(value).map(NegotiatedValue::Number),
        }
    }

    /// A number within the bounds of the key.
    #[must_use]
    pub fn number(&self, value: &str) -> Option<u32> {
        let number = u32::try_from(text::number(value)?).ok()?;
        let is_within = match self.rule {
            KeyRule::Minimum(low, high)
            | KeyRule::Maximum(low, high)
            | KeyRule::DeclareNumber(low, high) => (low..=high).contains(&number),
            KeyRule::DeclareLimit => number != 1,
            _ => false,
        };
        is_within.then_some(number)
    }
}

/// The first value of a list that is among `supported`.
#[must_use]
pub fn first(list: &str, supported: &[&'static str]) -> Option<&'static str> {
    list.split(',')
        .find_map(|offered| supported.iter().find(|known| **known == offered).copied())
}

/// The row of a key; `None` for keys that no standard known here defines.
#[must_use]
pub fn find(name: &str) -> Option<&'static KeyRow> {
    TABLE.iter().find(|row| row.name == name)
}

/// How keys are misused: each ends a login, and a negotiation in the full-feature phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMisuse {
    /// Sent twice in one login or one negotiation.
    Repeated,
    /// Not allowed in this stage or phase.
    Misplaced,
    /// Only the other side may send it.
    WrongSender,
    /// `Reject`, `Irrelevant` or `NotUnderstood` without a proposal.
    Reserved,
    /// A declared value that is not admissible.
    Inadmissible,
}

impl From<KeyMisuse> for Violation {
    fn from(misuse: KeyMisuse) -> Self {
        let (rule, clause) = match misuse {
            KeyMisuse::Repeated => ("a key sent twice", "RFC 7143 §6.3"),
            KeyMisuse::Misplaced => ("a key in a stage that does not allow it", "RFC 7143 §6.3"),
            KeyMisuse::WrongSender => ("a key that only targets send", "RFC 7143 §13"),
            KeyMisuse::Reserved => ("a reserved word as a proposal", "RFC 7143 §6.2"),
            KeyMisuse::Inadmissible => ("a declared value out of bounds", "RFC 7143 §7.12"),
        };
        Self { rule, clause }
    }
}

/// Which keys came, so that none comes twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenKeys(u64);

impl SeenKeys {
    /// Looks up pairs that `from` sent, and checks all that does not depend on their values. Keys
    /// that are not known are answered by `NotUnderstood` in `out`.
    ///
    /// # Errors
    /// How the first bad pair breaks the rules.
    pub fn admit<'a>(
        &mut self,
        pairs: &[KeyValue<'a>],
        phase: KeyPhase,
        from: KeySide,
        out: &mut Text,
    ) -> Result<Vec<Admitted<'a>>, KeyMisuse> {
        let mut admitted = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match find(pair.key) {
                Some(row) => admitted.push(self.check(row, pair.value, phase, from)?),
                // An answer to a declaration or a proposal is not answered again.
                None if RESERVED.contains(&pair.value) => {}
                None => out.put(pair.key, NOT_UNDERSTOOD),
            }
        }
        Ok(admitted)
    }

    fn check<'a>(
        &mut self,
        row: &'static KeyRow,
        value: &'a str,
        phase: KeyPhase,
        from: KeySide,
    ) -> Result<Admitted<'a>, KeyMisuse> {
        if RESERVED.contains(&value) {
            return Err(KeyMisuse::Reserved);
        }
        if !row.sent_by(from) {
            return Err(KeyMisuse::WrongSender);
        }
        if !row.allowed(phase) {
            return Err(KeyMisuse::Misplaced);
        }
        let bit = 1 << row.key as u32;
        if self.0 & bit != 0 {
            return Err(KeyMisuse::Repeated);
        }
        self.0 |= bit;
        let simple = !matches!(row.rule, KeyRule::Authentication | KeyRule::First(_));
        if simple && value.len() > MAX_VALUE {
            return Err(KeyMisuse::Inadmissible);
        }
        Ok((row, value))
    }
}

/// A key that may be where it is, and the value that came with it.
pub type Admitted<'a> = (&'static KeyRow, &'a str);

/// The answer to a key that is not known.
const NOT_UNDERSTOOD: &str = "NotUnderstood";

/// Words that are answers only (RFC 7143 §6.2).
const RESERVED: [&str; 3] = ["Reject", "Irrelevant", NOT_UNDERSTOOD];
