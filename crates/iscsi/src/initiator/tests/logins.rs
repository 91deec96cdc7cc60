//! Logins, as packet traces.

use zeroize::Zeroizing;

use super::rig::stories::over_both_transports;
use super::rig::{AGREED, INITIATOR, ISID, Rig, TARGET, config, random};
use crate::auth::Hash;
use crate::initiator::InitiatorEvent;
use crate::initiator::config::{Auth, Digest, InitiatorChap, InitiatorConfig, Mutual};
use crate::initiator::error::{ChapError, LoginError, SessionEnd};
use crate::initiator::portal::ReportedPortal;
use crate::text::{binary, hex};

const SECRET: &[u8] = b"a secret of twenty o";
const THEIRS: &[u8] = b"another secret, yes.";

pub(super) fn chap(mutual: bool) -> InitiatorConfig {
    let mut config = config();
    config.auth = Auth::Chap(InitiatorChap {
        user: "user".into(),
        secret: Zeroizing::new(SECRET.to_vec()),
        mutual: mutual.then(|| Mutual {
            name: Some("them".into()),
            secret: Zeroizing::new(THEIRS.to_vec()),
        }),
        hashes: crate::initiator::config::HASHES.to_vec(),
    });
    config
}

pub(super) const HASHES: [Hash; 4] = [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Sha3];

/// A value out of a line of text.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    let start = line.find(key).unwrap_or_else(|| panic!("{key} in {line}")) + key.len() + 1;
    line[start..].split('|').next().unwrap()
}

#[test]
fn plain() {
    let mut rig = Rig::new(config());
    rig.sends([format!(
        "Login 0 T 1 InitiatorName={INITIATOR}|SessionType=Normal|TargetName={TARGET}|\
             AuthMethod=None|"
    )]);
    rig.login(
        0,
        Some(1),
        "TargetPortalGroupTag=1|AuthMethod=None|TargetAlias=th\x1bem|",
    );
    rig.sends([
        "Login 1 T 3 HeaderDigest=None,CRC32C|DataDigest=None,CRC32C|MaxConnections=1|\
          InitialR2T=No|ImmediateData=Yes|MaxRecvDataSegmentLength=4096|MaxBurstLength=2048|\
          FirstBurstLength=1024|DefaultTime2Wait=2|DefaultTime2Retain=0|MaxOutstandingR2T=2|\
          DataPDUInOrder=Yes|DataSequenceInOrder=Yes|ErrorRecoveryLevel=0|TaskReporting=RFC3720|\
          iSCSIProtocolLevel=2|",
    ]);
    rig.login(1, Some(3), AGREED);
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
    let outcome = rig.initiator.outcome().unwrap();
    assert_eq!((outcome.tsih, outcome.portal_group), (9, Some(1)));
    assert_eq!(outcome.alias.as_deref(), Some("them"));
    assert_eq!(outcome.hash, None);
    assert_eq!(outcome.keys.peer_data_segment, 512);
    assert_eq!(outcome.keys.own_data_segment, 4096);
    assert!(!outcome.keys.initial_r2t);
    assert!(rig.initiator.is_idle());
}

#[test]
fn discovery() {
    let mut rig = Rig::new(InitiatorConfig::discovery(INITIATOR, ISID));
    rig.sends([format!(
        "Login 0 T 1 InitiatorName={INITIATOR}|SessionType=Discovery|AuthMethod=None|"
    )]);
    rig.login(0, Some(1), "AuthMethod=None|");
    rig.sends([
        "Login 1 T 3 HeaderDigest=None,CRC32C|DataDigest=None,CRC32C|\
          MaxRecvDataSegmentLength=262144|DefaultTime2Wait=2|DefaultTime2Retain=0|\
          ErrorRecoveryLevel=0|",
    ]);
    rig.login(
        1,
        Some(3),
        "HeaderDigest=None|DataDigest=None|ErrorRecoveryLevel=0|",
    );
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
}

#[test]
fn chap_with_each_hash() {
    for hash in HASHES {
        let mut rig = Rig::new(chap(false));
        let sent = rig.sent();
        assert!(sent[0].starts_with("Login 0 Init"), "{sent:?}");
        assert!(sent[0].ends_with("AuthMethod=CHAP|"), "{sent:?}");
        rig.login(0, None, "TargetPortalGroupTag=1|AuthMethod=CHAP|");
        rig.sends(["Login 0 CHAP_A=8,7,6,5|"]);
        let number = hash as u8;
        rig.login(0, None, &format!("CHAP_A={number}|CHAP_I=7|CHAP_C=0x0102|"));
        let response = hex(&hash.response(7, SECRET, &[1, 2]));
        rig.sends([format!("Login 0 T 1 CHAP_N=user|CHAP_R={response}|")]);
        rig.login(0, Some(1), "");
        assert!(rig.sent()[0].starts_with("Login 1 T 3 HeaderDigest="));
        rig.login(1, Some(3), AGREED);
        assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
        assert_eq!(rig.initiator.outcome().unwrap().hash, Some(hash));
    }
}

/// Up to the answer that the target has to prove itself by: the hash's response to our challenge,
/// with this secret.
fn challenged(rig: &mut Rig, hash: Hash, secret: &[u8]) -> String {
    rig.sent();
    rig.login(0, None, "AuthMethod=CHAP|");
    rig.sent();
    let number = hash as u8;
    rig.login(0, None, &format!("CHAP_A={number}|CHAP_I=7|CHAP_C=0x0102|"));
    let line = rig.sent().remove(0);
    let identifier = value(&line, "CHAP_I").parse().unwrap();
    let challenge = binary(value(&line, "CHAP_C"), 1024).unwrap();
    assert_eq!(challenge.len(), hash.bytes());
    assert_eq!(challenge, random()[5..5 + hash.bytes()]);
    hex(&hash.response(identifier, secret, &challenge))
}

