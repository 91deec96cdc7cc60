//! The table of text keys: RFC 7143 §12 and §13, RFC 7144 §7.1. One row a key, the same for both
//! sides; the side that answers brings its own preferences, as [`Operational`] values.
//!
//! Adding a key: a variant of [`LoginKey`], a row of [`TABLE`], and, if it is negotiated, a field
//! of [`Operational`] with its arm in `Operational::field` (`keys/value.rs`).
//!
//! [`Operational`]: crate::parameters::Operational

use crate::text::{self, KeyValue, MAX_VALUE, Text};
use crate::wire::bhs::MAX_DATA_LEN;
use scsi::violation::Violation;

pub mod negotiation;
#[cfg(test)]
mod tests;
mod value;

use value::CRC32C;
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

    /// A number within the bounds of the key.
    #[must_use]
    pub fn number(&self, value: &str) -> Option<u32> {
        let (KeyRule::Minimum(low, high)
        | KeyRule::Maximum(low, high)
        | KeyRule::DeclareNumber(low, high)) = self.rule
        else {
            return None;
        };
        let number = u32::try_from(text::number(value)?).ok()?;
        (low..=high).contains(&number).then_some(number)
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

/// Digests that we can compute.
const DIGESTS: KeyRule = KeyRule::First(&[CRC32C, "None"]);

const REPORTING: KeyRule = KeyRule::First(&["RFC3720", "ResponseFence", "FastAbort"]);

/// A row of an operational key that both sides may send in a leading login.
const fn row(key: LoginKey, name: &'static str, rule: KeyRule, clause: &'static str) -> KeyRow {
    KeyRow {
        key,
        name,
        usage: KeyUse::LeadingOnly,
        stage: KeyStage::Operational,
        senders: Senders::Both,
        rule,
        irrelevant: IrrelevantWhen::Never,
        default: None,
        clause,
    }
}

impl KeyRow {
    const fn usage(mut self, usage: KeyUse) -> Self {
        self.usage = usage;
        self
    }

    const fn any_stage(mut self) -> Self {
        self.stage = KeyStage::Any;
        self
    }

    const fn by(mut self, senders: Senders) -> Self {
        self.senders = senders;
        self
    }

    const fn irrelevant(mut self, when: IrrelevantWhen) -> Self {
        self.irrelevant = when;
        self
    }

    const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    const fn security(mut self) -> Self {
        self.usage = KeyUse::InitializeOnly;
        self.stage = KeyStage::Security;
        self
    }
}

/// Every key, in the order of the RFCs. What is not said of a row is as `row` has it. TargetName
/// is also sent by targets, in answer to SendTargets only.
#[rustfmt::skip]
pub static TABLE: [KeyRow; 35] = {
    use IrrelevantWhen::{Discovery, DiscoveryOrSolicited};
    use LoginKey as K;
    use KeyRule::{
        And, Authentication, Declare, DeclareNumber, Maximum, Minimum, Obsolete, Or, Request,
    };
    use Senders::{Initiator, Target};
    use KeyUse::{All, FullFeatureOnly, InitializeOnly};
    [
        row(K::AuthMethod, "AuthMethod", Authentication, "RFC 7143 §12.1").security(),
        row(K::ChapA, "CHAP_A", Authentication, "RFC 7143 §12.1.3").security(),
        row(K::ChapI, "CHAP_I", Authentication, "RFC 7143 §12.1.3").security(),
        row(K::ChapC, "CHAP_C", Authentication, "RFC 7143 §12.1.3").security(),
        row(K::ChapN, "CHAP_N", Authentication, "RFC 7143 §12.1.3").security(),
        row(K::ChapR, "CHAP_R", Authentication, "RFC 7143 §12.1.3").security(),
        row(K::HeaderDigest, "HeaderDigest", DIGESTS, "RFC 7143 §13.1")
            .usage(InitializeOnly).default("None"),
        row(K::DataDigest, "DataDigest", DIGESTS, "RFC 7143 §13.1")
            .usage(InitializeOnly).default("None"),
        row(K::MaxConnections, "MaxConnections", Minimum(1, 65_535), "RFC 7143 §13.2")
            .irrelevant(Discovery).default("1"),
        row(K::SendTargets, "SendTargets", Request, "RFC 7143 §13.3")
            .usage(FullFeatureOnly).by(Initiator),
        row(K::TargetName, "TargetName", Declare, "RFC 7143 §13.4")
            .usage(InitializeOnly).any_stage(),
        row(K::InitiatorName, "InitiatorName", Declare, "RFC 7143 §13.5")
            .usage(InitializeOnly).any_stage().by(Initiator),
        row(K::TargetAlias, "TargetAlias", Declare, "RFC 7143 §13.6")
            .usage(All).any_stage().by(Target),
        row(K::InitiatorAlias, "InitiatorAlias", Declare, "RFC 7143 §13.7")
            .usage(All).any_stage().by(Initiator),
        row(K::TargetAddress, "TargetAddress", Declare, "RFC 7143 §13.8")
            .usage(All).any_stage().by(Target),
        row(K::TargetPortalGroupTag, "TargetPortalGroupTag", Declare, "RFC 7143 §13.9")
            .usage(InitializeOnly).any_stage().by(Target),
        row(K::InitialR2T, "InitialR2T", Or, "RFC 7143 §13.10")
            .irrelevant(Discovery).default("Yes"),
        row(K::ImmediateData, "ImmediateData", And, "RFC 7143 §13.11")
            .irrelevant(Discovery).default("Yes"),
        row(K::MaxRecvDataSegmentLength, "MaxRecvDataSegmentLength",
            DeclareNumber(512, MAX_DATA_LEN), "RFC 7143 §13.12")
            .usage(All).default("8192"),
        row(K::MaxBurstLength, "MaxBurstLength", Minimum(512, MAX_DATA_LEN), "RFC 7143 §13.13")
            .irrelevant(Discovery).default("262144"),
        row(K::FirstBurstLength, "FirstBurstLength", Minimum(512, MAX_DATA_LEN), "RFC 7143 §13.14")
            .irrelevant(DiscoveryOrSolicited).default("65536"),
        row(K::DefaultTime2Wait, "DefaultTime2Wait", Maximum(0, 3600), "RFC 7143 §13.15")
            .default("2"),
        row(K::DefaultTime2Retain, "DefaultTime2Retain", Minimum(0, 3600), "RFC 7143 §13.16")
            .default("20"),
        row(K::MaxOutstandingR2T, "MaxOutstandingR2T", Minimum(1, 65_535), "RFC 7143 §13.17")
            .irrelevant(Discovery).default("1"),
        row(K::DataPduInOrder, "DataPDUInOrder", Or, "RFC 7143 §13.18")
            .irrelevant(Discovery).default("Yes"),
        row(K::DataSequenceInOrder, "DataSequenceInOrder", Or, "RFC 7143 §13.19")
            .irrelevant(Discovery).default("Yes"),
        row(K::ErrorRecoveryLevel, "ErrorRecoveryLevel", Minimum(0, 2), "RFC 7143 §13.20")
            .default("0"),
        row(K::SessionType, "SessionType", Declare, "RFC 7143 §13.21")
            .any_stage().by(Initiator).default("Normal"),
        row(K::TaskReporting, "TaskReporting", REPORTING, "RFC 7143 §13.23")
            .irrelevant(Discovery).default("RFC3720"),
        row(K::ProtocolLevel, "iSCSIProtocolLevel", Minimum(0, 31), "RFC 7144 §7.1.1")
            .irrelevant(Discovery).default("1"),
        // §13.25 would rather have Reject, but allows No, which initiators of RFC 3720's time
        // know as the result of AND; some of them end the login over anything else.
        row(K::OfMarker, "OFMarker", Obsolete("No"), "RFC 7143 §13.25").usage(InitializeOnly),
        row(K::IfMarker, "IFMarker", Obsolete("No"), "RFC 7143 §13.25").usage(InitializeOnly),
        row(K::OfMarkInt, "OFMarkInt", Obsolete("Reject"), "RFC 7143 §13.25")
            .usage(InitializeOnly),
        row(K::IfMarkInt, "IFMarkInt", Obsolete("Reject"), "RFC 7143 §13.25")
            .usage(InitializeOnly),
        row(K::NodeArchitecture, "X#NodeArchitecture", Declare, "RFC 7143 §13.26"),
    ]
};
