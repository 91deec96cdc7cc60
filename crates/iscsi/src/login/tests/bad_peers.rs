//! Peers that break rules: each is told, where the RFC says so, and logged with the rule.

use super::*;

/// One first request that must fail.
#[track_caller]
fn first_fails(head: &str, text: &str, status: u16, rule: &str, clause: &str) {
    let mut peer = Peer::default();
    peer.exchange(head, text, &format!("reject {status:04x}"));
    assert_eq!(
        peer.closes(),
        Violation {
            rule: leak(rule),
            clause: leak(clause)
        }
    );
}

/// One first request of which the text after the names is invalid.
#[track_caller]
fn first_invalid(head: &str, more: &str, rule: &str, clause: &str) {
    first_fails(head, &with_names(more), 0x0200, rule, clause);
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// Names for a first text.
fn with_names(more: &str) -> String {
    format!("{INITIATOR} {TARGET} {more}")
}

#[test]
fn names_that_are_missing_unknown_or_not_allowed() {
    let rfc = "RFC 7143 §13.4";
    first_fails("O>F", TARGET, 0x0207, "no InitiatorName", "RFC 7143 §13.5");
    first_fails("O>F", "", 0x0207, "no InitiatorName", "RFC 7143 §13.5");
    first_fails("O>F", INITIATOR, 0x0207, "no TargetName", rfc);
    first_fails("S>O", INITIATOR, 0x0207, "no TargetName", rfc);
    let to = |name: &str| format!("{INITIATOR} TargetName={name}");
    let (unknown, none) = ("an unknown target", "RFC 7143 §11.13.5");
    first_fails("O>F", &to("iqn.2026-11.org.lunar:z"), 0x0203, unknown, none);
    first_fails("O>F", &to("z"), 0x0203, unknown, none);
    first_fails("O>F", &to(""), 0x0203, unknown, none);
    let (denied, list) = ("an initiator that is not allowed", "--allow");
    first_fails("O>F", &to("iqn.2026-11.org.lunar:b"), 0x0202, denied, list);
    let named = format!("{} SessionType=Discovery", to("iqn.2026-11.org.lunar:b"));
    first_fails("O>F", &named, 0x0202, denied, list);
    let bad = format!("InitiatorName=iqn.bad {TARGET}");
    let rule = "an InitiatorName that is not an iSCSI name";
    first_fails("O>F", &bad, 0x0200, rule, "RFC 7143 §4.2.7");
    first_fails(
        "O>F",
        &with_names("SessionType=Special"),
        0x0209,
        "an unknown SessionType",
        "RFC 7143 §13.21",
    );
}

/// Its name is what has to go on the list, and its host cannot tell it.
#[test]
fn an_initiator_that_is_not_allowed_is_named() {
    let mut peer = Peer::default();
    let names = format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:b");
    peer.send("O>F", &names);
    assert_eq!(peer.login.claimed(), Some("iqn.2026-01.test:ini"));
}

#[test]
fn authentication_that_is_needed() {
    let to_c = |more: &str| format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c {more}");
    let rule = "a login without the required authentication";
    first_fails("O>F", &to_c(""), 0x0201, rule, "RFC 7143 §6.3.1");
    let rule = "no acceptable authentication method";
    first_fails("S>O", &to_c(""), 0x0201, rule, "RFC 7143 §6.3.2");
    first_fails(
        "S>O",
        &to_c("AuthMethod=None"),
        0x0201,
        rule,
        "RFC 7143 §6.3.2",
    );
    let rule = "no sufficiently strong CHAP hash";
    first_fails(
        "S",
        &to_c("AuthMethod=CHAP CHAP_A=1"),
        0x0201,
        rule,
        "RFC 7143 §12.1.3",
    );
    let rule = "a malformed CHAP exchange";
    first_fails(
        "S",
        &to_c("CHAP_N=user1 CHAP_R=0x00"),
        0x0200,
        rule,
        "RFC 7143 §12.1.3",
    );

    let mut peer = Peer::default();
    peer.send("S", &to_c("AuthMethod=CHAP CHAP_A=5"));
    peer.recv();
    peer.exchange(
        "S>O",
        "CHAP_N=user1 CHAP_R=0x00112233445566778899aabbccddeeff",
        "reject 0201",
    );
    peer.breaks("CHAP authentication failed");
    let claimed = "iqn.2026-01.test:ini, user \"user1\"";
    assert_eq!(peer.login.claimed(), Some(claimed));
}

/// A challenge is only good once: the second answer has none to answer.
#[test]
fn a_second_guess_needs_a_second_connection() {
    let mut peer = Peer::default();
    let text = format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c AuthMethod=CHAP CHAP_A=5");
    peer.send("S", &text);
    peer.recv();
    peer.exchange("S", "CHAP_A=5", "reject 0200");
    peer.breaks("a key sent twice");
}

#[test]
fn skipping_the_response_does_not_end_the_stage() {
    let mut peer = Peer::default();
    let text = format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c AuthMethod=CHAP CHAP_A=5");
    peer.send("S>F", &text);
    assert!(peer.recv().starts_with("S: "));
    peer.exchange("S>F", "", "S:");
    peer.exchange("S>O", "", "S:");
    peer.exchange("O>F", "", "reject 0200");
    peer.breaks("a Login Request of another stage");
}

#[test]
fn keys_out_of_place() {
    let misplaced = "a key in a stage that does not allow it";
    let rfc = "RFC 7143 §6.3";
    first_invalid("S>O", "InitialR2T=No", misplaced, rfc);
    first_invalid("O>F", "AuthMethod=None", misplaced, rfc);
    first_invalid("O>F", "SendTargets=All", misplaced, rfc);
    first_invalid(
        "O>F",
        "InitialR2T=No InitialR2T=No",
        "a key sent twice",
        rfc,
    );
    first_invalid("O>F", INITIATOR, "a key sent twice", rfc);
    first_invalid(
        "O>F",
        "TargetAlias=x",
        "a key that only targets send",
        "RFC 7143 §13",
    );
    first_invalid(
        "O>F",
        "MaxBurstLength=Irrelevant",
        "a reserved word as a proposal",
        "RFC 7143 §6.2",
    );
    first_invalid(
        "O>F",
        "MaxRecvDataSegmentLength=511",
        "a declared value out of bounds",
        "RFC 7143 §7.12",
    );
}

#[test]
fn a_key_negotiated_twice_in_a_stage() {
    let mut peer = Peer::default();
    peer.send("O", &with_names("MaxBurstLength=65536"));
    peer.recv();
    peer.exchange("O>F", "MaxBurstLength=131072", "reject 0200");
    peer.breaks("a key sent twice");
}

#[test]
fn stages_that_do_not_exist_or_follow() {
    let rfc = "RFC 7143 §6.3";
    let names = &with_names("");
    for head in ["S>S", "O>O", "O>S", "S>X"] {
        first_fails(head, names, 0x0200, "a next stage that cannot follow", rfc);
    }
    for head in ["X", "F", "F>F"] {
        first_fails(
            head,
            names,
            0x0200,
            "a reserved current stage",
            "RFC 7143 §11.12.3",
        );
    }
    first_fails(
        "O>F C",
        names,
        0x0200,
        "the T bit and the C bit together",
        "RFC 7143 §11.12.2",
    );
    let mut peer = Peer::default();
    peer.exchange("S", names, "S: TargetPortalGroupTag=1");
    peer.exchange("O>F", "", "reject 0200");
    peer.breaks("a Login Request of another stage");
}

#[test]
fn a_version_that_we_do_not_speak() {
    let mut peer = Peer::default();
    (peer.next.version_min, peer.next.version_max) = (1, 2);
    peer.exchange("O>F", &with_names(""), "reject 0205");
    assert_eq!(peer.closes().clause, "RFC 7143 §11.12.4");

    let mut peer = Peer::default();
    peer.next.version_max = 2;
    peer.send("O>F", &with_names(""));
    peer.asks();
}

#[test]
fn headers_that_change_within_a_login() {
    type Change = fn(&mut LoginRequest);
    let changes: [(Change, &str); 6] = [
        (
            |next| next.itt = Itt(0x78),
            "another Initiator Task Tag within a login",
        ),
        (
            |next| next.isid[5] = 2,
            "another ISID, TSIH or CID within a login",
        ),
        (
            |next| next.tsih = 2,
            "another ISID, TSIH or CID within a login",
        ),
        (
            |next| next.cid = 2,
            "another ISID, TSIH or CID within a login",
        ),
        (
            |next| next.version_max = 1,
            "another version within a login",
        ),
        (|next| next.version_min = 1, "an unsupported version"),
    ];
    for (change, rule) in changes {
        let mut peer = Peer::default();
        peer.passes_security();
        let first = peer.next;
        change(&mut peer.next);
        peer.send("O>F", "");
        peer.next = first;
        assert!(peer.recv().starts_with("reject 02"));
        peer.breaks(rule);
    }
}

#[test]
fn texts_that_are_malformed() {
    let rfc = "RFC 7143 §6.1";
    first_invalid("O>F", "Foo", "a key without a value", rfc);
    first_invalid("O>F", "=1", "an invalid key name", rfc);
    let mut peer = Peer::default();
    peer.exchange("O C", &with_names("InitialR2T=No"), "O:");
    peer.exchange("O>F", "", "reject 0200");
    peer.breaks("a key=value pair without its terminating null");
}

/// CVE-2013-2850: a key of any length was echoed in the answer `key=NotUnderstood`.
#[test]
fn a_key_that_is_too_long_is_not_echoed() {
    first_invalid(
        "O>F",
        &format!("X-{}=1", "a".repeat(7000)),
        "an invalid key name",
        "RFC 7143 §6.1",
    );
}

/// CVE-2010-0743: what a peer sent was used as a format of a line in the log. Here no line about a
/// broken rule has any of it: rules are texts of ours, and a peer is told by its address.
#[test]
fn nothing_that_a_peer_sends_is_told_with_the_rule_that_it_broke() {
    let mut told = 0;
    for mark in ["%s%n%n", "{}{0}", "\x1b[2J", "line\nbreak"] {
        let texts = [
            format!("InitiatorName=iqn.2026-11.org.example:{mark} {TARGET}"),
            format!("{INITIATOR} TargetName=iqn.2026-11.org.example:{mark}"),
            with_names(&format!("SessionType={mark}")),
            with_names(&format!("X{mark}=1")),
            with_names(&format!("MaxBurstLength={mark}")),
            format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:c AuthMethod={mark}"),
        ];
        for (head, text) in texts.iter().flat_map(|text| [("S>O", text), ("O>F", text)]) {
            let mut peer = Peer::default();
            peer.send(head, text);
            peer.recv();
            if let Some(LoginEvent::Close(Violation { rule, clause })) = peer.event() {
                assert!(!rule.contains(mark) && !clause.contains(mark), "{rule}");
                assert!(!rule.contains(char::is_control), "{rule}");
                told += 1;
            }
        }
    }
    assert!(told > 20, "{told} lines");
}

/// CVE-2021-28361: an empty PDU with the C bit. It is legal, but not for ever.
#[test]
fn empty_requests_with_the_c_bit_end_some_time() {
    let mut peer = Peer::default();
    for _ in 0..64 {
        peer.exchange("O C", "", "O:");
    }
    peer.exchange("O C", "", "reject 0200");
    peer.breaks("a login that does not complete");
}

#[test]
fn a_text_without_end() {
    let mut peer = Peer::default();
    peer.exchange("O C", &"x".repeat(8192), "O:");
    peer.exchange("O C", &"x".repeat(8192), "O:");
    peer.exchange("O C", "x", "reject 0200");
    peer.breaks("a text over 16384 bytes");
}

#[test]
fn a_data_segment_over_the_default_closes() {
    let mut peer = Peer::default();
    peer.exchange("O C", &"x".repeat(8193), "");
    peer.breaks("a Login Request over 8192 bytes");
}

/// spdk/spdk #3927: a scanner sends something else before the login.
#[test]
fn any_other_pdu_before_login_closes_at_once() {
    for code in (0..0x40).filter(|code| *code != 0x03) {
        let mut peer = Peer::default();
        let mut bhs = Bhs::new(Opcode::from_code(code));
        bhs.set_data_len(0x00ff_ffff);
        peer.send_bytes(&bhs.0);
        assert_eq!(peer.recv(), "", "{code:02x}");
        let violation = peer.closes();
        assert_eq!(
            violation.rule,
            "a PDU other than a Login Request before login"
        );
        assert_eq!(violation.clause, "RFC 7143 §4.2.4");
    }
}

#[test]
fn any_other_pdu_during_login_is_invalid() {
    for code in (0..0x40).filter(|code| *code != 0x03) {
        let mut peer = Peer::default();
        peer.passes_security();
        peer.send_bytes(&pdu(Bhs::new(Opcode::from_code(code)), b"data"));
        assert_eq!(peer.recv(), "reject 020b", "{code:02x}");
        assert_eq!(peer.closes().clause, "RFC 7143 §4.2.4");
    }
}

#[test]
fn two_requests_at_once() {
    let mut peer = Peer::default();
    let mut bytes = peer.request("S>O", &with_names(""));
    bytes.extend_from_slice(&peer.request("O>F", ""));
    peer.send_bytes(&bytes);
    assert_eq!(peer.recv(), "S>O: TargetPortalGroupTag=1\nreject 0200");
    peer.breaks("a Login Request before the last was answered");
}

#[test]
fn an_additional_header_segment() {
    let mut peer = Peer::default();
    let mut bytes = peer.request("O>F", &with_names(""));
    bytes[4] = 1;
    bytes.splice(BHS_LEN..BHS_LEN, [0; 4]);
    peer.send_bytes(&bytes);
    assert_eq!(peer.recv(), "reject 0200");
    peer.breaks("an additional header segment in a Login Request");
}

#[test]
fn junk_costs_nothing_and_ends() {
    for junk in [
        &b"GET / HTTP/1.1\r\nHost: target\r\nUser-Agent: scanner\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        &[0xff; 200],
    ] {
        let mut peer = Peer::default();
        peer.send_bytes(junk);
        assert_eq!(peer.recv(), "");
        peer.closes();
    }
    let mut peer = Peer::default();
    peer.send_bytes(&[0x43, 0x87, 0, 0]);
    assert!(
        peer.event().is_none(),
        "half a header waits for the deadline"
    );
    assert!(peer.login.next_deadline().is_some());
}

mod any_bytes {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever comes, a login neither panics nor sends without bound.
        #[test]
        fn are_survived(
            requests in proptest::collection::vec(
                ("[SOFX](>[SOFX])?( C)?", "[A-Za-z0-9=,_ .:-]{0,200}"), 1..20,
            ),
            names: bool,
        ) {
            let mut peer = Peer::default();
            if names {
                peer.send("S", &with_names(""));
                peer.recv();
            }
            for (head, text) in requests {
                let bytes = peer.request(&head, &text);
                peer.login.receive(Duration::ZERO, &bytes);
                peer.recv();
                if let Some(LoginEvent::Session { .. }) = peer.event() {
                    peer.login.refuse(0x0302);
                }
            }
        }

        #[test]
        fn unstructured_are_survived(bytes: Vec<u8>) {
            let mut peer = Peer::default();
            peer.login.receive(Duration::ZERO, &bytes);
            peer.login.transmit(&mut peer.sent);
            prop_assert!(peer.sent.0.len() <= BHS_LEN);
        }
    }
}
