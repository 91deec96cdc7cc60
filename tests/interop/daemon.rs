//! `lunar daemon` as its users have it: a process, its verbs, and hosts that are at work meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tests::server;
use tests::tool;

use super::rig::{Rig, TARGET, load};
use super::{LIMIT, must, run};

mod asked;
mod beside;
mod handover;
mod login_keys;
mod measured;
mod service_manager;
mod told;
mod words;

/// Ten times over, while a host is at work on LUN 0.
#[test]
fn luns_come_and_change_and_go_while_a_host_works() {
    let rig = Rig::start();
    let mut host = load(&rig.url(0));
    let until = Instant::now() + LIMIT;
    while !rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until, "{}", rig.log());
    }
    let lun = |number: u16| format!("target.{TARGET}.luns.{number}");
    for turn in 0..10 {
        let add = ["set", "volume.c.address=null:1G", &format!("{}=c", lun(7))];
        assert!(rig.says(&add).contains("LUNs have changed"));
        assert_eq!(rig.capacity(7), "1073741824");
        rig.says(&["set", &format!("volume.b.size={}M", 9 + turn)]);
        rig.says(&["set", &format!("volume.a.limit.iops={}k", 20 + turn)]);
        rig.says(&["unset", &lun(7), "volume.c"]);
        assert!(!run("iscsi-inq", &[&rig.url(7)]).good());
    }
    // Growth is looked for every two seconds.
    let until = Instant::now() + LIMIT;
    while rig.capacity(1) != (18 << 20).to_string() {
        assert!(Instant::now() < until, "{}", rig.log());
        thread::sleep(Duration::from_millis(50));
    }
    let stats = rig.says(&["stats"]);
    let row = stats.lines().find(|line| line.starts_with("a ")).unwrap();
    let writes = row.split_whitespace().nth(4).unwrap();
    assert_ne!(writes, "0", "{stats}");
    assert!(host.try_wait().unwrap().is_none(), "{}", rig.log());
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(rig.file().contains("# the first"));
}

/// What a plan says that it cuts is cut when it is allowed, and not before.
#[test]
fn a_name_that_is_revoked_loses_its_session_when_that_is_allowed() {
    let rig = Rig::start();
    let mut host = load(&rig.url(0));
    let until = Instant::now() + LIMIT;
    while !rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until);
    }
    let revoke = format!("target.{TARGET}.allow=[\"iqn.2026-11.org.example:other\"]");
    let refused = rig.lunar(&["set", &revoke]);
    assert!(
        !refused.good() && refused.output.contains("--allow cuts"),
        "{}",
        refused.output
    );
    assert!(host.try_wait().unwrap().is_none());
    assert!(
        rig.says(&["set", &revoke, "--allow", "cuts"])
            .contains("cuts")
    );
    let until = Instant::now() + LIMIT;
    while rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until, "{}", rig.log());
    }
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Wherever it is killed, the next start serves the tree before a change or the one after it.
#[test]
fn a_daemon_that_is_killed_while_it_changes_serves_old_or_new() {
    let mut rig = Rig::start();
    let times: u64 = std::env::var("LUNAR_CRASHES").map_or(10, |text| text.parse().unwrap());
    for time in 0..times {
        let before = rig.file();
        let path = rig.path("socket");
        let changing = thread::spawn(move || change_until_dead(&path, time));
        thread::sleep(Duration::from_micros(fastrand::u64(..40_000)));
        rig.kill();
        changing.join().unwrap();
        let now = rig.file();
        assert!(
            now.starts_with("version = 1\n\n# the first\n"),
            "{before}\n{now}"
        );
        rig.begin();
        assert_eq!(rig.file(), now);
        assert!(rig.says(&["plan"]).contains("there is nothing to do"));
        // What the file says is what is served.
        let is_there = now.contains("[volume.x]");
        assert_eq!(run("iscsi-inq", &[&rig.url(5)]).good(), is_there, "{now}");
    }
}

/// Adds and removes a LUN until nothing answers.
fn change_until_dead(socket: &Path, seed: u64) {
    let lun = format!("target.{TARGET}.luns.5");
    let put = ["set", "volume.x.address=null:1G", &format!("{lun}=x")];
    let take = ["unset", &lun, "volume.x"];
    for turn in seed.. {
        let args: &[&str] = if turn % 2 == 0 { &put } else { &take };
        let mut command = Command::new(server::binary().unwrap());
        command.args(args).env("LUNAR_SOCKET", socket);
        let ran = tool::run(&mut command, LIMIT).unwrap();
        if ran.output.contains("no daemon") || ran.output.contains("does not answer") {
            return;
        }
    }
}

