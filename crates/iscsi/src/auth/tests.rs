use super::*;
use crate::keys::{KeyPhase, KeySide, SeenKeys};
use crate::target::{AccessGroup, ChapUser, Initiators, TargetChap};
use crate::test_support::nulls;
use crate::text;

const RANDOM: [u8; 33] = {
    let mut random = [0; 33];
    random[0] = 7;
    let mut at = 1;
    while at < random.len() {
        random[at] = at as u8;
        at += 1;
    }
    random
};

const SECRET: &[u8] = b"initiator-secret";

/// CHAP_R to our challenge from `RANDOM` with `SECRET`, by hash; computed by Python's hashlib.
const RESPONSES: [(u8, &str); 4] = [
    (5, "0xb7b647fb02ad1f52a251ee090b464613"),
    (6, "0xddd7364933872d8d84c4f0236226d999307e8e35"),
    (
        7,
        "0x5cd4786537e4aa7dccdf2f535824c0889a595ffa4cfca31db6233c24a8cf7c5d",
    ),
    (
        8,
        "0xdb23e853384a4e7fa8294ec219785cc5034188718e78e30c3d0a022b8819798c",
    ),
];

const INITIATOR: &str = "iqn.2026-11.org.lunar:i";

fn user(name: &str, secret: &[u8]) -> ChapUser {
    ChapUser {
        name: name.into(),
        initiator: None,
        secret: secret.to_vec(),
    }
}

fn chap(mutual: Option<&[u8]>) -> TargetChap {
    TargetChap {
        users: vec![user("alice", SECRET), user("bob", b"another-secret")],
        mutual: mutual.map(|secret| ("storage".into(), secret.to_vec())),
        minimum: Hash::Md5,
    }
}

fn node(chap: Option<TargetChap>) -> Arc<TargetNode> {
    let initiators = Initiators::Everybody;
    Arc::new(TargetNode::new(
        "iqn.2026-11.org.lunar:a".into(),
        AccessGroup { initiators, chap }.into(),
    ))
}

fn realm(guarded: &[Arc<TargetNode>], open: bool) -> AuthRequirement {
    let admitted = |node| AdmittedNode::new(node, INITIATOR).unwrap();
    AuthRequirement {
        guarded: guarded.iter().map(admitted).collect(),
        open,
        initiator: INITIATOR.into(),
    }
}

fn guarded(mutual: Option<&[u8]>) -> AuthRequirement {
    realm(&[node(Some(chap(mutual)))], false)
}

fn open() -> AuthRequirement {
    realm(&[], true)
}

/// One text of the initiator, blanks in place of nulls, and what is answered.
fn step(
    exchange: ChapHandshake,
    realm: &AuthRequirement,
    text: &str,
) -> Result<(ChapHandshake, String), AuthRefusal> {
    let bytes = nulls(&format!("{text} "));
    let pairs = text::parse(&bytes).unwrap();
    let mut out = Text::default();
    let admitted =
        SeenKeys::default().admit(&pairs, KeyPhase::Security, KeySide::Initiator, &mut out);
    let exchange = exchange.step(&admitted.unwrap(), realm, &RANDOM, &mut out)?;
    let answer = String::from_utf8(out.next_segment(u32::MAX).0.to_vec()).unwrap();
    Ok((exchange, answer.replace('\0', " ").trim_end().to_owned()))
}

#[track_caller]
fn refuses(exchange: ChapHandshake, realm: &AuthRequirement, text: &str, why: AuthRefusal) {
    assert_eq!(step(exchange, realm, text).unwrap_err(), why, "{text}");
}

fn challenged(realm: &AuthRequirement, algorithms: &str) -> (ChapHandshake, String) {
    let text = format!("AuthMethod=CHAP CHAP_A={algorithms}");
    step(ChapHandshake::Open, realm, &text).unwrap()
}

fn md5() -> String {
    format!("CHAP_N=alice CHAP_R={}", RESPONSES[0].1)
}

#[test]
fn none_is_taken_where_nothing_is_guarded() {
    for (offer, answer) in [
        ("None", "None"),
        ("CHAP,None", "None"),
        ("KRB5,SRP,None", "None"),
    ] {
        let (exchange, text) =
            step(ChapHandshake::Open, &open(), &format!("AuthMethod={offer}")).unwrap();
        assert_eq!(text, format!("AuthMethod={answer}"));
        assert!(exchange.is_over(&open()));
    }
    assert!(
        ChapHandshake::Open.is_over(&open()),
        "an empty stage will do"
    );
}

#[test]
fn chap_must_be_done_where_it_is_configured() {
    let realm = guarded(None);
    let (exchange, text) = step(ChapHandshake::Open, &realm, "AuthMethod=None,CHAP").unwrap();
    assert_eq!(text, "AuthMethod=CHAP");
    assert!(!exchange.is_over(&realm));
    assert!(!ChapHandshake::Open.is_over(&realm));
    for offer in ["None", "", "KRB5", "chap", "SRP,None"] {
        refuses(
            ChapHandshake::Open,
            &realm,
            &format!("AuthMethod={offer}"),
            AuthRefusal::NoMethod,
        );
    }
    let refused = step(ChapHandshake::Open, &open(), "AuthMethod=CHAP");
    assert_eq!(
        refused.unwrap_err(),
        AuthRefusal::NoMethod,
        "nobody could be verified"
    );
}

