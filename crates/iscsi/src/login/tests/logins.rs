//! Logins that end well.

use super::*;
use crate::parameters::{Operational, TaskReporting};

/// The text of open-iscsi's operational stage, from a capture.
const OPEN_ISCSI: &str = "HeaderDigest=None DataDigest=None DefaultTime2Wait=2 \
    DefaultTime2Retain=0 IFMarker=No OFMarker=No ErrorRecoveryLevel=0 InitialR2T=No \
    ImmediateData=Yes MaxBurstLength=16776192 FirstBurstLength=262144 MaxOutstandingR2T=1 \
    MaxConnections=1 DataPDUInOrder=Yes DataSequenceInOrder=Yes MaxRecvDataSegmentLength=262144";

const ANSWER: &str = "MaxRecvDataSegmentLength=262144 HeaderDigest=None DataDigest=None \
    DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No OFMarker=No ErrorRecoveryLevel=0 \
    InitialR2T=No ImmediateData=Yes MaxBurstLength=1048576 MaxOutstandingR2T=1 MaxConnections=1 \
    DataPDUInOrder=Yes DataSequenceInOrder=Yes FirstBurstLength=262144";

#[test]
fn open_iscsi_logs_in_in_one_round() {
    let mut peer = Peer::default();
    peer.send(
        "O>F",
        &format!("{INITIATOR} InitiatorAlias=ini {TARGET} SessionType=Normal {OPEN_ISCSI}"),
    );
    assert_eq!(peer.recv(), "", "nothing before the session is admitted");
    let (initiator, node, scope) = peer.asks();
    assert_eq!(initiator.name, "iqn.2026-01.test:ini");
    assert_eq!(initiator.isid, [0, 2, 0x3d, 0, 0, 1]);
    assert_eq!(node.as_deref(), Some("iqn.2026-11.org.lunar:a"));
    assert_eq!(
        scope,
        SessionScope::Node("iqn.2026-11.org.lunar:a".into(), 1)
    );

    let (response, parameters) = peer.admitted(9);
    assert_eq!(response, format!("O>F: TargetPortalGroupTag=1 {ANSWER}"));
    assert_eq!((parameters.tsih, parameters.cid), (9, 5));
    assert_eq!((parameters.stat_sn, parameters.exp_cmd_sn), (1001, 500));
    assert_eq!(
        parameters.introduction(None),
        "iqn.2026-01.test:ini (\"ini\") logged in to iqn.2026-11.org.lunar:a"
    );
    assert_eq!(
        parameters.farewell(true),
        "iqn.2026-01.test:ini logged out of iqn.2026-11.org.lunar:a"
    );
    assert_eq!(
        (parameters.user.as_deref(), parameters.endpoints),
        (None, endpoints())
    );
    assert_eq!(
        parameters.node().map(|node| node.name.as_str()),
        Some("iqn.2026-11.org.lunar:a")
    );
    assert_eq!(
        parameters.keys,
        Operational {
            initial_r2t: false,
            own_data_segment: 262_144,
            peer_data_segment: 262_144,
            max_burst: 1 << 20,
            first_burst: 262_144,
            time2retain: 0,
            ..Operational::default()
        }
    );
    assert!(peer.login.into_session(Duration::ZERO).is_some());
}

#[test]
fn a_discovery_in_one_round() {
    let mut peer = Peer::default();
    peer.send(
        "O>F",
        &format!(
            "{INITIATOR} SessionType=Discovery HeaderDigest=None DataDigest=None \
             DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No OFMarker=No ErrorRecoveryLevel=0 \
             MaxRecvDataSegmentLength=32768"
        ),
    );
    let (_, node, scope) = peer.asks();
    assert_eq!(
        (node, scope),
        (None, SessionScope::Portal(endpoints().local))
    );
    let (response, parameters) = peer.admitted(1);
    assert_eq!(
        response,
        "O>F: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 HeaderDigest=None \
         DataDigest=None DefaultTime2Wait=2 DefaultTime2Retain=0 IFMarker=No OFMarker=No \
         ErrorRecoveryLevel=0"
    );
    let SessionPurpose::Discovery(nodes) = parameters.purpose else {
        panic!("normal")
    };
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        ["iqn.2026-11.org.lunar:a"],
        "neither b, which is not for it, nor c"
    );
}

#[test]
fn both_stages_each_in_one_round() {
    let mut peer = Peer::default();
    peer.opens(
        "S>O",
        "AuthMethod=None",
        "S>O: TargetPortalGroupTag=1 AuthMethod=None",
    );
    peer.send("O>F", "HeaderDigest=CRC32C,None DataDigest=None,CRC32C");
    peer.asks();
    let (response, parameters) = peer.admitted(2);
    assert_eq!(
        response,
        "O>F: MaxRecvDataSegmentLength=262144 HeaderDigest=CRC32C DataDigest=None"
    );
    assert!(parameters.keys.header_digest && !parameters.keys.data_digest);
    assert_eq!(parameters.stat_sn, 1002);
}

