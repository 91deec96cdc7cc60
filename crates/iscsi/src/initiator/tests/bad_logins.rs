//! Targets that answer a login wrongly, one step after the other.

use super::logins::chap;
use super::rig::{AGREED, ISID, Rig, config};
use crate::initiator::Initiator;
use crate::initiator::config::{Auth, Digest, InitiatorConfig, InitiatorPurpose, Misconfigured};
use crate::initiator::error::{ChapError, LoginError, SessionEnd};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::login::LoginResponse;
use crate::wire::serial::{CmdSn, StatSn};

/// What the login ended with, as it is shown.
fn told(rig: &mut Rig) -> String {
    match rig.end() {
        SessionEnd::Login(error) => error.to_string(),
        other => panic!("{other:?} where a failed login was expected"),
    }
}

#[track_caller]
fn tells(rig: &mut Rig, expected: &str) {
    let told = told(rig);
    assert!(told.contains(expected), "{expected}: {told}");
}

#[test]
fn every_refusal_says_what_to_do() {
    let stories = [
        (0x0200, "see its log"),
        (
            0x0201,
            "requires CHAP: give a user and secret (status 0201)",
        ),
        (
            0x0202,
            "add iqn.2026-11.org.lunar:initiator to its access list (status 0202)",
        ),
        (0x0203, "this portal has no such target"),
        (0x0204, "was removed"),
        (0x0205, "another version"),
        (0x0206, "too many connections"),
        (0x0207, "requires a parameter"),
        (0x0208, "cannot add this connection"),
        (0x0209, "this type of session"),
        (0x020a, "log in again"),
        (0x020b, "something other than a Login Request"),
        (0x02ee, "refused the login (status 02ee)"),
        (0x0300, "the target failed"),
        (0x0301, "try again later"),
        (0x0302, "accepts no more sessions"),
        (0x03ee, "try again later (status 03ee)"),
        (0x7777, "refused the login (status 7777)"),
    ];
    for (status, expected) in stories {
        let mut rig = Rig::begun(config());
        let mut pdu = rig.login_pdu(0, None);
        pdu.status = status;
        // Not valid where the login fails.
        pdu.stamps.stat_sn = StatSn(0);
        rig.send(pdu.encode(), &[]);
        let told = told(&mut rig);
        assert!(told.contains(expected), "{status:04x}: {told}");
    }
}

#[test]
fn a_wrong_secret() {
    let mut rig = Rig::challenging(chap(false));
    let mut pdu = rig.login_pdu(0, None);
    pdu.status = 0x0201;
    rig.send(pdu.encode(), &[]);
    let told = told(&mut rig);
    assert!(
        told.contains("rejected CHAP user \"user\" or its secret: check both"),
        "{told}"
    );
}

#[test]
fn headers_that_cannot_be() {
    type Spoil = fn(&mut LoginResponse);
    let stories: [(Spoil, &str); 10] = [
        (|pdu| pdu.itt = Itt(1), "another Initiator Task Tag"),
        (|pdu| pdu.isid[5] = 2, "another ISID"),
        (
            |pdu| pdu.version_active = 1,
            "a version that was not offered",
        ),
        (|pdu| pdu.current = 1, "of another stage"),
        (
            |pdu| (pdu.transit, pdu.more, pdu.next) = (true, true, 1),
            "the T bit and the C bit together",
        ),
        (|pdu| (pdu.transit, pdu.next) = (true, 3), "not requested"),
        (|pdu| (pdu.transit, pdu.next) = (true, 0), "not requested"),
        (|pdu| pdu.stamps.exp_cmd_sn = CmdSn(102), "ExpCmdSN beyond"),
        (|pdu| pdu.status = 0x0101, "without giving an address"),
        (|pdu| pdu.status = 0x0102, "without giving an address"),
    ];
    for (spoil, expected) in stories {
        let mut rig = Rig::begun(config());
        let mut pdu = rig.login_pdu(0, None);
        spoil(&mut pdu);
        rig.send_text(pdu.encode(), "AuthMethod=None|");
        tells(&mut rig, expected);
    }
}

#[test]
fn a_second_response_out_of_count() {
    let mut rig = Rig::negotiating(config());
    rig.stat_sn += 1;
    rig.login(1, Some(3), AGREED);
    tells(&mut rig, "a StatSN that is not the next one");
}

