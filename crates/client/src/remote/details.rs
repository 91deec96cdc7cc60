//! What a remote unit and the session with it say of themselves.

use ::io::ether::Place;
use block::identity::DetailGroup;
use fc::port::{Fc4Layer, Port};
use fc::remote::RemotePort;
use iscsi::initiator::LoginOutcome;
use iscsi::initiator::iser::UNEXPECTED_PDUS;
use iscsi::parameters::{MAX_AHS_LENGTH, Operational};
use iscsi::text::yes_no;
use rdma::iwarp::fpdu::LONG_FPDU;
use runtime::n_port::UnitStatus;
use scsi::client::Facts;
use scsi::wire::designator;
use scsi::wire::lun::Lun;

use super::host_port;
use super::session::{DeviceFacts, IwarpFacts, QueuePairFacts};

/// What the unit says.
pub(super) fn of_unit(facts: &Facts) -> DetailGroup {
    DetailGroup {
        heading: "unit",
        values: unit(facts),
    }
}

/// The same for programs that look at an N_Port.
pub(super) fn unit_status(lun: Lun, facts: &Facts) -> UnitStatus {
    let (identity, traits) = (&facts.identity, &facts.traits);
    UnitStatus {
        lun: lun.index().unwrap_or_default(),
        vendor: identity.vendor.clone(),
        product: identity.product.clone(),
        revision: identity.revision.clone(),
        bytes: traits.blocks * u64::from(traits.block_size),
        block_size: traits.block_size,
    }
}

/// What a session of iSCSI was negotiated to. `place` is the portal's host and port, and the
/// InitiatorName; `sessions` is how many of them each core has.
pub(super) fn session(
    session: &LoginOutcome,
    place: (&str, u16, &str),
    sessions: u16,
) -> Vec<DetailGroup> {
    let mut values = at(place, session);
    values.push(("sessions per core", sessions.to_string()));
    vec![
        group("session", values),
        group("negotiated", negotiated(session)),
    ]
}