#[test]
fn the_security_stage_alone_leads_to_defaults() {
    let mut peer = Peer::default();
    peer.send("S>F", &format!("{INITIATOR} {TARGET}"));
    peer.asks();
    let (response, parameters) = peer.admitted(2);
    assert_eq!(response, "S>F: TargetPortalGroupTag=1");
    assert_eq!(parameters.keys, Operational::default());
}

#[test]
fn an_empty_operational_stage_declares_only_ours() {
    let mut peer = Peer::default();
    peer.passes_security();
    peer.send("O>F", "");
    peer.asks();
    assert_eq!(peer.admitted(2).0, "O>F: MaxRecvDataSegmentLength=262144");
}

#[test]
fn an_initiator_may_take_its_time() {
    let mut peer = Peer::default();
    peer.opens("S", "", "S: TargetPortalGroupTag=1");
    peer.exchange("S", "AuthMethod=None", "S: AuthMethod=None");
    peer.exchange("S>O", "", "S>O:");
    peer.exchange(
        "O",
        "InitialR2T=No",
        "O: MaxRecvDataSegmentLength=262144 InitialR2T=No",
    );
    peer.exchange("O", "ImmediateData=Yes", "O: ImmediateData=Yes");
    peer.send("O>F", "");
    peer.asks();
    assert_eq!(peer.admitted(3).0, "O>F:");
}

/// From a capture: one user, MD5.
#[test]
fn chap_as_open_iscsi_does_it() {
    let mut peer = Peer::default();
    peer.exchange(
        "S>O",
        &format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c AuthMethod=CHAP,None"),
        "S: TargetPortalGroupTag=1 AuthMethod=CHAP",
    );
    peer.exchange(
        "S",
        "CHAP_A=5",
        "S: CHAP_A=5 CHAP_I=0 CHAP_C=0x0102030405060708090a0b0c0d0e0f10",
    );
    let challenge: Vec<u8> = (1..=16).collect();
    let response = Hash::Md5.response(0, b"secretsecret1", &challenge);
    peer.exchange(
        "S>O",
        &format!("CHAP_N=user1 CHAP_R={}", crate::text::hex(&response)),
        "S>O:",
    );
    peer.send("O>F", OPEN_ISCSI);
    assert!(matches!(peer.event(), Some(LoginEvent::Remark(WEAK_HASH))));
    peer.asks();
    let (response, parameters) = peer.admitted(4);
    assert_eq!(response, format!("O>F: {ANSWER}"));
    assert_eq!(parameters.user.as_deref(), Some("user1"));
    assert_eq!(
        parameters.introduction(None),
        "iqn.2026-01.test:ini logged in as user \"user1\" to iqn.2026-11.org.lunar:c"
    );
}

#[test]
fn mutual_chap_with_the_strongest_hash() {
    let mut peer = Peer::default();
    peer.send(
        "S",
        &format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c AuthMethod=CHAP CHAP_A=5,6,7,8"),
    );
    let challenge: Vec<u8> = (1..=32).collect();
    let hex = crate::text::hex(&challenge);
    assert_eq!(
        peer.recv(),
        format!("S: TargetPortalGroupTag=1 AuthMethod=CHAP CHAP_A=8 CHAP_I=0 CHAP_C={hex}"),
        "method and challenge in one round, as the initiator gave both"
    );
    let theirs = Hash::Sha3.response(0, b"secretsecret1", &challenge);
    let ours = Hash::Sha3.response(136, b"tsecretsecret1", &[0xe6, 0x67]);
    let (theirs, ours) = (crate::text::hex(&theirs), crate::text::hex(&ours));
    peer.send(
        "S>F",
        &format!("CHAP_N=user1 CHAP_R={theirs} CHAP_I=136 CHAP_C=0xe667"),
    );
    peer.asks();
    assert_eq!(
        peer.admitted(5).0,
        format!("S>F: CHAP_N=tuser1 CHAP_R={ours}")
    );
}

/// libiscsi repeats its names in the operational stage.
#[test]
fn names_may_be_repeated_but_not_changed() {
    let mut peer = Peer::default();
    let names = format!("{INITIATOR} {TARGET} SessionType=Normal");
    peer.exchange("S>O", &names, "S>O: TargetPortalGroupTag=1");
    peer.send("O>F", &names);
    peer.asks();

    for changed in [
        "InitiatorName=iqn.2026-01.test:other",
        "TargetName=iqn.2026-11.org.lunar:b",
        "SessionType=Discovery",
    ] {
        let mut peer = Peer::default();
        peer.exchange("S>O", &names, "S>O: TargetPortalGroupTag=1");
        peer.exchange("O>F", changed, "reject 0200");
        peer.breaks("another name or session type within a login");
    }
}