/// Seed 001's way, in the words of targetcli, on standard input.
#[test]
fn the_shell_makes_a_target_that_libiscsi_finds() {
    let rig = Rig::start();
    let lines = format!(
        "/backstores/rd_mcp create name=rd1 size=16M\n/iscsi create {TARGET}2\n\
         iscsi/{TARGET}2/tpgt1/luns create storage_object=/backstores/rd_mcp/rd1\n\
         iscsi/{TARGET}2/tpgt1/portals create 127.0.0.1 {}\n\
         /iscsi/{TARGET}2/tpgt1/ set attribute authentication=0 demo_mode_write_protect=0 \
         generate_node_acls=1 cache_dynamic_acls=1\nls\n",
        rig.port
    );
    let said = typed(&rig, &[], &lines).unwrap();
    let created = "Created rd_mcp ramdisk rd1 with size 16M.";
    assert!(said.contains(created), "{said}");
    let found = must(
        "iscsi-ls",
        &["-s", &format!("iscsi://127.0.0.1:{}", rig.port)],
    );
    assert!(
        found.contains(&format!("{TARGET}2")) && found.contains("Size:15M"),
        "{found}"
    );
}

/// What the shell says to lines on its standard input; `Err` where it fails.
fn typed(rig: &Rig, options: &[&str], lines: &str) -> Result<String, String> {
    fs::write(rig.path("lines"), lines).unwrap();
    let mut shell = Command::new(server::binary().unwrap());
    shell.arg("shell").args(options);
    shell.env("LUNAR_SOCKET", rig.path("socket"));
    shell.env("HOME", rig.folder.path());
    shell.stdin(fs::File::open(rig.path("lines")).unwrap());
    let ran = shell.output().unwrap();
    let said = |text| String::from_utf8(text).unwrap();
    if ran.status.success() {
        return Ok(said(ran.stdout));
    }
    let done = said(ran.stdout);
    assert!(!options.contains(&"--atomic") || done.is_empty(), "{done}");
    Err(said(ran.stderr))
}

/// Each line builds on those before it. A secret is part of the change.
#[test]
fn lines_that_are_gathered_are_one_change_or_none() {
    let rig = Rig::start();
    let acls = format!("/iscsi/{TARGET}/tpgt1/acls");
    let host = "iqn.2026-11.org.example:typed";
    let lines = format!(
        "/backstores/ramdisk create name=rd1 size=16M\n\
         /iscsi/{TARGET}/tpgt1/luns create /backstores/ramdisk/rd1\n\
         {acls} create {host}\n\
         {acls}/{host} set auth userid=typed password=twelve_bytes_and_more\n"
    );
    let secrets = || fs::read_dir(rig.path("state/secrets")).map_or(0, Iterator::count);
    let before = (rig.file(), secrets());

    let told = typed(&rig, &["--dry-run"], &lines).unwrap();
    assert!(
        told.contains("+ volume rd1") && !told.contains("Created"),
        "{told}"
    );
    assert_eq!((rig.file(), secrets()), before);

    let wrong = typed(&rig, &["--atomic"], &(lines.clone() + "/nowhere ls\n")).unwrap_err();
    assert!(
        wrong.contains("line 5: ") && wrong.contains("nothing was done"),
        "{wrong}"
    );
    assert_eq!((rig.file(), secrets()), before);

    // What is deleted may be lost, and nothing else.
    typed(&rig, &[], "/backstores/ramdisk create name=tmp size=1M\n").unwrap();
    let loses = "/backstores/ramdisk delete tmp\ncd /backstores/ramdisk/a\n\
                 set attribute block_size=4096\n";
    let refused = typed(&rig, &["--atomic"], loses).unwrap_err();
    assert!(refused.contains("--allow loses=volume.a"), "{refused}");
    assert!(rig.file().contains("[volume.tmp]"));
    typed(&rig, &["--atomic"], "/backstores/ramdisk delete tmp\n").unwrap();

    let told = typed(&rig, &["--atomic"], &lines).unwrap();
    assert!(told.contains("Created"), "{told}");
    assert!(rig.says(&["history"]).contains("+ volume rd1"));
    assert_eq!(secrets(), before.1 + 1);
    assert_eq!(rig.capacity(2), (16 << 20).to_string());
}