#[test]
fn a_session_without_a_handle() {
    let mut rig = Rig::negotiating(config());
    let mut pdu = rig.login_pdu(1, Some(3));
    pdu.tsih = 0;
    rig.send_text(pdu.encode(), AGREED);
    tells(&mut rig, "without a TSIH");
}

#[test]
fn pdus_that_are_no_login_response() {
    let stories = [
        (Opcode::NopIn, "must not send in this phase"),
        (Opcode::LoginRequest, "must not send in this phase"),
        (Opcode::Other(0x3c), "unassigned opcode"),
    ];
    for (opcode, expected) in stories {
        let mut rig = Rig::begun(config());
        rig.send(Bhs::new(opcode), &[]);
        tells(&mut rig, expected);
    }
    let mut rig = Rig::new(config());
    let bhs = rig.initiator_response_of(8193);
    rig.send(bhs, &[0; 8193]);
    tells(&mut rig, "longer than MaxRecvDataSegmentLength");
    let mut rig = Rig::new(config());
    let mut bhs = rig.initiator_response_of(0);
    bhs.set_ahs_len(4);
    // It is not waited for.
    rig.give(&bhs.0);
    tells(&mut rig, "additional header segment");
}

impl Rig {
    fn initiator_response_of(&mut self, len: u32) -> Bhs {
        let mut bhs = self.login_pdu(0, None).encode();
        bhs.set_data_len(len);
        bhs
    }
}

#[test]
fn security_answers_that_cannot_be() {
    let stories = [
        (
            "AuthMethod=CHAP|",
            "AuthMethod=CHAP although None was offered",
        ),
        (
            "AuthMethod=Reject|",
            "AuthMethod=Reject although None was offered",
        ),
        (
            "AuthMethod=None|AuthMethod=None|",
            "AuthMethod=None a second time",
        ),
        ("AuthMethod=None|CHAP_A=7|", "unexpected CHAP keys"),
        ("HeaderDigest=None|", "in a stage that does not allow it"),
        (
            "InitiatorName=iqn.2026-11.org.x:y|",
            "which only initiators send",
        ),
        ("TargetPortalGroupTag=65536|", "which is not a tag"),
        (
            "AuthMethod",
            "a key=value pair without its terminating null",
        ),
        ("AuthMethod|", "a key without a value"),
    ];
    for (text, expected) in stories {
        let mut rig = Rig::begun(config());
        rig.login(0, Some(1), text);
        let told = told(&mut rig);
        assert!(told.contains(expected), "{text}: {told}");
    }
}

#[test]
fn chap_answers_that_cannot_be() {
    let stories = [
        ("", ChapError::Missing("CHAP_A")),
        (
            "CHAP_A=9|CHAP_I=1|CHAP_C=0x01|",
            ChapError::Hash("9".into()),
        ),
        (
            "CHAP_A=5,7|CHAP_I=1|CHAP_C=0x01|",
            ChapError::Hash("5,7".into()),
        ),
        ("CHAP_A=7|CHAP_C=0x01|", ChapError::Missing("CHAP_I")),
        (
            "CHAP_A=7|CHAP_I=256|CHAP_C=0x01|",
            ChapError::Malformed("CHAP_I"),
        ),
        ("CHAP_A=7|CHAP_I=1|", ChapError::Missing("CHAP_C")),
        (
            "CHAP_A=7|CHAP_I=1|CHAP_C=01|",
            ChapError::Malformed("CHAP_C"),
        ),
        (
            "CHAP_A=7|CHAP_I=1|CHAP_C=0x|",
            ChapError::Malformed("CHAP_C"),
        ),
    ];
    for (text, expected) in stories {
        let mut rig = Rig::challenging(chap(false));
        rig.login(0, None, text);
        assert_eq!(rig.end(), SessionEnd::Login(expected.into()), "{text}");
    }
    for text in [
        "AuthMethod=None|",
        "AuthMethod=Reject|",
        "AuthMethod=KRB5|",
        "",
    ] {
        let mut rig = Rig::begun(chap(false));
        rig.login(0, None, text);
        assert_eq!(
            rig.end(),
            SessionEnd::Login(ChapError::NoMethod.into()),
            "{text}"
        );
    }
}

