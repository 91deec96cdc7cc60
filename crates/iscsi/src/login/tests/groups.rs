//! Logins to nodes whose groups of initiators have to prove different things.

use super::*;

const OTHER: &str = "InitiatorName=iqn.2026-01.test:other";

fn group(initiator: Option<&str>, secret: Option<&str>) -> AccessGroup {
    let users = |secret: &str| {
        vec![ChapUser {
            name: "user".to_owned(),
            initiator: None,
            secret: secret.as_bytes().to_vec(),
        }]
    };
    AccessGroup {
        initiators: initiator.map_or(Initiators::Everybody, |name| {
            Initiators::Named(BTreeSet::from([format!("iqn.2026-01.test:{name}")]))
        }),
        chap: secret.map(|secret| TargetChap {
            users: users(secret),
            mutual: None,
            minimum: Hash::Sha256,
        }),
    }
}

/// `a`: a secret for each of two initiators; `b`: one has to prove itself, others need not; `c`:
/// for one only.
fn grouped() -> Arc<TargetConfig> {
    let (ini, other) = (Some("ini"), Some("other"));
    let access = |groups: [AccessGroup; 2]| NodeAccess::new(groups.into());
    let first = group(ini, Some("secret of ini"));
    let second = group(other, Some("secret of other"));
    config(vec![
        node('a', access([first.clone(), second.clone()])),
        node('b', access([group(None, None), second.clone()])),
        node('c', first.into()),
    ])
}

/// The last request of the security stage, with this secret.
fn proof(secret: &str) -> String {
    let challenge: Vec<u8> = (1..=32).collect();
    let response = Hash::Sha256.response(0, secret.as_bytes(), &challenge);
    format!("CHAP_N=user CHAP_R={}", crate::text::hex(&response))
}

fn challenged(initiator: &str, target: &str) -> Peer {
    let mut peer = Peer::new(&grouped());
    peer.send(
        "S",
        &format!("{initiator} {target} AuthMethod=CHAP CHAP_A=7"),
    );
    assert!(peer.recv().contains("CHAP_A=7"));
    peer
}

#[test]
fn the_secret_of_an_initiator_is_of_no_use_to_another() {
    for (initiator, secret, opens) in [
        (INITIATOR, "secret of ini", true),
        (OTHER, "secret of other", true),
        (INITIATOR, "secret of other", false),
        (OTHER, "secret of ini", false),
    ] {
        let mut peer = challenged(initiator, TARGET);
        if opens {
            peer.send("S>F", &proof(secret));
            peer.asks();
        } else {
            peer.exchange("S>F", &proof(secret), "reject 0201");
        }
    }
}

#[test]
fn a_proof_is_asked_of_those_whose_group_has_one() {
    let open = "TargetName=iqn.2026-11.org.lunar:b";
    let mut peer = Peer::new(&grouped());
    peer.send("O>F", &format!("{INITIATOR} {open}"));
    peer.asks();
    let mut peer = Peer::new(&grouped());
    peer.exchange("O>F", &format!("{OTHER} {open}"), "reject 0201");
    let mut peer = challenged(OTHER, open);
    peer.send("S>F", &proof("secret of other"));
    peer.asks();
}

#[test]
fn an_initiator_discovers_what_it_may_log_in_to() {
    let names = |letters: &str| -> Vec<String> {
        let name = |letter| format!("iqn.2026-11.org.lunar:{letter}");
        letters.chars().map(name).collect()
    };
    let mut peer = Peer::new(&grouped());
    peer.send("O>F", &format!("{INITIATOR} SessionType=Discovery"));
    peer.asks();
    assert_eq!(peer.discovers(), names("b"), "it has not proven anything");

    let mut peer = challenged(INITIATOR, "SessionType=Discovery");
    peer.send("S>F", &proof("secret of ini"));
    peer.asks();
    assert_eq!(peer.discovers(), names("abc"));

    let mut peer = challenged(OTHER, "SessionType=Discovery");
    peer.send("S>F", &proof("secret of other"));
    peer.asks();
    assert_eq!(peer.discovers(), names("ab"), "c is not for it");

    let mut peer = Peer::new(&grouped());
    peer.exchange(
        "O>F",
        &format!("{OTHER} SessionType=Discovery"),
        "reject 0201",
    );
}