#[test]
fn a_named_discovery_sees_its_target_only() {
    let nodes = vec![
        node('a', NodeAccess::default()),
        node('b', NodeAccess::default()),
    ];
    let mut peer = Peer::new(&config(nodes));
    peer.send(
        "O>F",
        &format!("{INITIATOR} SessionType=Discovery {TARGET}"),
    );
    let (_, node, scope) = peer.asks();
    assert_eq!(
        (node, scope),
        (
            None,
            SessionScope::Node("iqn.2026-11.org.lunar:a".into(), 1)
        )
    );
    let nodes = peer.discovers();
    assert_eq!(nodes.len(), 1);
}

#[test]
fn a_discovery_needs_chap_if_every_node_does() {
    let mut peer = Peer::new(&config(vec![node('c', chap())]));
    peer.exchange(
        "O>F",
        &format!("{INITIATOR} SessionType=Discovery"),
        "reject 0201",
    );
    assert_eq!(peer.closes().clause, "RFC 7143 §6.3.1");

    let mut peer = Peer::new(&config(vec![node('b', only(&[]))]));
    peer.send("O>F", &format!("{INITIATOR} SessionType=Discovery"));
    peer.asks();
    let nodes = peer.discovers();
    assert!(
        nodes.is_empty(),
        "there is nothing that it could prove itself for"
    );
}

#[test]
fn a_discovery_with_chap_sees_what_it_proved() {
    let mut peer = Peer::default();
    peer.send(
        "S",
        &format!("{INITIATOR} SessionType=Discovery AuthMethod=CHAP,None CHAP_A=7"),
    );
    assert!(peer.recv().contains("CHAP_A=7"));
    let challenge: Vec<u8> = (1..=32).collect();
    let response = Hash::Sha256.response(0, b"secretsecret1", &challenge);
    peer.send(
        "S>F",
        &format!("CHAP_N=user1 CHAP_R={}", crate::text::hex(&response)),
    );
    peer.asks();
    assert_eq!(
        peer.discovers(),
        ["iqn.2026-11.org.lunar:a", "iqn.2026-11.org.lunar:c"]
    );
}

#[test]
fn windows_and_esxi_offers() {
    let mut peer = Peer::default();
    peer.send(
        "O>F",
        &format!(
            "{INITIATOR} {TARGET} HeaderDigest=None,CRC32C DataDigest=None,CRC32C \
             ErrorRecoveryLevel=2 InitialR2T=No ImmediateData=Yes MaxRecvDataSegmentLength=65536 \
             MaxBurstLength=262144 FirstBurstLength=65536 MaxConnections=1 \
             DataPDUInOrder=Yes DataSequenceInOrder=Yes DefaultTime2Wait=0 DefaultTime2Retain=60 \
             MaxOutstandingR2T=16 X-com.vmware.datadigest=1"
        ),
    );
    peer.asks();
    let (response, parameters) = peer.admitted(7);
    assert_eq!(
        response,
        "O>F: X-com.vmware.datadigest=NotUnderstood TargetPortalGroupTag=1 \
         MaxRecvDataSegmentLength=262144 HeaderDigest=None DataDigest=None ErrorRecoveryLevel=0 \
         InitialR2T=No ImmediateData=Yes MaxBurstLength=262144 MaxConnections=1 \
         DataPDUInOrder=Yes DataSequenceInOrder=Yes DefaultTime2Wait=0 DefaultTime2Retain=0 \
         MaxOutstandingR2T=8 FirstBurstLength=65536"
    );
    assert_eq!(parameters.keys.peer_data_segment, 65_536);
}

#[test]
fn task_reporting_and_protocol_level() {
    let mut peer = Peer::default();
    let keys = "TaskReporting=FastAbort,ResponseFence,RFC3720 iSCSIProtocolLevel=2";
    peer.send("O>F", &format!("{INITIATOR} {TARGET} {keys}"));
    peer.asks();
    let (response, parameters) = peer.admitted(7);
    assert!(response.ends_with("TaskReporting=FastAbort iSCSIProtocolLevel=2"));
    assert_eq!(parameters.keys.task_reporting, TaskReporting::FastAbort);
    assert_eq!(parameters.keys.protocol_level, 2);
}

#[test]
fn a_target_alias_is_told_in_normal_sessions() {
    let named = TargetNode {
        alias: Some("Lab disk".into()),
        ..(*node('a', NodeAccess::default())).clone()
    };
    let config = config(vec![Arc::new(named)]);
    let mut peer = Peer::new(&config);
    peer.opens(
        "S>O",
        "",
        "S>O: TargetPortalGroupTag=1 TargetAlias=Lab disk",
    );
    let mut peer = Peer::new(&config);
    let text = format!("{INITIATOR} SessionType=Discovery");
    peer.exchange("S>O", &text, "S>O: TargetPortalGroupTag=1");
}

#[test]
fn names_are_compared_in_lower_case() {
    let mut peer = Peer::default();
    peer.send(
        "O>F",
        "InitiatorName=iqn.2026-01.TEST:Ini TargetName=IQN.2026-11.org.Lunar:A",
    );
    let (initiator, node, _) = peer.asks();
    assert_eq!(initiator.name, "iqn.2026-01.test:ini");
    assert_eq!(node.as_deref(), Some("iqn.2026-11.org.lunar:a"));
}