#[test]
fn a_weak_hash_is_not_taken() {
    let mut config = chap(false);
    if let Auth::Chap(chap) = &mut config.auth {
        chap.hashes
            .retain(|hash| *hash >= crate::auth::Hash::Sha256);
    }
    let mut rig = Rig::begun(config);
    rig.login(0, None, "AuthMethod=CHAP|");
    rig.sends(["Login 0 CHAP_A=8,7|"]);
    rig.login(0, None, "CHAP_A=5|CHAP_I=1|CHAP_C=0x01|");
    assert_eq!(
        rig.end(),
        SessionEnd::Login(ChapError::Hash("5".into()).into())
    );
}

#[test]
fn values_that_do_not_follow_from_the_offer() {
    let stories = [
        ("HeaderDigest=CRC32C,None|", "§13.1"),
        ("HeaderDigest=MD5|", "§13.1"),
        ("MaxConnections=2|", "§13.2"),
        ("InitialR2T=Maybe|", "§13.10"),
        ("MaxRecvDataSegmentLength=511|", "§13.12"),
        ("MaxRecvDataSegmentLength=16777216|", "§13.12"),
        ("MaxBurstLength=2049|", "§13.13"),
        ("MaxBurstLength=511|", "§13.13"),
        ("FirstBurstLength=1025|", "§13.14"),
        ("DefaultTime2Wait=1|", "§13.15"),
        ("DefaultTime2Wait=3601|", "§13.15"),
        ("DefaultTime2Retain=1|", "§13.16"),
        ("MaxOutstandingR2T=3|", "§13.17"),
        ("MaxOutstandingR2T=0|", "§13.17"),
        ("DataPDUInOrder=No|", "§13.18"),
        ("DataSequenceInOrder=No|", "§13.19"),
        ("ErrorRecoveryLevel=1|", "§13.20"),
        ("TaskReporting=FastAbort|", "§13.23"),
        ("iSCSIProtocolLevel=3|", "§7.1.1"),
        ("MaxBurstLength=NotUnderstood|", "§6.2"),
        ("ErrorRecoveryLevel=Irrelevant|", "§6.2"),
        ("SendTargets=All|", "which only initiators send"),
        ("CHAP_A=7|", "in a stage that does not allow it"),
    ];
    for (text, expected) in stories {
        let mut rig = Rig::negotiating(config());
        rig.login(1, Some(3), text);
        let told = told(&mut rig);
        let pair = text.trim_end_matches('|');
        assert!(
            told.contains(expected) && told.contains(pair),
            "{text}: {told}"
        );
    }
    let mut config = config();
    config.offer.keys.immediate_data = false;
    let mut rig = Rig::new(config);
    rig.sent();
    rig.login(0, Some(1), "AuthMethod=None|");
    rig.sent();
    rig.login(1, Some(3), "ImmediateData=Yes|");
    tells(&mut rig, "ImmediateData=Yes");
}

#[test]
fn answers_that_leave_the_default() {
    let text = "TaskReporting=NotUnderstood|iSCSIProtocolLevel=NotUnderstood|\
        FirstBurstLength=Irrelevant|MaxBurstLength=Reject|HeaderDigest=Reject|";
    let rig = Rig::logged_in(config(), text);
    assert_eq!(rig.keys().protocol_level, 1);
    assert_eq!(rig.keys().max_burst, 262_144);
    assert!(!rig.keys().header_digest);
}

#[test]
fn a_digest_that_is_required_and_not_offered() {
    for answer in ["HeaderDigest=Reject|", "HeaderDigest=None|", ""] {
        let mut config = config();
        config.offer.header_digest = Digest::Require;
        let mut rig = Rig::negotiating(config);
        rig.login(1, Some(3), answer);
        tells(&mut rig, "HeaderDigest=CRC32C, which is required");
    }
}

#[test]
fn a_login_without_end() {
    let mut rig = Rig::new(config());
    let mut requests = 0;
    while !rig.sent().is_empty() {
        requests += 1;
        assert!(requests < 100, "it goes on");
        rig.login(0, None, "");
    }
    tells(&mut rig, "a login that does not complete");
}