type DetailValues = Vec<(&'static str, String)>;

fn unit(facts: &Facts) -> DetailValues {
    let identity = &facts.identity;
    let most = match facts.max_transfer {
        0 => "not reported".to_owned(),
        blocks => format!("{blocks} blocks"),
    };
    vec![
        ("vendor", identity.vendor.clone()),
        ("product", identity.product.clone()),
        ("revision", identity.revision.clone()),
        ("serial", identity.serial.clone()),
        ("designator", designator::text(&identity.designator)),
        ("longest transfer", most),
        ("thin provisioned", yes(facts.provisioned)),
        ("FUA", yes(facts.dpofua)),
    ]
}

fn at((host, port, initiator): (&str, u16, &str), session: &LoginOutcome) -> DetailValues {
    let mut values = vec![
        ("portal", host_port(host, port)),
        ("initiator", initiator.to_owned()),
    ];
    if let Some(group) = session.portal_group {
        values.push(("portal group", group.to_string()));
    }
    if let Some(alias) = &session.alias {
        values.push(("alias", alias.clone()));
    }
    let chap = session
        .hash
        .map(|hash| format!("CHAP with {}", hash.name()));
    values.push(("authentication", chap.unwrap_or_else(|| "none".to_owned())));
    values
}

/// By the names of RFC 7143 §13, in bytes and seconds.
fn negotiated(session: &LoginOutcome) -> DetailValues {
    let keys = &session.keys;
    let mut values = if keys.transport.is_rdma() {
        of_rdma(keys)
    } else {
        of_tcp(keys)
    };
    values.extend([
        ("MaxBurstLength", keys.max_burst.to_string()),
        ("FirstBurstLength", keys.first_burst.to_string()),
        ("InitialR2T", flag(keys.initial_r2t)),
        ("ImmediateData", flag(keys.immediate_data)),
        ("MaxOutstandingR2T", keys.outstanding_r2t.to_string()),
        ("DataPDUInOrder", flag(keys.pdu_in_order)),
        ("DataSequenceInOrder", flag(keys.sequence_in_order)),
        ("DefaultTime2Wait", keys.time2wait.to_string()),
        ("DefaultTime2Retain", keys.time2retain.to_string()),
        ("ErrorRecoveryLevel", keys.error_recovery_level.to_string()),
        ("TaskReporting", keys.task_reporting.name().to_owned()),
        ("iSCSIProtocolLevel", keys.protocol_level.to_string()),
    ]);
    values
}

fn of_tcp(keys: &Operational) -> DetailValues {
    let digest = |on| if on { "CRC32C" } else { "None" }.to_owned();
    vec![
        ("HeaderDigest", digest(keys.header_digest)),
        ("DataDigest", digest(keys.data_digest)),
        (
            "MaxRecvDataSegmentLength, ours",
            keys.own_data_segment.to_string(),
        ),
        (
            "MaxRecvDataSegmentLength, theirs",
            keys.peer_data_segment.to_string(),
        ),
    ]
}

fn of_rdma(keys: &Operational) -> DetailValues {
    let iser = &keys.iser;
    let undeclared = |holds: &str| format!("{holds} (not declared)");
    let unexpected = match iser.unexpected_pdus {
        Some(0) => "without limit".to_owned(),
        Some(declared) => declared.to_string(),
        None => undeclared("without limit"),
    };
    let ahs = iser.ahs_length.map(|declared| declared.to_string());
    vec![
        ("RDMAExtensions", flag(iser.rdma_extensions)),
        (
            "InitiatorRecvDataSegmentLength",
            iser.initiator_data_segment.to_string(),
        ),
        (
            "TargetRecvDataSegmentLength",
            iser.target_data_segment.to_string(),
        ),
        (
            "MaxOutstandingUnexpectedPDUs",
            format!("{UNEXPECTED_PDUS} ours, {unexpected} theirs"),
        ),
        (
            "MaxAHSLength",
            ahs.unwrap_or_else(|| undeclared(&MAX_AHS_LENGTH.to_string())),
        ),
        (
            "TaggedBufferForSolicitedDataOnly",
            flag(iser.offset_skips_unsolicited()),
        ),
    ]
}

/// What the two ends of a queue pair go by.
pub(super) fn queue_pair(pair: &QueuePairFacts) -> DetailGroup {
    let values = match pair {
        QueuePairFacts::Iwarp(facts) => of_iwarp(facts),
        QueuePairFacts::Device(facts) => of_device(facts),
    };
    group("queue pair", values)
}

fn of_iwarp(facts: &IwarpFacts) -> DetailValues {
    let agreed = &facts.agreed;
    let fpdu = if agreed.long_fpdus {
        format!("up to {LONG_FPDU} bytes")
    } else {
        "a segment of TCP each".to_owned()
    };
    vec![
        ("provider", "software iWARP".to_owned()),
        ("MPA revision", agreed.revision.to_string()),
        ("CRC", yes(agreed.crc)),
        ("markers sent", yes(agreed.markers)),
        ("FPDU", fpdu),
        ("RDMA Reads of the target", agreed.ird.to_string()),
        ("RDMA Reads of ours", agreed.ord.to_string()),
        ("invalidation by the target", yes(facts.invalidates)),
    ]
}

fn of_device(facts: &DeviceFacts) -> DetailValues {
    vec![
        ("provider", format!("RDMA device {}", facts.device)),
        ("RDMA Reads of the target", facts.ird.to_string()),
        ("RDMA Reads of ours", facts.ord.to_string()),
        ("invalidation by the target", yes(facts.invalidates)),
    ]
}

/// Our N_Port and the target's, and what their logins agreed upon.
pub(super) fn ports<F: Fc4Layer>(
    place: &Place,
    ours: &Port<F>,
    target: Option<&RemotePort>,
    lost: Option<String>,
) -> Vec<DetailGroup> {
    let address = ours.address().unwrap_or_default();
    let own = vec![
        ("interface", place.to_string()),
        ("port name", ours.wwpn().to_string()),
        ("node name", ours.wwnn().to_string()),
        ("FC-ID", address.fc_id.to_string()),
        ("MAC", address.mac.to_string()),
        ("frame payload", ours.payload_max().to_string()),
        ("frames lost", lost.unwrap_or_else(|| "none".to_owned())),
    ];
    let mut groups = vec![group("port", own)];
    if let Some(target) = target {
        let address = target.address();
        let values = vec![
            ("port name", target.wwpn().to_string()),
            ("node name", target.neighbour().wwnn.to_string()),
            ("FC-ID", address.fc_id.to_string()),
            ("MAC", address.mac.to_string()),
            ("frame payload", target.payload_max().to_string()),
        ];
        groups.push(group("target port", values));
    }
    groups
}

const fn group(heading: &'static str, values: DetailValues) -> DetailGroup {
    DetailGroup { heading, values }
}

/// As keys have it.
fn flag(on: bool) -> String {
    yes_no(on).to_owned()
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}