#[test]
fn mutual_chap_with_each_hash() {
    for hash in HASHES {
        let mut rig = Rig::new(chap(true));
        let response = challenged(&mut rig, hash, THEIRS);
        rig.login(0, Some(1), &format!("CHAP_N=them|CHAP_R={response}|"));
        assert!(rig.sent()[0].starts_with("Login 1 T 3 "));
    }
}

#[test]
fn mutual_chap_that_proves_another() {
    type Story = (&'static [u8], &'static str, fn(ChapError) -> bool);
    let stories: [Story; 4] = [
        (SECRET, "CHAP_N=them|CHAP_R=", |e| {
            e == ChapError::SharedSecret
        }),
        (b"wrong", "CHAP_N=them|CHAP_R=", |e| {
            e == ChapError::WrongResponse
        }),
        (THEIRS, "CHAP_N=others|CHAP_R=", |e| {
            e == ChapError::Name("others".into())
        }),
        (THEIRS, "CHAP_N=them|X-CHAP=", |e| e == ChapError::Unproven),
    ];
    for (secret, answer, expected) in stories {
        let mut rig = Rig::new(chap(true));
        let response = challenged(&mut rig, Hash::Sha256, secret);
        rig.login(0, Some(1), &format!("{answer}{response}|"));
        match rig.end() {
            SessionEnd::Login(LoginError::Chap(error)) => assert!(expected(error), "{answer}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn our_own_challenge_sent_back() {
    let mut rig = Rig::challenging(chap(true));
    let ours = hex(&random()[5..37]);
    rig.login(0, None, &format!("CHAP_A=7|CHAP_I=7|CHAP_C={ours}|"));
    assert_eq!(rig.end(), SessionEnd::Login(ChapError::Reflected.into()));
}

#[test]
fn a_target_that_needs_two_turns_for_a_stage() {
    let mut rig = Rig::begun(config());
    rig.login(0, None, "AuthMethod=None|");
    rig.sends(["Login 0 T 1 "]);
    rig.login(0, Some(1), "");
    rig.sent();
    rig.login(
        1,
        None,
        "X-com.example=1|MaxRecvDataSegmentLength=512|OFMarker=No|",
    );
    rig.sends(["Login 1 T 3 X-com.example=NotUnderstood|OFMarker=No|"]);
    rig.login(1, Some(3), "MaxBurstLength=1024|");
    assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
    let keys = rig.keys();
    assert_eq!((keys.max_burst, keys.first_burst), (1024, 1024));
    assert!(keys.initial_r2t, "what is not answered keeps its default");
}

/// RFC 7143 §6.2.2: where one side alone decides, the other need not answer. LIO does not.
#[test]
fn what_is_decided_by_the_offer_needs_no_answer() {
    let mut config = config();
    config.offer.keys.immediate_data = false;
    config.offer.keys.initial_r2t = true;
    let rig = Rig::logged_in(config, "MaxBurstLength=512|");
    assert!(!rig.keys().immediate_data);
    assert!(rig.keys().initial_r2t);
    assert!(rig.keys().pdu_in_order && rig.keys().sequence_in_order);
}

#[test]
fn text_of_the_target_in_two_parts() {
    let mut rig = Rig::begun(config());
    let mut part = rig.login_pdu(0, None);
    part.more = true;
    rig.send_text(part.encode(), "AuthMet");
    rig.sends(["Login 0 "]);
    rig.login(0, None, "hod=None|");
    rig.sends(["Login 0 T 1 "]);
}

#[test]
fn our_text_in_two_parts() {
    let mut rig = Rig::begun(config());
    let keys: Vec<String> = (0..400).map(|at| format!("X-key-{at}=1|")).collect();
    rig.login(0, None, &(keys.concat() + "AuthMethod=None|"));
    let sent = rig.sent();
    assert!(sent[0].starts_with("Login 0 C X-key-0=NotUnderstood|"));
    rig.login(0, None, "");
    let sent = rig.sent();
    assert!(sent[0].starts_with("Login 0 T 1 "), "{sent:?}");
    assert!(sent[0].ends_with("X-key-399=NotUnderstood|"), "{sent:?}");
}

#[test]
fn digests() {
    let mut config = config();
    config.offer.header_digest = Digest::Prefer;
    config.offer.data_digest = Digest::Require;
    let answer = [
        ("HeaderDigest=None", "HeaderDigest=CRC32C"),
        ("DataDigest=None", "DataDigest=CRC32C"),
    ];
    let mut rig = Rig::with(config, &answer);
    rig.test_unit(1);
    rig.sends(["Command #10000 F 28 0 [0+0]"]);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().status, 0);
}

over_both_transports! {
    #[test]
    fn a_target_that_moved() {
        for (status, permanent) in [(0x0101, false), (0x0102, true)] {
            let mut rig = Rig::begun(config());
            let mut pdu = rig.login_pdu(0, None);
            pdu.status = status;
            rig.send_text(pdu.encode(), "TargetAddress=[2001:db8::1]:860,7|");
            let address = ReportedPortal {
                host: "2001:db8::1".into(),
                port: 860,
                group: Some(7),
            };
            assert_eq!(rig.end(), SessionEnd::Redirected { address, permanent });
        }
    }
}

#[test]
fn a_login_has_a_deadline() {
    let mut rig = Rig::new(config());
    rig.wait(14);
    rig.quiet();
    rig.wait(1);
    rig.sends_nothing();
    assert_eq!(rig.end(), SessionEnd::Login(LoginError::Late));
}