#[test]
fn the_initiator_chooses_where_chap_is_optional() {
    let realm = AuthRequirement {
        open: true,
        ..guarded(None)
    };
    for (offer, answer) in [("CHAP,None", "CHAP"), ("None,CHAP", "None")] {
        let (_, text) = step(ChapHandshake::Open, &realm, &format!("AuthMethod={offer}")).unwrap();
        assert_eq!(text, format!("AuthMethod={answer}"));
    }
}

#[test]
fn the_strongest_hash_offered_is_taken() {
    for (offer, hash) in [
        ("5", Some(Hash::Md5)),
        ("5,6,7,8", Some(Hash::Sha3)),
        ("8,5", Some(Hash::Sha3)),
        ("5,7,6", Some(Hash::Sha256)),
        ("9,0x6,foo", Some(Hash::Sha1)),
        ("9", None),
        ("", None),
        ("05", None),
        ("261", None),
    ] {
        assert_eq!(Hash::strongest(offer, Hash::Md5), hash, "{offer}");
    }
    assert_eq!(Hash::strongest("5,6", Hash::Sha256), None);
    assert_eq!(Hash::strongest("5,6,7", Hash::Sha256), Some(Hash::Sha256));
}

#[test]
fn every_hash_is_computed_as_elsewhere() {
    for (number, response) in RESPONSES {
        let realm = guarded(None);
        let (exchange, text) = challenged(&realm, &number.to_string());
        assert!(text.starts_with(&format!(
            "AuthMethod=CHAP CHAP_A={number} CHAP_I=7 CHAP_C=0x0102"
        )));
        let answer = format!("CHAP_N=alice CHAP_R={response}");
        let (exchange, text) = step(exchange, &realm, &answer).unwrap();
        assert_eq!(text, "");
        assert!(exchange.is_over(&realm));
        let proof = exchange.into_proof().unwrap();
        assert_eq!(
            (proof.user.as_str(), proof.hash as u8, proof.nodes.len()),
            ("alice", number, 1)
        );
    }
}

/// A login of open-iscsi to LIO, from a capture.
#[test]
fn a_response_from_a_capture_is_right() {
    let challenge = text::binary("0x0673ab4cae701384657fc8a0d1627fd2", 16).unwrap();
    let response = Hash::Md5.response(0, b"secretsecret1", &challenge);
    assert_eq!(text::hex(&response), "0x6ecac15a5efd8e71de1716a817eeddce");
}

#[test]
fn a_response_in_base64_is_as_good() {
    let realm = guarded(None);
    let (exchange, _) = challenged(&realm, "5");
    assert!(
        step(
            exchange,
            &realm,
            "CHAP_N=alice CHAP_R=0bt7ZH+wKtH1KiUe4JC0ZGEw=="
        )
        .is_ok()
    );
}

#[test]
fn wrong_answers_are_all_refused_alike() {
    let realm = guarded(None);
    let right = RESPONSES[0].1;
    for answer in [
        format!("CHAP_N=bob CHAP_R={right}"),
        format!("CHAP_N=Alice CHAP_R={right}"),
        format!("CHAP_N= CHAP_R={right}"),
        format!("CHAP_N=alice CHAP_R={right}00"),
        format!("CHAP_N=alice CHAP_R={}", &right[..right.len() - 2]),
        format!("CHAP_N=alice CHAP_R={}", right.replace("b7b6", "b7b7")),
    ] {
        let (exchange, _) = challenged(&realm, "5");
        refuses(exchange, &realm, &answer, AuthRefusal::WrongResponse);
    }
    assert_eq!(AuthRefusal::WrongResponse.status(), 0x0201);
}

#[test]
fn answers_that_are_malformed_or_out_of_turn_are_refused() {
    let realm = guarded(None);
    let long = format!("CHAP_N=alice CHAP_R=0x{}", "00".repeat(1025));
    for answer in [
        "CHAP_N=alice",
        "CHAP_R=0x00",
        "CHAP_N=alice CHAP_R=",
        "CHAP_N=alice CHAP_R=b7b647",
        "CHAP_N=alice CHAP_R=0x00 CHAP_I=1",
        "CHAP_N=alice CHAP_R=0x00 CHAP_C=0x00",
        "CHAP_N=alice CHAP_R=0x00 CHAP_I=256 CHAP_C=0x00",
        "CHAP_A=5",
        "AuthMethod=CHAP",
        &long,
    ] {
        let (exchange, _) = challenged(&realm, "5");
        refuses(exchange, &realm, answer, AuthRefusal::Malformed);
    }
    for early in ["CHAP_A=5", "CHAP_N=alice CHAP_R=0x00"] {
        refuses(ChapHandshake::Open, &realm, early, AuthRefusal::Malformed);
    }
}

