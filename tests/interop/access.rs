//! Who gets in, as libiscsi's tools see it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tests::server::Server;

use crate::{must, run};

const NODE1: &str = "iqn.2026-11.org.example:node1";
const NODE2: &str = "iqn.2026-11.org.example:node2";

/// A file with a secret, for its owner only.
fn secret(name: &str, secret: &str) -> String {
    let dir = tests::scratch(&format!("secret-{name}")).unwrap();
    let path = dir.join("secret");
    fs::write(&path, format!("{secret}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.to_string_lossy().into_owned()
}

/// An address as libiscsi has it, with a user's secret in it.
fn with_user(address: &str, user: &str, secret: &str) -> String {
    address.replacen("iscsi://", &format!("iscsi://{user}%{secret}@"), 1)
}

fn enters(args: &[&str]) -> bool {
    run("iscsi-inq", args).good()
}

#[test]
fn chap_lets_in_who_knows_the_secret() {
    let file = secret("one-way", "aliceknowsthis");
    let server = Server::start(
        "chap",
        &["ram:16M"],
        &["--chap", "alice", "--secret-file", &file],
    )
    .unwrap();
    let address = server.address(0);
    must(
        "iscsi-inq",
        &[&with_user(address, "alice", "aliceknowsthis")],
    );
    assert!(
        !enters(&[&with_user(address, "alice", "aliceknowsthat")]),
        "a wrong secret"
    );
    assert!(
        !enters(&[&with_user(address, "bob", "aliceknowsthis")]),
        "another user"
    );
    assert!(!enters(&[address]), "no CHAP");
}

#[test]
fn mutual_chap_proves_the_target_too() {
    let (theirs, ours) = (
        secret("theirs", "aliceknowsthis"),
        secret("ours", "targetknowsthis"),
    );
    let options = [
        ["--chap", "alice"],
        ["--secret-file", &theirs],
        ["--mutual-user", "target"],
        ["--mutual-secret-file", &ours],
    ];
    let server = Server::start("mutual", &["ram:16M"], &options.concat()).unwrap();
    let address = with_user(server.address(0), "alice", "aliceknowsthis");
    let proven = |secret| format!("{address}?target_user=target&target_password={secret}");
    must("iscsi-inq", &[&proven("targetknowsthis")]);
    must("iscsi-inq", &[&address]);
    assert!(
        !enters(&[&proven("targetknowsthat")]),
        "libiscsi checks the target's answer"
    );
}

#[test]
fn several_users_have_a_secret_each() {
    let (alice, bob) = (
        secret("alice", "aliceknowsthis"),
        secret("bob", "bobknowsthat"),
    );
    let options = [
        ["--chap", "alice"],
        ["--secret-file", &alice],
        ["--chap", "bob"],
        ["--secret-file", &bob],
    ];
    let server = Server::start("users", &["ram:16M"], &options.concat()).unwrap();
    must(
        "iscsi-inq",
        &[&with_user(server.address(0), "alice", "aliceknowsthis")],
    );
    must(
        "iscsi-inq",
        &[&with_user(server.address(0), "bob", "bobknowsthat")],
    );
    assert!(!enters(&[&with_user(
        server.address(0),
        "alice",
        "bobknowsthat"
    )]));
}

#[test]
fn an_allow_list_lets_in_by_name() {
    let server = Server::start("allow", &["ram:16M"], &["--allow", NODE1]).unwrap();
    must("iscsi-inq", &["-i", NODE1, server.address(0)]);
    assert!(!enters(&["-i", NODE2, server.address(0)]));
}

#[test]
fn allow_list_and_chap_must_both_hold() {
    let file = secret("both", "aliceknowsthis");
    let options = [
        ["--allow", NODE1],
        ["--chap", "alice"],
        ["--secret-file", &file],
    ];
    let server = Server::start("both", &["ram:16M"], &options.concat()).unwrap();
    let proven = with_user(server.address(0), "alice", "aliceknowsthis");
    must("iscsi-inq", &["-i", NODE1, &proven]);
    assert!(
        !enters(&["-i", NODE2, &proven]),
        "a secret without the name"
    );
    assert!(
        !enters(&["-i", NODE1, server.address(0)]),
        "a name without the secret"
    );
}

#[test]
fn discovery_shows_what_an_initiator_may_use() {
    let server = Server::start("hidden", &["ram:16M"], &["--allow", NODE1]).unwrap();
    let lun = &server.luns[0];
    let portal = format!("iscsi://{}", lun.portals[0]);
    assert!(must("iscsi-ls", &["-i", NODE1, &portal]).contains(&lun.target));
    assert!(
        !run("iscsi-ls", &["-i", NODE2, &portal])
            .output
            .contains(&lun.target)
    );
}
