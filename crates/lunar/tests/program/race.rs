//! `lunar race` as a user and a script meet it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{LUNAR, PATIENCE, Ran, Run, file, folder, lunar, signal};

/// Eight rounds.
const SHORT: &str = "--runtime 1600ms --ramp-time 1ms --turn 200ms";

/// A race that is short.
fn short(words: &str) -> Command {
    lunar(&format!("race {words} {SHORT}"))
}

/// What a race that is to be a success gave.
#[track_caller]
fn raced(command: &mut Command) -> Ran {
    let ran = command.ran();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran
}

#[test]
fn what_cannot_be_raced_is_one_line_with_the_way_out() {
    for (code, words, cause) in [
        (2, "", "<ADDR>"),
        (2, "ram:1M", "give another"),
        (2, "ram:1M ram:1M --turn 0s", "--turn is 0"),
        (2, "ram:1M ram:1M --turn x", "--turn"),
        (2, "ram:1M ram:1M --runtime 0", "--runtime"),
        (2, "ram:1M ram:1M --verify", "--verify"),
        (2, "--volume ram:1M", "--over"),
        (2, "--over iscsi,fcoe", "--volume"),
        (2, "ram:1M ram:1M --mtu 2500", "--volume"),
        (2, "ram:1M --volume ram:1M --over iscsi,fcoe", "ADDR"),
        (2, "--volume ram:1M --over iscsi", "give another"),
        (2, "--volume ram:1M --over iscsi,tcp", "iscsi, iser or fcoe"),
        (2, "--volume ram:1M --over iscsi,fcoe --mtu 100", "--mtu"),
        (
            1,
            "--volume file:/no/such/file --over iscsi,fcoe",
            "/no/such/file",
        ),
        (1, "ram:1M file:/no/such/file", "/no/such/file"),
        (1, "ram:1M ram:1M --bs 700", "not a multiple"),
        (1, "ram:1M readonly(ram:1M) --fill", "--fill writes"),
        (1, "ram:1M ram:1M --target-pid 4194304", "4194304"),
        (1, "ram:1M ram:1M --html /no/such/a.html", "--html"),
    ] {
        lunar(&format!("race {words}")).refused_with(code, cause);
    }
}

#[test]
fn each_row_has_a_verdict() {
    let out = raced(&mut short("null:1M delay:1ms(ram:1M) --bs 512,4k")).out;
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
    let page = file("race.html");
    let words = format!("ram:1M ram:1M --fill --json --html {}", page.display());
    let outcome = raced(&mut short(&words)).json();
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

/// A volume that is served here, over iSCSI and FCoE; `change` is made to the command before.
fn served(change: impl FnOnce(&mut Command)) -> [String; 2] {
    let mut race = short("--volume ram:1M --over iscsi,fcoe --json --fill");
    change(&mut race);
    let outcome = raced(&mut race).json();
    let race = &outcome["races"][0];
    assert_eq!(race["against_first"][0]["target_cpu"]["rounds"], 8);
    for lane in race["lanes"].as_array().unwrap() {
        assert!(lane["losses"].is_array(), "{lane}");
    }
    let rows = outcome["rows"].as_array().unwrap().iter();
    let addresses = rows.map(|row| row["address"].as_str().unwrap().to_owned());
    let addresses: Vec<_> = addresses.collect();
    addresses.try_into().expect("two rows")
}

#[test]
fn transports_take_options_of_their_addresses() {
    let over = "iscsi?digests=crc32c,iser,iser?crc=off";
    let outcome = raced(&mut short(&format!("--volume ram:1M --over {over} --json"))).json();
    let rows = outcome["rows"].as_array().unwrap().iter();
    let addresses: Vec<_> = rows.map(|row| row["address"].as_str().unwrap()).collect();
    let [digests, iser, bare] = addresses[..] else {
        panic!("{addresses:?}");
    };
    assert!(digests.starts_with("iscsi://") && digests.ends_with("?digests=crc32c"));
    assert!(iser.starts_with("iser://") && iser.ends_with("/0"));
    assert!(bare.starts_with("iser://") && bare.ends_with("?crc=off"));
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
    let outcome = short("ram:1M ram:1M --json").ran().json();
    let manuals = [
        include_str!("../../../../docs/manual/bench.md"),
        include_str!("../../../../docs/manual/race.md"),
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
        let ran = unshare.args(way).args(veth).ran();
        (ran.code != Some(0)).then_some(ran.err)
    });
    if let [Some(first), Some(second)] = refusals {
        panic!("no private network: run this as root, or allow user namespaces: {first}{second}");
    }
}

#[test]
fn a_volume_is_served_in_a_network_of_its_own() {
    needs_a_private_network();
    let [iscsi, fcoe] = served(|_| {});
    assert!(iscsi.starts_with("iscsi://198.18.0.1:3260/"), "{iscsi}");
    assert!(fcoe.starts_with("fcoe://san0/20:00:"), "{fcoe}");
}