#[test]
fn text_in_answer_to_a_c_bit() {
    let mut rig = Rig::begun(config());
    let keys: Vec<String> = (0..400).map(|at| format!("X-key-{at}=1|")).collect();
    rig.login(0, None, &keys.concat());
    rig.sent();
    rig.login(0, None, "AuthMethod=None|");
    tells(&mut rig, "text in response to a C bit");
}

#[test]
fn a_redirect_to_nowhere() {
    for address in ["", "[::1", "host:0", "host:x", "host name", "::1:3260"] {
        let mut rig = Rig::begun(config());
        let mut pdu = rig.login_pdu(0, None);
        pdu.status = 0x0101;
        rig.send_text(pdu.encode(), &format!("TargetAddress={address}|"));
        let error = rig.end();
        assert!(
            matches!(error, SessionEnd::Login(LoginError::Key { .. })),
            "{address}: {error:?}"
        );
    }
}

#[test]
fn a_target_that_closes_the_connection() {
    for (config, expected) in [
        (config(), "if it requires CHAP"),
        (chap(false), "its log may say why"),
    ] {
        let mut rig = Rig::begun(config);
        rig.initiator.lost();
        tells(&mut rig, expected);
    }
}

/// A web server's answer, and zeros.
#[test]
fn what_is_not_a_target_is_told() {
    let page = format!("HTTP/1.1 400 Bad Request\r\n\r\n{}", "x".repeat(400));
    for answer in [page.as_bytes(), &[0; 48]] {
        let mut rig = Rig::begun(config());
        rig.initiator.receive(rig.now, answer);
        let told = told(&mut rig);
        let words = "does not speak iSCSI: check host and port";
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn text_of_a_target_can_be_shown() {
    let mut rig = Rig::begun(config());
    rig.login(
        0,
        Some(1),
        &format!("AuthMethod=\x1b[2J{}|", "x".repeat(300)),
    );
    let told = told(&mut rig);
    assert!(told.len() < 250 && !told.contains('\x1b'), "{told}");
}

#[test]
fn configurations_that_cannot_work() {
    type Spoil = fn(&mut InitiatorConfig);
    let stories: [(Spoil, &str); 9] = [
        (
            |c| c.initiator = "nobody".into(),
            "\"nobody\" is not an iSCSI name",
        ),
        (
            |c| c.purpose = InitiatorPurpose::Normal("iqn.x".into()),
            "\"iqn.x\"",
        ),
        (|c| c.alias = Some("a\0b".into()), "an alias"),
        (|c| c.limits.tasks = 0, "1 to 32768 commands"),
        (
            |c| c.offer.keys.first_burst = 4096,
            "set it to at most 2048",
        ),
        (
            |c| c.offer.keys.max_burst = 511,
            "MaxBurstLength cannot be 511",
        ),
        (
            |c| c.offer.keys.own_data_segment = 1 << 24,
            "MaxRecvDataSegmentLength cannot be 16777216",
        ),
        (
            |c| c.offer.keys.outstanding_r2t = 0,
            "MaxOutstandingR2T cannot be 0",
        ),
        (
            |c| c.offer.keys.time2wait = 3601,
            "DefaultTime2Wait cannot be 3601",
        ),
    ];
    for (spoil, expected) in stories {
        let mut config = config();
        spoil(&mut config);
        let told = config.check().unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
        let random = [0; 37];
        let now = std::time::Duration::ZERO;
        assert!(Initiator::<scsi::medium::HeapLease>::new(config.into(), now, random).is_err());
    }
    let mut config = chap(true);
    if let Auth::Chap(chap) = &mut config.auth {
        chap.mutual.as_mut().unwrap().secret = chap.secret.clone();
    }
    assert_eq!(config.check(), Err(Misconfigured::SharedSecret));
    if let Auth::Chap(chap) = &mut config.auth {
        chap.mutual = None;
        chap.user.clear();
    }
    assert_eq!(config.check(), Err(Misconfigured::Credentials));
    assert!(!format!("{:?}", chap(true)).contains("secret of"));
    assert_eq!(
        InitiatorConfig::normal("iqn.2026-11.org.x:y", ISID, "eui.0123456789abcdef").check(),
        Ok(())
    );
}