#[test]
fn a_hash_below_the_minimum_is_refused() {
    let mut credentials = chap(None);
    credentials.minimum = Hash::Sha256;
    let realm = realm(&[node(Some(credentials))], false);
    refuses(
        ChapHandshake::Open,
        &realm,
        "AuthMethod=CHAP CHAP_A=5,6",
        AuthRefusal::NoHash,
    );
}

#[test]
fn we_prove_ourselves_when_asked() {
    let realm = guarded(Some(b"storage-secret"));
    let (exchange, _) = challenged(&realm, "5");
    let (exchange, text) = step(
        exchange,
        &realm,
        &format!("{} CHAP_I=9 CHAP_C=0x0a0b0c", md5()),
    )
    .unwrap();
    let response = Hash::Md5.response(9, b"storage-secret", &[10, 11, 12]);
    assert_eq!(
        text,
        format!("CHAP_N=storage CHAP_R={}", text::hex(&response))
    );
    assert!(exchange.is_over(&realm));
}

#[test]
fn we_do_not_prove_ourselves_to_whom_we_do_not_know() {
    let realm = guarded(Some(b"storage-secret"));
    let (exchange, _) = challenged(&realm, "5");
    let answer = "CHAP_N=alice CHAP_R=0x00 CHAP_I=9 CHAP_C=0x0a0b0c";
    refuses(exchange, &realm, answer, AuthRefusal::WrongResponse);
}

/// RFC 7143 §9.2: who has proven to be a user may not use every InitiatorName.
#[test]
fn a_user_that_is_bound_to_a_name_logs_in_under_that_name_alone() {
    let mut credentials = chap(None);
    credentials.users[0].initiator = Some(INITIATOR.into());
    let mut realm = realm(&[node(Some(credentials))], false);
    let (exchange, _) = challenged(&realm, "5");
    assert!(step(exchange, &realm, &md5()).is_ok());
    realm.initiator += "2";
    let (exchange, _) = challenged(&realm, "5");
    let refusal = step(exchange, &realm, &md5()).unwrap_err();
    assert_eq!(refusal, AuthRefusal::AnotherInitiator);
    assert_eq!(refusal.status(), status::AUTHORIZATION_FAILURE);
    let (exchange, _) = challenged(&realm, "5");
    let wrong = md5().replace("0xb7", "0xb8");
    refuses(exchange, &realm, &wrong, AuthRefusal::WrongResponse);
}

#[test]
fn mutual_chap_needs_a_secret_of_ours() {
    let realm = guarded(None);
    let (exchange, _) = challenged(&realm, "5");
    let answer = format!("{} CHAP_I=9 CHAP_C=0x0a0b0c", md5());
    refuses(exchange, &realm, &answer, AuthRefusal::NoMutual);
}

/// RFC 7143 §9.2.1: a rogue that has us answer our own challenge.
#[test]
fn our_challenge_sent_back_is_refused() {
    let realm = guarded(Some(b"storage-secret"));
    let (exchange, text) = challenged(&realm, "5");
    let challenge = text.split_once("CHAP_C=").unwrap().1;
    let answer = format!("{} CHAP_I=9 CHAP_C={challenge}", md5());
    refuses(exchange, &realm, &answer, AuthRefusal::Reflected);
}

/// RFC 7143 §9.2.1: whoever answers with our own secret has it from answers of ours.
#[test]
fn a_secret_shared_by_both_directions_is_refused() {
    let realm = guarded(Some(SECRET));
    let (exchange, _) = challenged(&realm, "5");
    refuses(exchange, &realm, &md5(), AuthRefusal::SharedSecret);
}

/// CVE-2024-45751: challenges came from a generator that was never seeded.
#[test]
fn challenges_are_the_random_bytes_given() {
    let mut other = RANDOM;
    other[1] = 0xff;
    let text = |random| {
        let mut out = Text::default();
        Challenge::new(Hash::Sha3, random).write(&mut out);
        out
    };
    assert_ne!(text(&RANDOM), text(&other));
    assert_eq!(text(&RANDOM), text(&RANDOM));
    assert!(format!("{:?}", text(&RANDOM)).len() > 64);
}

#[test]
fn a_discovery_proves_only_the_nodes_that_know_its_secret() {
    let stranger = TargetChap {
        users: vec![user("alice", b"not-that-secret")],
        mutual: None,
        minimum: Hash::Md5,
    };
    let strict = TargetChap {
        users: vec![user("alice", SECRET)],
        mutual: None,
        minimum: Hash::Sha3,
    };
    let nodes = vec![
        node(Some(chap(None))),
        node(Some(stranger)),
        node(Some(strict)),
    ];
    let realm = realm(&nodes, true);
    let (exchange, _) = challenged(&realm, "5");
    let (exchange, _) = step(exchange, &realm, &md5()).unwrap();
    assert_eq!(exchange.into_proof().unwrap().nodes.len(), 1);
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", node(Some(chap(Some(b"storage-secret")))));
    assert!(
        !shown.contains("secret") && !shown.contains("105, 110"),
        "{shown}"
    );
}
