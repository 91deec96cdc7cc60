use std::fmt::Write;

use super::negotiation::TargetNegotiation;
use super::*;
use crate::parameters::{DEFAULT_DATA_SEGMENT, Operational, Transport};
use crate::test_support::nulls;

/// What a target would choose.
fn ours() -> Operational {
    Operational {
        initial_r2t: false,
        own_data_segment: 262_144,
        max_burst: 1 << 20,
        first_burst: 262_144,
        time2wait: 0,
        time2retain: 0,
        outstanding_r2t: 8,
        pdu_in_order: false,
        sequence_in_order: false,
        protocol_level: 2,
        ..Operational::default()
    }
}

/// What becomes of a text in a login's operational stage: the answer, or the misuse.
fn exchange(negotiation: &mut TargetNegotiation, text: &str) -> String {
    let bytes = nulls(&format!("{text} "));
    let pairs = text::parse(&bytes).unwrap();
    let mut out = Text::default();
    let done = SeenKeys::default()
        .admit(&pairs, KeyPhase::Operational, KeySide::Initiator, &mut out)
        .and_then(|admitted| negotiation.answer(&admitted, &mut out));
    let answer = String::from_utf8(out.next_segment(u32::MAX).0.to_vec()).unwrap();
    match done {
        Ok(()) => answer.replace('\0', " ").trim_end().to_owned(),
        Err(misuse) => format!("! {misuse:?}"),
    }
}

fn answer(text: &str) -> String {
    exchange(&mut TargetNegotiation::new(ours(), false), text)
}

#[test]
fn rows_stand_in_the_order_of_their_keys() {
    for (index, row) in TABLE.iter().enumerate() {
        assert_eq!(row.key as usize, index, "{}", row.name);
        assert!(row.name.len() <= text::MAX_KEY);
        assert_eq!(find(row.name).map(|found| found.key), Some(row.key));
    }
}

#[test]
fn defaults_of_the_table_are_those_of_the_parameters() {
    let defaults = Operational::default();
    for row in &TABLE {
        if let Some(value) = defaults.value(row.key) {
            assert_eq!(
                Some(value.to_string().as_str()),
                row.default,
                "{}",
                row.name
            );
        }
    }
    assert_eq!(defaults.peer_data_segment, DEFAULT_DATA_SEGMENT);
}

#[test]
fn every_negotiated_value_is_stored_where_it_is_read() {
    for row in &TABLE {
        let Some(NegotiatedValue::Number(_)) = ours().value(row.key) else {
            continue;
        };
        let (KeyRule::Minimum(_, high) | KeyRule::Maximum(_, high)) = row.rule else {
            panic!("{} has a number and no bounds", row.name)
        };
        let mut keys = Operational::default();
        keys.store(row.key, NegotiatedValue::Number(high));
        assert_eq!(
            keys.value(row.key),
            Some(NegotiatedValue::Number(high)),
            "{}",
            row.name
        );
    }
}

const VALUES: [&str; 30] = [
    "",
    "Yes",
    "No",
    "yes",
    "0",
    "1",
    "2",
    "3",
    "31",
    "32",
    "511",
    "512",
    "0x200",
    "0512",
    "8192",
    "262144",
    "16777215",
    "16777216",
    "65535",
    "65536",
    "3600",
    "3601",
    "-1",
    "1~2",
    "18446744073709551616",
    "None",
    "None,CRC32C",
    "CRC32C,None",
    "FOO,FastAbort,RFC3720",
    "FOO",
];

/// The answer to a value of a key, `-` where there is none.
fn alone(row: &KeyRow, value: &str, ours: Operational, discovery: bool) -> String {
    let text = format!("{}={value}", row.name);
    let answer = exchange(&mut TargetNegotiation::new(ours, discovery), &text);
    let answer = answer.replace(&format!("{}=", row.name), "");
    if answer.is_empty() {
        "-".to_owned()
    } else {
        answer
    }
}

/// A row of the table x many values: the answer in a normal / a discovery session.
fn answers(row: &KeyRow, ours: Operational) -> String {
    let mut table = format!("{} ({:?}, {:?})\n", row.name, row.rule, row.irrelevant);
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for value in VALUES {
        let answer = |discovery| alone(row, value, ours, discovery);
        let outcome = format!("{} / {}", answer(false), answer(true));
        let value = if value.is_empty() { "(empty)" } else { value };
        match groups.iter_mut().find(|group| group.0 == outcome) {
            Some(group) => group.1.push(value),
            None => groups.push((outcome, vec![value])),
        }
    }
    for (outcome, values) in groups {
        writeln!(table, "  {outcome:28} <- {}", values.join(" ")).unwrap();
    }
    table
}

/// Reviewed against RFC 7143 §6.2 and §13, and RFC 7145 §6.
#[test]
fn every_key_and_many_values() {
    let table: String = TABLE.iter().map(|row| answers(row, ours())).collect();
    insta::assert_snapshot!(table);
}

/// The keys whose answers are others over RDMA. Reviewed against RFC 7145 §6.
#[test]
fn keys_and_values_over_rdma() {
    let over = ours().over(Transport::Iser {
        data_segment: 65_536,
    });
    let table = TABLE
        .iter()
        .map(|row| (answers(row, ours()), answers(row, over)));
    let others = table.filter(|(tcp, rdma)| tcp != rdma);
    let table: String = others.map(|(_, rdma)| rdma).collect();
    insta::assert_snapshot!(table);
}

