//! Who gets in, as libiscsi's tools see it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use iscsi::wire::bhs::{BHS_LEN, Bhs, Itt};
use iscsi::wire::login::{LoginRequest, stage};
use iscsi::wire::serial::{CmdSn, StatSn};
use tests::server::{ReadyLun, Server};

use crate::{lunar, lunar_says, must, proving, run, words};

const NODE1: &str = "iqn.2026-11.org.example:node1";
const NODE2: &str = "iqn.2026-11.org.example:node2";

/// A file with a secret, for its owner only.
fn secret(name: &str, secret: &str) -> String {
    let dir = tests::scratch(&format!("secret-{name}")).unwrap();
    crate::secret(&dir, "secret", secret)
}

/// Who asks to be let in: its name, `user%secret` as libiscsi has it in addresses, and what it
/// expects of the target. What is empty is left out.
struct Caller(&'static str, &'static str, &'static str);

impl Caller {
    fn enters(&self, server: &Server) -> bool {
        let Self(name, user, expects) = self;
        let mut address = format!("{}{expects}", server.address(0));
        if !user.is_empty() {
            address = address.replacen("iscsi://", &format!("iscsi://{user}@"), 1);
        }
        let named = ["-i", name, &address];
        let args = if name.is_empty() { &named[2..] } else { &named };
        run("iscsi-inq", args).good()
    }
}

/// Those that are kept out come first, each with what is wrong: a server that has ended lets nobody
/// in either.
#[track_caller]
fn lets_in(server: &Server, strangers: &[(&str, Caller)], friends: &[Caller]) {
    for (wrong, stranger) in strangers {
        assert!(!stranger.enters(server), "let in: {wrong}");
    }
    for friend in friends {
        let Caller(name, user, _) = friend;
        assert!(friend.enters(server), "kept out: {name} {user}");
    }
}

#[test]
fn chap_lets_in_who_knows_the_secret() {
    let file = secret("one-way", "aliceknowsthis");
    let options = ["--chap", "alice", "--secret-file", &file];
    let server = Server::start("chap", &["ram:16M"], &options).unwrap();
    let strangers = [
        ("a wrong secret", Caller("", "alice%aliceknowsthat", "")),
        ("another user", Caller("", "bob%aliceknowsthis", "")),
        ("no CHAP", Caller("", "", "")),
    ];
    lets_in(
        &server,
        &strangers,
        &[Caller("", "alice%aliceknowsthis", "")],
    );
}

#[test]
fn mutual_chap_proves_the_target_too() {
    let server = proving("mutual", "ram:16M");
    let wrong = "?target_user=target&target_password=targetknowsthat";
    let right = "?target_user=target&target_password=targetknowsthis";
    let user = "alice%aliceknowsthis";
    let strangers = [(
        "libiscsi checks the target's answer",
        Caller("", user, wrong),
    )];
    lets_in(
        &server,
        &strangers,
        &[Caller("", user, right), Caller("", user, "")],
    );
}

#[test]
fn several_users_have_a_secret_each() {
    let (alice, bob) = (
        secret("alice", "aliceknowsthis"),
        secret("bob", "bobknowsthat"),
    );
    let options = format!("--chap alice --secret-file {alice} --chap bob --secret-file {bob}");
    let server = Server::start("users", &["ram:16M"], &words(&options)).unwrap();
    let strangers = [("another's secret", Caller("", "alice%bobknowsthat", ""))];
    let friends = ["alice%aliceknowsthis", "bob%bobknowsthat"].map(|user| Caller("", user, ""));
    lets_in(&server, &strangers, &friends);
}

#[test]
fn an_allow_list_lets_in_by_name() {
    let server = Server::start("allow", &["ram:16M"], &["--allow", NODE1]).unwrap();
    let strangers = [("another name", Caller(NODE2, "", ""))];
    lets_in(&server, &strangers, &[Caller(NODE1, "", "")]);
}

#[test]
fn allow_list_and_chap_must_both_hold() {
    let file = secret("both", "aliceknowsthis");
    let options = ["--allow", NODE1, "--chap", "alice", "--secret-file", &file];
    let server = Server::start("both", &["ram:16M"], &options).unwrap();
    let user = "alice%aliceknowsthis";
    let strangers = [
        ("a secret without the name", Caller(NODE2, user, "")),
        ("a name without the secret", Caller(NODE1, "", "")),
    ];
    lets_in(&server, &strangers, &[Caller(NODE1, user, "")]);
}

#[test]
fn discovery_shows_what_an_initiator_may_use() {
    let server = Server::start("hidden", &["ram:16M"], &["--allow", NODE1]).unwrap();
    let lun = &server.luns[0];
    let portal = format!("iscsi://{}", lun.portals[0]);
    let shown = run("iscsi-ls", &["-i", NODE2, &portal]).output;
    assert!(!shown.contains(&lun.target), "{shown}");
    assert!(must("iscsi-ls", &["-i", NODE1, &portal]).contains(&lun.target));
}

/// Sends the request that a login with CHAP begins with; gives the CHAP_C of the answer.
fn challenge(lun: &ReadyLun) -> String {
    let request = LoginRequest {
        transit: false,
        more: false,
        current: stage::SECURITY,
        next: stage::SECURITY,
        version_max: 0,
        version_min: 0,
        isid: [0x80, 0, 0, 0, 0, 1],
        tsih: 0,
        itt: Itt(1),
        cid: 0,
        cmd_sn: CmdSn(1),
        exp_stat_sn: StatSn(0),
    };
    let text = format!(
        "InitiatorName={NODE1}\0TargetName={}\0AuthMethod=CHAP\0CHAP_A=5\0",
        lun.target
    );
    let mut header = request.encode();
    header.set_data_len(text.len() as u32);
    let mut bytes = header.0.to_vec();
    bytes.extend(text.bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let mut socket = TcpStream::connect(&lun.portals[0]).unwrap();
    socket.write_all(&bytes).unwrap();
    let mut answer = Bhs([0; BHS_LEN]);
    socket.read_exact(&mut answer.0).unwrap();
    let mut text = vec![0; answer.data_len() as usize];
    socket.read_exact(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let found = text
        .split('\0')
        .find_map(|pair| pair.strip_prefix("CHAP_C="));
    found.unwrap_or_else(|| panic!("{text:?}")).to_owned()
}

/// CVE-2024-45751: after each start the challenges were the same, one after the other, as nobody
/// had seeded what made them. Who had listened once could answer.
#[test]
fn no_challenge_comes_again_after_a_restart() {
    let file = secret("challenge", "aliceknowsthis");
    let options = ["--chap", "alice", "--secret-file", &file];
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let server = Server::start("challenge", &["ram:16M"], &options).unwrap();
        for _ in 0..20 {
            let challenge = challenge(&server.luns[0]);
            assert!(challenge.len() > 32, "{challenge}");
            assert!(seen.insert(challenge.clone()), "{challenge} came twice");
        }
    }
}

/// A target that hides must not look like one that is not there, and scripts have to notice.
#[test]
fn ls_names_the_initiator_that_a_target_hides_from() {
    let server = Server::start("hidden-ls", &["ram:16M"], &["--allow", NODE1]).unwrap();
    let portal = &server.luns[0].portals[0];
    for more in [&[][..], &["--json"]] {
        let output = lunar(&["ls", portal]).args(more).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let begins = format!("lunar: {portal} reports no targets to iqn.2026-11.org.lunar:");
        assert!(told.starts_with(&begins), "{told}");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    }
}

/// A target that wants proof warns of each login that offers none.
#[test]
fn ls_offers_its_proof_at_once() {
    let file = secret("ls", "aliceknowsthis");
    let chap = ["--chap", "alice", "--secret-file", &file];
    let server = Server::start("ls-chap", &["ram:16M"], &chap).unwrap();
    let portal = &server.luns[0].portals[0];
    let told = lunar_says(&["ls", "--user", "alice", "--secret-file", &file, portal]);
    assert!(told.contains("16.0 MiB"), "{told}");
    let log = server.stop_well().unwrap();
    assert!(!log.contains("WARN"), "{log}");
}
