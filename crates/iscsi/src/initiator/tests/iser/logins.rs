//! Logins over RDMA: PDUs in messages, the keys of RFC 7145, and what targets make of them.

use crate::initiator::InitiatorEvent;
use crate::initiator::config::{Digest, InitiatorConfig};
use crate::initiator::error::{LoginError, SessionEnd};
use crate::initiator::tests::rig::{INITIATOR, ISID, IserRig as Rig, config};
use crate::parameters::Transport;
use crate::wire::bhs::Itt;
use crate::wire::serial::CmdSn;

/// The answer of `Rig::AGREED` with one key changed, or left out.
fn answer(key: &str, value: Option<&str>) -> String {
    let keys = Rig::AGREED.split_terminator('|').filter_map(|pair| {
        let is_it = pair.split('=').next() == Some(key);
        match value {
            _ if !is_it => Some(pair.to_owned()),
            Some(value) => Some(format!("{key}={value}")),
            None => None,
        }
    });
    keys.map(|pair| pair + "|").collect()
}

fn refused(answer: &str) -> SessionEnd {
    let mut rig = Rig::negotiating(config());
    rig.login(1, Some(3), answer);
    rig.end()
}

#[test]
fn the_keys_of_iser_are_offered() {
    let mut rig = Rig::begun(config());
    rig.login(0, Some(1), "TargetPortalGroupTag=1|AuthMethod=None|");
    let offer = "Login 1 T 3 RDMAExtensions=Yes|MaxConnections=1|InitialR2T=Yes|ImmediateData=Yes|\
        MaxBurstLength=2048|FirstBurstLength=1024|DefaultTime2Wait=2|DefaultTime2Retain=0|\
        MaxOutstandingR2T=2|DataPDUInOrder=Yes|DataSequenceInOrder=Yes|ErrorRecoveryLevel=0|\
        TaskReporting=RFC3720|iSCSIProtocolLevel=2|TargetRecvDataSegmentLength=8192|\
        InitiatorRecvDataSegmentLength=8192|MaxOutstandingUnexpectedPDUs=4|\
        TaggedBufferForSolicitedDataOnly=Yes|";
    rig.sends([offer]);
}

/// What is configured for a stream of bytes has no meaning over RDMA.
#[test]
fn neither_digests_nor_segments_of_tcp_are_offered() {
    let mut config = config();
    config.offer.header_digest = Digest::Require;
    config.offer.data_digest = Digest::Require;
    config.offer.keys.initial_r2t = false;
    let mut rig = Rig::negotiating(config.clone());
    rig.login(1, Some(3), Rig::AGREED);
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
    let mut rig = Rig::begun(config);
    rig.login(0, Some(1), "AuthMethod=None|");
    let sent = rig.sent();
    assert!(!sent[0].contains("Digest") && !sent[0].contains("MaxRecvDataSegmentLength"));
    assert!(sent[0].contains("InitialR2T=Yes"));
}

#[test]
fn what_was_agreed_upon() {
    let rig = Rig::open();
    let keys = rig.keys();
    assert!(keys.transport.is_rdma() && keys.iser.rdma_extensions);
    assert!(keys.initial_r2t && keys.immediate_data && !keys.header_digest);
    assert_eq!((keys.own_data_segment, keys.peer_data_segment), (4096, 512));
    assert_eq!((keys.max_burst, keys.first_burst), (2048, 1024));
}

/// LIO knows three of the keys, and answers to the others that it does not understand them.
#[test]
fn keys_that_a_target_does_not_know() {
    let unknown = "MaxOutstandingUnexpectedPDUs=NotUnderstood|\
        TaggedBufferForSolicitedDataOnly=NotUnderstood|";
    let rig = Rig::logged_in(config(), &(Rig::AGREED.to_owned() + unknown));
    assert!(rig.keys().iser.rdma_extensions);
    let rig = Rig::logged_in(config(), "RDMAExtensions=Yes|");
    let keys = rig.keys();
    assert_eq!(
        (keys.own_data_segment, keys.peer_data_segment),
        (8192, 8192)
    );
}

#[test]
fn a_target_that_declares_something_of_its_own() {
    let more = "MaxOutstandingUnexpectedPDUs=16|MaxAHSLength=256|MaxRecvDataSegmentLength=262144|";
    let rig = Rig::logged_in(config(), &(Rig::AGREED.to_owned() + more));
    let keys = rig.keys();
    assert_eq!(keys.peer_data_segment, 512);
    let declared = (keys.iser.unexpected_pdus, keys.iser.ahs_length);
    assert_eq!(declared, (Some(16), Some(256)));
}

