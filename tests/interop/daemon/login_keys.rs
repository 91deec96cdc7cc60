//! Login keys of a target change while a host is logged in: it keeps what it negotiated, and the
//! next one negotiates anew.

use std::fs;
use std::net::SocketAddr;

use tests::client::Client;
use tests::initiator::{Agreed, Data, Settings};

use crate::rig::{Rig, TARGET};
use crate::{must, run};

const TEST_UNIT_READY: [u8; 6] = [0; 6];

/// A host that leaves the choice of digests to the target.
fn log_in(rig: &Rig, number: u32) -> anyhow::Result<Client> {
    let portal = SocketAddr::from(([127, 0, 0, 1], rig.port));
    let digest = |key| (key, "None,CRC32C".to_owned());
    let settings = Settings {
        keys: vec![digest("HeaderDigest"), digest("DataDigest")],
        ..Settings::new(number, TARGET)
    };
    Client::connect(portal, settings)
}

fn is_at_work(host: &mut Client) {
    let mut ended = (0..8).map(|_| host.command(&TEST_UNIT_READY, Data::None).unwrap());
    assert!(ended.any(|ended| ended.status == 0));
    host.write(0, vec![7; 65_536], false).unwrap();
}

/// What of the keys is told apart here.
fn keys(agreed: &Agreed) -> (bool, bool, bool, u32, u32) {
    (
        agreed.header_digest,
        agreed.initial_r2t,
        agreed.immediate_data,
        agreed.max_burst,
        agreed.first_burst,
    )
}

#[test]
fn keys_of_a_target_count_from_the_next_login_on() {
    let rig = Rig::start();
    let mut before = log_in(&rig, 1).unwrap();
    is_at_work(&mut before);
    let usual = (false, false, true, 1 << 20, 256 << 10);
    assert_eq!(keys(&before.initiator.limits), usual);

    let key = |key: &str| format!("target.{TARGET}.login.{key}");
    let wishes = [
        key("header-digest=crc32c"),
        key("initial-r2t=true"),
        key("max-burst-length=64k"),
        key("first-burst-length=8k"),
    ];
    let mut set = vec!["set"];
    set.extend(wishes.iter().map(String::as_str));
    let said = rig.says(&set);
    assert!(
        said.contains("login keys count from the next login on"),
        "{said}"
    );

    let mut after = log_in(&rig, 2).unwrap();
    is_at_work(&mut after);
    assert_eq!(
        keys(&after.initiator.limits),
        (true, true, true, 65_536, 8192)
    );
    // The one that was there works on by what it has.
    is_at_work(&mut before);
    libiscsi_needs_a_digest(&rig);

    rig.says(&["unset", &format!("target.{TARGET}.login")]);
    let mut again = log_in(&rig, 3).unwrap();
    assert_eq!(keys(&again.initiator.limits), usual);
    for host in [&mut before, &mut after, &mut again] {
        is_at_work(host);
    }
}

/// Its own tools always offer both, whatever their URL says; qemu has it offer one.
fn libiscsi_needs_a_digest(rig: &Rig) {
    must("iscsi-inq", &[&rig.url(0)]);
    let offering = |digest: &str| {
        let portal = format!("driver=iscsi,transport=tcp,portal=127.0.0.1:{}", rig.port);
        let unit = format!("{portal},target={TARGET},lun=0,header-digest={digest}");
        run("qemu-img", &["info", "--image-opts", &unit])
    };
    let let_in = offering("crc32c");
    assert!(let_in.good(), "{}", let_in.output);
    assert!(!offering("none").good());
    rig.logs("13.1");
}

#[test]
fn a_target_has_no_more_sessions_than_it_may() {
    let rig = Rig::start();
    let first = log_in(&rig, 1).unwrap();
    let most = format!("target.{TARGET}.login.max-sessions");
    rig.says(&["set", &format!("{most}=1")]);
    let refused = log_in(&rig, 2).unwrap_err().to_string();
    assert!(refused.contains("770"), "0302: {refused}");
    // Its own place it may take again.
    let mut again = log_in(&rig, 1).unwrap();
    is_at_work(&mut again);
    rig.says(&["set", &format!("{most}=2")]);
    is_at_work(&mut log_in(&rig, 2).unwrap());
    drop(first);
}

/// What cannot be done is refused with the reason, and nothing has changed.
#[test]
fn a_key_that_cannot_be_had_is_refused() {
    let rig = Rig::start();
    let before = rig.file();
    let refused = rig.lunar(&["set", &format!("target.{TARGET}.login.max-connections=4")]);
    let says = "MaxConnections is always 1, and not 4: a session has one connection";
    assert!(
        !refused.good() && refused.output.contains(says),
        "{}",
        refused.output
    );
    // A document that somebody has sent is told with its name and the place in it.
    let next = rig.path("next.toml");
    fs::write(&next, format!("{before}[discovery]\nadvertize = []\n")).unwrap();
    let next = next.display().to_string();
    for verb in ["plan", "apply"] {
        let refused = rig.lunar(&[verb, &next]);
        let says = format!("{next}: line ");
        assert!(
            refused.output.contains(&says) && refused.output.contains("advertise"),
            "{}",
            refused.output
        );
    }
    assert_eq!(rig.file(), before);
}
