//! An administrator's day: each thing by one command, while a host is logged in to LUN 0 and works.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server;

use super::rig::{Rig, TARGET};
use super::{LIMIT, run, says, secret};

/// Two hosts that have to prove themselves, and see three volumes.
fn text(folder: &str, port: u16) -> String {
    format!(
        "version = 1\n\n# the host that works all day\n[group.worker]\n\
         initiators = [\"{WORKER}\"]\n\n[group.acl-guest]\ninitiators = [\"{GUEST}\"]\n\
         chap = {{ user = \"guest\", secret = \"file:{folder}/guest\" }}\nchap-min = \"md5\"\n\n\
         [volume.a]\naddress = \"ram:8M\"\n\n[volume.b]\naddress = \"file:{folder}/b.img\"\n\
         size = \"8M\"\n\n[volume.old]\naddress = \"null:1G\"\n\n[target.\"{TARGET}\"]\n\
         portals = [\"127.0.0.1:{port}\"]\nluns = {{ 0 = \"a\", 1 = \"b\", 2 = \"old\" }}\n\
         allow = [\"worker\", \"acl-guest\"]\n"
    )
}

const WORKER: &str = "iqn.2026-11.org.example:worker";
const GUEST: &str = "iqn.2026-11.org.example:guest";
const FIRST: &str = "the-first-secret";
/// 16 MiB.
const GROWN: &str = "16777216";
const SECOND: &str = "the-second-secret";

fn start() -> Rig {
    Rig::serving(|folder, port| {
        secret(Path::new(folder), "guest", FIRST);
        text(folder, port)
    })
}

/// The numbers of the sessions of an initiator.
fn sessions_of(rig: &Rig, initiator: &str) -> Vec<String> {
    let said = rig.says(&["sessions", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&said).unwrap();
    let sessions = sessions.as_array().unwrap().iter();
    let theirs = sessions.filter(|session| session["initiator"] == initiator);
    theirs.map(|session| session["id"].to_string()).collect()
}

#[track_caller]
fn wait_for(rig: &Rig, what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: {}", rig.log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the guest finds a LUN with a secret.
fn guest_finds(rig: &Rig, secret: &str, lun: u16) -> bool {
    let url = format!(
        "iscsi://guest%{secret}@127.0.0.1:{}/{TARGET}/{lun}",
        rig.port
    );
    run("iscsi-inq", &["-i", GUEST, &url]).good()
}

/// A host of our own that works on a LUN until it is killed; a user has its secret in a file of
/// that name.
fn host(rig: &Rig, initiator: &str, user: &str, lun: u16) -> Child {
    let mut unit = format!("{}?initiator={initiator}", rig.url(lun));
    if !user.is_empty() {
        let file = rig.path(user).display().to_string();
        unit = unit.replace("iscsi://", &format!("iscsi://{user}@"));
        unit += &format!("&secret-file={file}");
    }
    let mut bench = Command::new(server::binary().unwrap());
    bench.args(["bench", &unit, "--rw", "randread", "--runtime", "600s"]);
    bench.stdout(Stdio::null()).stderr(Stdio::null());
    bench.spawn().unwrap()
}

#[test]
fn each_thing_takes_one_command_and_no_session_ends_by_it() {
    let mut rig = start();
    let mut worker = host(&rig, WORKER, "", 0);
    let mut guest = host(&rig, GUEST, "guest", 1);
    // Each logs in twice: it asks what the unit is before it works on it.
    wait_for(&rig, "both work", || {
        ["a", "b"].iter().all(|name| reads(&rig, name) > 100)
    });
    let at_work = sessions_of(&rig, WORKER);
    change_volumes(&rig);
    change_hosts(&rig);
    // All day long the other host was in the same session, and at work.
    assert_eq!(sessions_of(&rig, WORKER), at_work);
    assert!(worker.try_wait().unwrap().is_none());
    assert!(reads(&rig, "a") > 0);
    restart(&mut rig);
    assert!(worker.try_wait().unwrap().is_none());
    for host in [&mut worker, &mut guest] {
        let _ = host.kill();
        host.wait().unwrap();
    }
}

fn change_volumes(rig: &Rig) {
    // A disk is added, and one taken away; hosts are told.
    let [third, second] = [3, 2].map(|lun| format!("target.{TARGET}.luns.{lun}"));
    let added = rig.says(&["set", "volume.new.address=null:2G", &format!("{third}=new")]);
    says(&added, &["told", "LUNs have changed"]);
    assert!(guest_finds(rig, FIRST, 3));
    rig.says(&[
        "unset",
        &second,
        "volume.old",
        "--allow",
        "loses=volume.old",
    ]);
    assert!(!guest_finds(rig, FIRST, 2));

    // One is larger, and has a limit.
    let grown = rig.says(&["set", "volume.b.size=16M"]);
    says(&grown, &["told", "capacity has changed"]);
    wait_for(rig, "growth", || capacity(rig, 1) == GROWN);
    says(&rig.says(&["set", "volume.b.limit.iops=20k"]), &["limit"]);
}

fn change_hosts(rig: &Rig) {
    // The guest no longer sees what was added.
    let mask = format!("target.{TARGET}.view.acl-guest={{ 0 = \"a\", 1 = \"b\" }}");
    says(&rig.says(&["set", &mask]), &["told"]);
    assert!(!guest_finds(rig, FIRST, 3) && guest_finds(rig, FIRST, 1));

    // It has another secret, which stands in no file that is shown.
    let acl = format!("/iscsi/{TARGET}/tpgt1/acls/{GUEST}");
    rig.says(&[
        "shell",
        &format!("{acl} set auth userid=guest password={SECOND}"),
    ]);
    assert!(guest_finds(rig, SECOND, 1) && !guest_finds(rig, FIRST, 1));
    assert!(!rig.file().contains(SECOND), "{}", rig.file());

    // Its session is seen and ended. It cannot come back, because it has the old secret.
    let [session] = &sessions_of(rig, GUEST)[..] else {
        panic!("{}", rig.says(&["sessions"]));
    };
    rig.says(&["drop", session]);
    wait_for(rig, "the end", || sessions_of(rig, GUEST).is_empty());
}

/// After a restart all is as it was, and the host at work goes on.
fn restart(rig: &mut Rig) {
    let file = rig.file();
    assert!(file.contains("# the host that works all day\n"));
    rig.kill();
    rig.begin();
    assert_eq!(rig.file(), file);
    says(&rig.says(&["plan"]), &["there is nothing to do"]);
    assert!(guest_finds(rig, SECOND, 1) && !guest_finds(rig, SECOND, 3));
    assert_eq!(capacity(rig, 1), GROWN);
    wait_for(rig, "the host goes on", || reads(rig, "a") > 0);
}

/// What was read of a volume since the daemon began, in operations.
fn reads(rig: &Rig, volume: &str) -> u64 {
    let stats = rig.says(&["stats"]);
    let is_its = |line: &&str| line.split_whitespace().next() == Some(volume);
    let row = stats.lines().find(is_its).unwrap();
    row.split_whitespace().nth(3).unwrap().parse().unwrap()
}

fn capacity(rig: &Rig, lun: u16) -> String {
    let url = format!(
        "{}/{TARGET}/{lun}",
        format_args!("iscsi://127.0.0.1:{}", rig.port)
    );
    // The attention that its capacity has changed may come in between.
    let ran = run("iscsi-readcapacity16", &["-s", "-i", WORKER, &url]);
    ran.output.trim().to_owned()
}