/// RFC 7143 §13: where each key may be sent, and by whom.
#[test]
fn every_key_and_every_phase() {
    let mut table = String::new();
    for row in &TABLE {
        let mut line = format!("{:25}", row.name);
        for phase in [
            KeyPhase::Security,
            KeyPhase::Operational,
            KeyPhase::FullFeature,
        ] {
            for side in [KeySide::Initiator, KeySide::Target] {
                let allowed = row.allowed(phase) && row.sent_by(side);
                let mark = if allowed {
                    format!("{phase:?}/{side:?} ")
                } else {
                    String::new()
                };
                write!(line, "{mark:22}").unwrap();
            }
        }
        writeln!(table, "{}", line.trim_end()).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn keys_not_known_are_not_understood() {
    assert_eq!(
        answer("X-com.example.foo=1"),
        "X-com.example.foo=NotUnderstood"
    );
    assert_eq!(
        answer("X-com.example.foo=NotUnderstood"),
        "",
        "an answer is not answered"
    );
    assert_eq!(
        answer("initialr2t=No"),
        "initialr2t=NotUnderstood",
        "keys are case sensitive"
    );
}

#[test]
fn a_key_sent_twice_is_misuse() {
    assert_eq!(answer("ImmediateData=Yes ImmediateData=Yes"), "! Repeated");
    assert_eq!(
        answer("X-a.b=1 X-a.b=1"),
        "X-a.b=NotUnderstood X-a.b=NotUnderstood"
    );
}

#[test]
fn reserved_words_are_no_proposals() {
    for word in ["Reject", "Irrelevant", "NotUnderstood"] {
        assert_eq!(answer(&format!("MaxBurstLength={word}")), "! Reserved");
    }
}

#[test]
fn keys_of_targets_and_of_other_phases_are_misuse() {
    assert_eq!(answer("TargetPortalGroupTag=1"), "! WrongSender");
    assert_eq!(answer("SendTargets=All"), "! Misplaced");
    assert_eq!(answer("AuthMethod=None"), "! Misplaced");
}

#[test]
fn open_iscsi_gets_what_it_offers() {
    let mut negotiation = TargetNegotiation::new(ours(), false);
    let answer = exchange(
        &mut negotiation,
        "HeaderDigest=None DataDigest=None DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No \
         OFMarker=No ErrorRecoveryLevel=0 InitialR2T=No ImmediateData=Yes MaxBurstLength=16776192 \
         FirstBurstLength=262144 MaxOutstandingR2T=1 MaxConnections=1 DataPDUInOrder=Yes \
         DataSequenceInOrder=Yes MaxRecvDataSegmentLength=262144",
    );
    assert_eq!(
        answer,
        "HeaderDigest=None DataDigest=None DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No \
         OFMarker=No ErrorRecoveryLevel=0 InitialR2T=No ImmediateData=Yes MaxBurstLength=1048576 \
         MaxOutstandingR2T=1 MaxConnections=1 DataPDUInOrder=Yes DataSequenceInOrder=Yes \
         FirstBurstLength=262144"
    );
    let agreed = negotiation.outcome();
    assert_eq!(agreed.peer_data_segment, 262_144);
    assert!(!agreed.initial_r2t && agreed.immediate_data && agreed.pdu_in_order);
}

#[test]
fn first_burst_gives_way_to_max_burst() {
    assert_eq!(
        answer("FirstBurstLength=65536 MaxBurstLength=8192"),
        "MaxBurstLength=8192 FirstBurstLength=8192"
    );
    let mut negotiation = TargetNegotiation::new(ours(), false);
    exchange(&mut negotiation, "MaxBurstLength=8192");
    assert_eq!(
        negotiation.outcome().first_burst,
        8192,
        "the default gives way as well"
    );
}

#[test]
fn first_burst_is_irrelevant_without_unsolicited_data() {
    assert_eq!(
        answer("FirstBurstLength=65536 InitialR2T=Yes ImmediateData=No"),
        "InitialR2T=Yes ImmediateData=No FirstBurstLength=Irrelevant"
    );
    assert_eq!(
        answer("InitialR2T=Yes ImmediateData=Yes FirstBurstLength=65536"),
        "InitialR2T=Yes ImmediateData=Yes FirstBurstLength=65536"
    );
}

#[test]
fn what_is_rejected_stays_as_it_was() {
    let mut negotiation = TargetNegotiation::new(ours(), false);
    let text = "MaxBurstLength=1 HeaderDigest=CRC64 ErrorRecoveryLevel=7";
    assert_eq!(
        exchange(&mut negotiation, text),
        "MaxBurstLength=Reject HeaderDigest=Reject ErrorRecoveryLevel=Reject"
    );
    assert_eq!(negotiation.outcome(), Operational::default());
}

#[test]
fn ours_is_declared_once_and_holds_from_then_on() {
    let mut negotiation = TargetNegotiation::new(ours(), true);
    assert_eq!(negotiation.outcome().own_data_segment, DEFAULT_DATA_SEGMENT);
    let mut out = Text::default();
    negotiation.declare(&mut out);
    assert_eq!(
        out.next_segment(100).0,
        b"MaxRecvDataSegmentLength=262144\0"
    );
    assert_eq!(negotiation.outcome().own_data_segment, 262_144);
}