/// tgt 1.0.85 counts each Login Request in ExpCmdSN, has the window end there, and then takes the
/// first command with the number that it has counted.
#[test]
fn a_target_that_counts_login_requests() {
    let mut rig = Rig::begun(config());
    let answers = [(0, 1, "AuthMethod=None|"), (1, 3, Rig::AGREED)];
    for (current, next, text) in answers {
        let mut pdu = rig.login_pdu(current, Some(next));
        pdu.stamps.exp_cmd_sn = CmdSn(rig.cmd_sn + 1);
        pdu.stamps.max_cmd_sn = CmdSn(rig.cmd_sn);
        rig.send_text(pdu.encode(), text);
        rig.sent();
    }
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
    // The window has room for one command, whose response opens it.
    rig.test_unit(1);
    rig.test_unit(2);
    assert_eq!(rig.sent().len(), 1);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().id, 1);
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn a_target_that_counts_commands_before_they_are_sent() {
    let mut rig = Rig::negotiating(config());
    let mut pdu = rig.login_pdu(1, Some(3));
    pdu.stamps.exp_cmd_sn = CmdSn(rig.cmd_sn + 2);
    pdu.stamps.max_cmd_sn = CmdSn(rig.cmd_sn + 9);
    rig.send_text(pdu.encode(), Rig::AGREED);
    match rig.end() {
        SessionEnd::Login(LoginError::Violated(violation)) => {
            assert_eq!(violation.rule, "an ExpCmdSN beyond the last CmdSN sent");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_rdma_extensions_there_is_no_session() {
    for value in [
        Some("No"),
        None,
        Some("NotUnderstood"),
        Some("Reject"),
        Some("Irrelevant"),
    ] {
        let end = refused(&answer("RDMAExtensions", value));
        assert_eq!(end, SessionEnd::Login(LoginError::NoRdma), "{value:?}");
        let text = "the target does not use iSER on this portal: enable it there, or use iSCSI \
            over TCP (RFC 7145 §6.3)";
        assert_eq!(end.to_string(), text);
    }
}

#[test]
fn answers_that_do_not_follow_from_the_offer() {
    let rows = [
        ("RDMAExtensions", "Maybe"),
        ("TargetRecvDataSegmentLength", "65537"),
        ("TargetRecvDataSegmentLength", "511"),
        ("InitiatorRecvDataSegmentLength", "8193"),
        ("InitialR2T", "No"),
    ];
    for (key, value) in rows {
        match refused(&answer(key, Some(value))) {
            SessionEnd::Login(LoginError::Key { key: told, .. }) => assert_eq!(told, key),
            other => panic!("{other:?} where {key}={value} was expected"),
        }
    }
    for more in [
        "iSERHelloRequired=Yes|",
        "TaggedBufferForSolicitedDataOnly=No|",
    ] {
        let end = refused(&(Rig::AGREED.to_owned() + more));
        assert!(
            end.to_string().contains("which only initiators send"),
            "{end}"
        );
    }
}

#[test]
fn discovery() {
    let config = InitiatorConfig::discovery(INITIATOR, ISID);
    let mut rig = Rig::begun(config);
    rig.login(0, Some(1), "AuthMethod=None|");
    let offer = "Login 1 T 3 MaxRecvDataSegmentLength=8192|DefaultTime2Wait=2|\
        DefaultTime2Retain=0|ErrorRecoveryLevel=0|";
    rig.sends([offer]);
    // As LIO answers.
    rig.login(
        1,
        Some(3),
        "HeaderDigest=None|DataDigest=None|MaxRecvDataSegmentLength=262144|",
    );
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
    let keys = rig.keys();
    assert_eq!(
        (keys.own_data_segment, keys.peer_data_segment),
        (8192, 8192)
    );
    assert_eq!(keys.transport, Transport::Iser { data_segment: 8192 });
    rig.initiator.send_targets(rig.now, "All").unwrap();
    rig.sends(["Text #1fff2 F SendTargets=All|"]);
    rig.text(0x1fff2, false, None, "TargetName=iqn.2026-11.org.x:a|");
    assert!(matches!(rig.event(), Some(InitiatorEvent::Targets(_))));
}

#[test]
fn a_login_in_parts_of_a_data_segment() {
    let mut config = config();
    config.alias = Some("a".repeat(255));
    let mut rig = Rig::begun(config);
    rig.login(0, Some(1), "AuthMethod=None|");
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn messages_that_no_login_has() {
    let mut rig = Rig::begun(config());
    rig.ping(Itt::NONE, 1);
    match rig.end() {
        SessionEnd::Login(LoginError::Stranger(violation)) => {
            assert_eq!(
                violation.rule,
                "a PDU that a target must not send in this phase"
            );
        }
        other => panic!("{other:?}"),
    }
    let mut rig = Rig::begun(config());
    rig.give_raw(b"HTTP/1.1 400 Bad Request", None);
    let end = rig.end().to_string();
    assert!(
        end.contains("a message shorter than an iSER header"),
        "{end}"
    );
}

#[test]
fn a_connection_that_ends_during_the_login() {
    let mut rig = Rig::begun(config());
    rig.carrier.theirs.end();
    rig.give(&[]);
    rig.back();
    let end = rig.end().to_string();
    assert_eq!(
        end,
        "the target ended the connection during the login: a Terminate of the peer (RDMAP, Local \
         Catastrophic Error): a local catastrophic error (RFC 5040 §4.8)"
    );
}