/// Without the programs that make namespaces.
#[test]
fn a_volume_is_served_over_loopback_and_a_cable_where_no_network_is_to_be_had() {
    let scratch = folder("no-network");
    let path = std::env::var("PATH").unwrap();
    for tool in ["setpriv", "timeout"] {
        let mut files = path.split(':').map(|dir| Path::new(dir).join(tool));
        let found = files.find(|file| file.exists()).unwrap();
        symlink(found, scratch.join(tool)).unwrap();
    }
    let [iscsi, fcoe] = served(|race| {
        race.env("PATH", &scratch);
    });
    assert!(iscsi.starts_with("iscsi://127.0.0.1:"), "{iscsi}");
    assert!(fcoe.starts_with("fcoe://cable:/"), "{fcoe}");
}

/// A race that would take an hour.
fn long(scratch: &Path) -> Child {
    let words = "race --volume ram:1M --over iscsi,fcoe --runtime 3600";
    let mut command = Command::new(LUNAR);
    let command = command.args(words.split(' ')).env("TMPDIR", scratch);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The process that serves for a race, as soon as it runs.
#[track_caller]
fn target_of(race: &mut Child) -> String {
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
            return child.to_owned();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a race, which is ended itself if it takes too long.
#[track_caller]
fn waited_for(race: Child) -> Ran {
    let pid = race.id();
    let (tell, told) = mpsc::channel();
    let waits = thread::spawn(move || tell.send(race.wait_with_output().unwrap()));
    let ran = told.recv_timeout(PATIENCE);
    if ran.is_err() {
        signal("KILL", pid);
    }
    waits.join().unwrap().ok();
    ran.expect("the race does not end").into()
}

/// Whoever is signalled, nothing of the race is left.
#[track_caller]
fn ends(race: Child, target: &str, scratch: &Path) -> Ran {
    let ran = waited_for(race);
    let lives = Path::new("/proc").join(target).exists();
    assert!(!lives, "the target lives on");
    assert_eq!(fs::read_dir(scratch).unwrap().count(), 0);
    ran
}

#[test]
fn an_interrupted_race_leaves_nothing() {
    let scratch = folder("interrupted");
    let mut race = long(&scratch);
    let target = target_of(&mut race);
    signal("INT", race.id());
    let ran = ends(race, &target, &scratch);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
}

#[test]
fn a_target_that_dies_ends_the_race() {
    let scratch = folder("target-dies");
    let mut race = long(&scratch);
    let target = target_of(&mut race);
    signal("KILL", &target);
    let Ran { code, err, .. } = ends(race, &target, &scratch);
    assert_eq!(code, Some(1), "{err}");
    let line = "lunar: the target exited before the race: signal: 9 (SIGKILL)";
    assert_eq!(err.lines().last(), Some(line));
}

/// Runs a script in the network namespace of a process, and in its user namespace if that is
/// another one than ours.
fn within(pid: &str, script: &str) -> Ran {
    let user = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
    let mut command = Command::new("nsenter");
    command.args(["-t", pid, "-n"]);
    if user(pid) != user("self") {
        command.args(["-U", "--preserve-credentials"]);
    }
    command.args(["bash", "-c", script]).ran()
}

/// Runs a script until it succeeds.
#[track_caller]
fn soon_within(pid: &str, script: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ran = within(pid, script);
        if ran.code == Some(0) {
            return;
        }
        assert!(Instant::now() < deadline, "{script}: {}", ran.err);
        thread::sleep(Duration::from_millis(10));
    }
}

/// The target's interface takes no frames as long as those that somebody else sends there.
#[test]
fn the_place_where_frames_were_lost_is_named() {
    needs_a_private_network();
    let words = format!("race --volume ram:1M --over fcoe,fcoe --json {SHORT}");
    let mut command = Command::new(LUNAR);
    let command = command.args(words.split(' '));
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut race = command.spawn().unwrap();
    let target = target_of(&mut race);
    let client = race.id().to_string();
    soon_within(&target, "ip link set san0 mtu 2200");
    let route = "ip address add 192.0.2.1/24 dev san0 && \
                 ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev san0";
    let ran = within(&client, route);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
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
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let outcome = ran.json();
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
    let Ran { code, err, .. } = lunar(&format!("race --volume {volume} --over iscsi,fcoe")).ran();
    assert!(!err.contains("no private network"), "{err}");
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("has a private network"), "{err}");
}

#[test]
fn a_folder_for_temporary_files_that_is_missing_is_named() {
    let missing = folder("race-no-tmpdir").join("missing");
    let Ran { code, err, .. } = long(&missing).wait_with_output().unwrap().into();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("race-no-tmpdir/missing: "), "{err}");
    assert!(err.contains("set TMPDIR"), "{err}");
}
