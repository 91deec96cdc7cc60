//! One row a key, and how rows are written.

use super::value::CRC32C;
use super::{IrrelevantWhen, KeyRow, KeyRule, KeyStage, KeyUse, LoginKey, Senders};
use crate::wire::bhs::MAX_DATA_LEN;

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
pub static TABLE: [KeyRow; 42] = {
    use IrrelevantWhen::{Discovery, DiscoveryOrSolicited, OverRdma, WithRdma, WithoutRdma};
    use LoginKey as K;
    use KeyRule::{
        And, Authentication, Declare, DeclareFlag, DeclareLimit, DeclareNumber, Maximum, Minimum,
        Obsolete, Or, Request,
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
            .usage(InitializeOnly).irrelevant(OverRdma).default("None"),
        row(K::DataDigest, "DataDigest", DIGESTS, "RFC 7143 §13.1")
            .usage(InitializeOnly).irrelevant(OverRdma).default("None"),
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
            .usage(All).irrelevant(WithRdma).default("8192"),
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
        row(K::RdmaExtensions, "RDMAExtensions", And, "RFC 7145 §6.3")
            .irrelevant(Discovery).default("No"),
        row(K::TargetRecvDataSegmentLength, "TargetRecvDataSegmentLength",
            Minimum(512, MAX_DATA_LEN), "RFC 7145 §6.4")
            .usage(InitializeOnly).irrelevant(WithoutRdma).default("8192"),
        row(K::InitiatorRecvDataSegmentLength, "InitiatorRecvDataSegmentLength",
            Minimum(512, MAX_DATA_LEN), "RFC 7145 §6.5")
            .usage(InitializeOnly).irrelevant(WithoutRdma).default("8192"),
        row(K::MaxOutstandingUnexpectedPdus, "MaxOutstandingUnexpectedPDUs", DeclareLimit,
            "RFC 7145 §6.7")
            .irrelevant(WithoutRdma).default("0"),
        row(K::MaxAhsLength, "MaxAHSLength", DeclareLimit, "RFC 7145 §6.8")
            .irrelevant(WithoutRdma).default("256"),
        row(K::TaggedBufferForSolicitedDataOnly, "TaggedBufferForSolicitedDataOnly", DeclareFlag,
            "RFC 7145 §6.9")
            .by(Initiator).irrelevant(WithoutRdma).default("No"),
        row(K::IserHelloRequired, "iSERHelloRequired", DeclareFlag, "RFC 7145 §6.10")
            .by(Initiator).irrelevant(WithoutRdma).default("No"),
    ]
};
