//! `lunar race` as a user and a script meet it.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Eight rounds.
const SHORT: [&str; 6] = [
    "--runtime",
    "1600ms",
    "--ramp-time",
    "1ms",
    "--turn",
    "200ms",
];

const LUNAR: &str = env!("CARGO_BIN_EXE_lunar");

/// The program. `timeout` ends it where it does not end by itself, which no test expects.
fn program() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", LUNAR]);
    command
}

fn lunar(args: &[&str]) -> Output {
    program().arg("race").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs it with what cannot work, and gives the line it answers with.
#[track_caller]
fn refused(code: i32, args: &[&str]) -> String {
    let ran = lunar(args);
    let err = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(text(&ran.stdout), "", "{args:?}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    err
}

#[test]
fn what_cannot_be_raced_is_one_line_with_the_way_out() {
    let wrong = [
        (2, &[][..], "<ADDR>"),
        (2, &["ram:1M"], "give another"),
        (2, &["ram:1M", "ram:1M", "--turn", "0s"], "--turn is 0"),
        (2, &["ram:1M", "ram:1M", "--turn", "x"], "--turn"),
        (2, &["ram:1M", "ram:1M", "--runtime", "0"], "--runtime"),
        (2, &["ram:1M", "ram:1M", "--verify"], "--verify"),
        (2, &["--volume", "ram:1M"], "--over"),
        (2, &["--over", "iscsi,fcoe"], "--volume"),
        (2, &["ram:1M", "ram:1M", "--mtu", "2500"], "--volume"),
        (
            2,
            &["ram:1M", "--volume", "ram:1M", "--over", "iscsi,fcoe"],
            "ADDR",
        ),
        (
            2,
            &["--volume", "ram:1M", "--over", "iscsi"],
            "give another",
        ),
        (2, &["--volume", "ram:1M", "--over", "iscsi,tcp"], "tcp"),
        (
            2,
            &["--volume", "ram:1M", "--over", "iscsi,fcoe", "--mtu", "100"],
            "--mtu",
        ),
        (
            1,
            &["--volume", "file:/no/such/file", "--over", "iscsi,fcoe"],
            "/no/such/file",
        ),
        (1, &["ram:1M", "file:/no/such/file"], "/no/such/file"),
        (1, &["ram:1M", "ram:1M", "--bs", "700"], "not a multiple"),
        (
            1,
            &["ram:1M", "readonly(ram:1M)", "--fill"],
            "--fill writes",
        ),
        (
            1,
            &["ram:1M", "ram:1M", "--target-pid", "4194304"],
            "4194304",
        ),
        (
            1,
            &["ram:1M", "ram:1M", "--html", "/no/such/a.html"],
            "--html",
        ),
    ];
    for (code, args, cause) in wrong {
        let line = refused(code, args);
        assert!(line.contains(cause), "{args:?}: {line}");
    }
}

#[test]
fn each_row_has_a_verdict() {
    let ran = lunar(
        &[
            &["null:1M", "delay:1ms(ram:1M)", "--bs", "512,4k"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let out = text(&ran.stdout);
    for block in ["512", "4k"] {
        let said = format!("read {block}: delay:1ms(ram:1M) is slower than null:1M: 0.");
        assert!(out.contains(&said), "{out}");
    }
    assert!(
        out.contains("median of all rounds (lowest to highest)"),
        "{out}"
    );
}

#[test]
fn a_script_and_a_page_get_the_same() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("race.html");
    let _ = fs::remove_file(&page);
    let path = page.to_str().unwrap();
    let args = ["ram:1M", "ram:1M", "--fill", "--json", "--html", path];
    let ran = lunar(&[&args, &SHORT[..]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let race = &outcome["races"][0];
    assert_eq!(race["lanes"][1]["address"], "ram:1M (2)");
    assert_eq!(race["lanes"][1]["turns"].as_array().unwrap().len(), 8);
    let against = &race["against_first"][0];
    assert_eq!(against["iops"]["rounds"], 8);
    let [lowest, median] = ["lowest", "median"].map(|key| against["iops"][key].as_f64().unwrap());
    assert!(lowest <= median, "{against}");
    let verdict = against["verdict"].as_str().unwrap();
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains(&format!("read 4k: {verdict}")), "{verdict}");
}

/// A volume that is served here, with what is before `lunar` on the command line.
fn served(command: &mut Command, over: &str) -> Value {
    let args = [
        "race", "--volume", "ram:1M", "--over", over, "--json", "--fill",
    ];
    let ran = command.args(args).args(SHORT).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let race = &outcome["races"][0];
    assert_eq!(race["against_first"][0]["target_cpu"]["rounds"], 8);
    for lane in race["lanes"].as_array().unwrap() {
        assert!(lane["losses"].is_array(), "{lane}");
    }
    outcome
}

fn addresses(outcome: &Value) -> Vec<&str> {
    let rows = outcome["rows"].as_array().unwrap().iter();
    rows.map(|row| row["address"].as_str().unwrap()).collect()
}

/// As root, and as a user where the system lets users have namespaces.
const NAMESPACES: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];

/// The names of all fields in it, at any depth.
fn fields(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => {
            let inner = object.values().flat_map(fields);
            object.keys().cloned().chain(inner).collect()
        }
        Value::Array(values) => values.iter().flat_map(fields).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_manuals_have_each_field_of_json() {
    let ran = lunar(&[&["ram:1M", "ram:1M", "--json"], &SHORT[..]].concat());
    let outcome = serde_json::from_slice(&ran.stdout).unwrap();
    let manuals = [
        include_str!("../../../docs/manual/bench.md"),
        include_str!("../../../docs/manual/race.md"),
    ];
    let manuals = manuals.concat();
    for field in fields(&outcome) {
        assert!(manuals.contains(&format!("`{field}`")), "{field}");
    }
}

/// Fails with the reason where `race` cannot have a network of its own.
#[track_caller]
fn needs_a_private_network() {
    let refusals = NAMESPACES.map(|way| {
        let mut unshare = Command::new("unshare");
        let veth = ["ip", "link", "add", "san0", "type", "veth"];
        let ran = unshare.args(way).args(veth).output().unwrap();
        (!ran.status.success()).then(|| text(&ran.stderr))
    });
    if let [Some(first), Some(second)] = refusals {
        panic!("no private network: run this as root, or allow user namespaces: {first}{second}");
    }
}

#[test]
fn a_volume_is_served_in_a_network_of_its_own() {
    needs_a_private_network();
    let outcome = served(&mut program(), "iscsi,fcoe");
    let [iscsi, fcoe] = addresses(&outcome)[..] else {
        panic!("not two rows");
    };
    assert!(iscsi.starts_with("iscsi://198.18.0.1:3260/"), "{iscsi}");
    assert!(fcoe.starts_with("fcoe://san0/20:00:"), "{fcoe}");
}

/// Without the programs that make namespaces.
#[test]
fn a_volume_is_served_over_loopback_and_a_cable_where_no_network_is_to_be_had() {
    let scratch = scratch("no-network");
    let path = std::env::var("PATH").unwrap();
    for tool in ["setpriv", "timeout"] {
        let mut files = path.split(':').map(|dir| Path::new(dir).join(tool));
        symlink(
            files.find(|file| file.exists()).unwrap(),
            scratch.join(tool),
        )
        .unwrap();
    }
    let mut command = program();
    let outcome = served(command.env("PATH", &scratch), "iscsi,fcoe");
    let [iscsi, fcoe] = addresses(&outcome)[..] else {
        panic!("not two rows");
    };
    assert!(iscsi.starts_with("iscsi://127.0.0.1:"), "{iscsi}");
    assert!(fcoe.starts_with("fcoe://cable:/"), "{fcoe}");
}

/// An empty folder.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A race that would take an hour.
fn long(scratch: &Path) -> Child {
    let args = [
        "race",
        "--volume",
        "ram:1M",
        "--over",
        "iscsi,fcoe",
        "--runtime",
        "3600",
    ];
    let mut command = Command::new(LUNAR);
    let command = command.args(args).env("TMPDIR", scratch);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// How long a test waits for what a busy machine does within a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process that serves for a race, as soon as it runs.
#[track_caller]
fn target_of(race: &mut Child) -> Pid {
    let (own, serve) = (race.id(), format!("{LUNAR}\0serve\0"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(ended) = race.try_wait().unwrap() {
            let mut said = String::new();
            let _ = race.stderr.take().unwrap().read_to_string(&mut said);
            panic!("the race ended before it had a target: {ended}: {said}");
        }
        assert!(Instant::now() < deadline, "the race starts no target");
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
        let serves = |child: &&str| {
            let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            words.starts_with(serve.as_bytes())
        };
        if let Some(child) = children.split_whitespace().find(serves) {
            return Pid::from_raw(child.parse().unwrap()).unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a race, which is ended itself if it takes too long.
#[track_caller]
fn waited_for(race: Child) -> Output {
    let pid = Pid::from_child(&race);
    let (tell, told) = mpsc::channel();
    let waits = thread::spawn(move || tell.send(race.wait_with_output().unwrap()));
    let ran = told.recv_timeout(PATIENCE);
    if ran.is_err() {
        kill_process(pid, Signal::KILL).unwrap();
    }
    waits.join().unwrap().ok();
    ran.expect("the race does not end")
}

/// Whoever is signalled, nothing of the race is left.
#[track_caller]
fn ends(race: Child, target: Pid, scratch: &Path) -> (Option<i32>, String) {
    let ran = waited_for(race);
    assert!(
        rustix::process::test_kill_process(target).is_err(),
        "the target lives on"
    );
    assert_eq!(fs::read_dir(scratch).unwrap().count(), 0);
    (ran.status.code(), text(&ran.stderr))
}

#[test]
fn an_interrupted_race_leaves_nothing() {
    let scratch = scratch("interrupted");
    let mut race = long(&scratch);
    let target = target_of(&mut race);
    let own = Pid::from_raw(race.id().cast_signed()).unwrap();
    kill_process(own, Signal::INT).unwrap();
    let (code, err) = ends(race, target, &scratch);
    assert_eq!(code, Some(130), "{err}");
}

#[test]
fn a_target_that_dies_ends_the_race() {
    let scratch = scratch("target-dies");
    let mut race = long(&scratch);
    let target = target_of(&mut race);
    kill_process(target, Signal::KILL).unwrap();
    let (code, err) = ends(race, target, &scratch);
    assert_eq!(code, Some(1), "{err}");
    let line = err.lines().last().unwrap();
    assert_eq!(
        line,
        "lunar: the target exited before the race: signal: 9 (SIGKILL)"
    );
}

/// Runs a script in the network namespace of a process, and in its user namespace if that is
/// another one than ours.
fn within(pid: &str, script: &str) -> Output {
    let user = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
    let mut command = Command::new("nsenter");
    command.args(["-t", pid, "-n"]);
    if user(pid) != user("self") {
        command.args(["-U", "--preserve-credentials"]);
    }
    command.args(["bash", "-c", script]).output().unwrap()
}

/// Runs a script until it succeeds.
#[track_caller]
fn soon_within(pid: &str, script: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ran = within(pid, script);
        if ran.status.success() {
            return;
        }
        let said = text(&ran.stderr);
        assert!(Instant::now() < deadline, "{script}: {said}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The target's interface takes no frames as long as those that somebody else sends there.
#[test]
fn the_place_where_frames_were_lost_is_named() {
    needs_a_private_network();
    let args = ["race", "--volume", "ram:1M", "--over", "fcoe,fcoe"];
    let mut command = Command::new(LUNAR);
    let command = command.args(args).arg("--json").args(SHORT);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut race = command.spawn().unwrap();
    let target = target_of(&mut race).as_raw_nonzero().to_string();
    let client = race.id().to_string();
    soon_within(&target, "ip link set san0 mtu 2200");
    let route = "ip address add 192.0.2.1/24 dev san0 && \
                 ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev san0";
    let ran = within(&client, route);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let (end, ended) = mpsc::channel::<()>();
    let sends = thread::spawn(move || {
        while ended.try_recv() == Err(TryRecvError::Empty) {
            within(&client, "printf %2300s > /dev/udp/192.0.2.2/9");
            thread::sleep(Duration::from_millis(10));
        }
    });
    let ran = waited_for(race);
    drop(end);
    sends.join().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let lanes = outcome["races"][0]["lanes"].as_array().unwrap();
    let losses = lanes
        .iter()
        .flat_map(|lane| lane["losses"].as_array().unwrap());
    let places: Vec<_> = losses.map(|loss| loss["place"].as_str().unwrap()).collect();
    for place in ["client: transmit drops (", "target: receive drops ("] {
        let named = places.iter().any(|named| named.contains(place));
        assert!(named, "{place}: {places:?}");
    }
}

#[test]
fn a_volume_elsewhere_is_refused_where_nothing_else_can_be_reached() {
    let volume = "stripe:4k(ram:1M,iscsi://192.0.2.1/iqn.2026-11.org.example:a/0)";
    let ran = lunar(&["--volume", volume, "--over", "iscsi,fcoe"]);
    let err = text(&ran.stderr);
    assert!(!err.contains("no private network"), "{err}");
    assert_eq!(ran.status.code(), Some(2), "{err}");
    assert!(err.contains("has a private network"), "{err}");
}

#[test]
fn a_folder_for_temporary_files_that_is_missing_is_named() {
    let missing = scratch("race-no-tmpdir").join("missing");
    let output = long(&missing).wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("race-no-tmpdir/missing: "), "{said}");
    assert!(said.contains("set TMPDIR"), "{said}");
}
