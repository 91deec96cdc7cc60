//! Fibre Channel over Ethernet between two of our own: over a cable, and over a pair of virtual
//! Ethernet interfaces in a namespace of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tests::server::{self, Server};
use tests::tool;

/// A folder with an image in which no two blocks are the same, and a hole.
fn scene(name: &str) -> PathBuf {
    let dir = tests::scratch(name).unwrap();
    let words = (0..BYTES / 8).map(|word| if word % 4096 < 1024 { 0 } else { word });
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    fs::write(dir.join("image"), bytes).unwrap();
    dir
}

const BYTES: u64 = 16 << 20;

/// `lunar`, by a command that becomes it.
fn lunar(before: &[&str], args: &[&str]) -> Command {
    let lunar = server::binary().unwrap();
    let lunar = lunar.to_str().unwrap();
    let words = [before, &[lunar], args].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Writes the image to the unit and reads it back; whoever reads another thing than he wrote fails.
fn there_and_back(dir: &Path, unit: &str, before: &[&str]) {
    let image = format!("file:{}", dir.join("image").display());
    let back = format!("file:{}?size=16M", dir.join("back").display());
    tool::must(&mut lunar(before, &["copy", &image, unit])).unwrap();
    tool::must(&mut lunar(before, &["copy", unit, &back])).unwrap();
    let same = fs::read(dir.join("image")).unwrap() == fs::read(dir.join("back")).unwrap();
    assert!(same, "what was read is not what was written");
}

fn cable(dir: &Path) -> String {
    format!("cable:{}", dir.join("cable").display())
}

#[test]
fn a_unit_is_used_over_a_cable() {
    let dir = scene("fcoe-cable");
    let server = Server::start_in(&dir, &["ram:16M", "ram:1M"], &["--fcoe", &cable(&dir)]).unwrap();
    let told = tool::must(&mut lunar(&[], &["info", server.address(1)])).unwrap();
    for words in ["1.0 MiB", "target port", &server.luns[1].target] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let portal = format!("fcoe://{}", cable(&dir));
    let told = tool::must(&mut lunar(&[], &["ls", &portal])).unwrap();
    for words in ["(ours)", server.address(0), server.address(1)] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let json = tool::must(&mut lunar(&[], &["ls", "--json", &portal])).unwrap();
    assert!(
        json.contains("frames_lost") && json.contains("link_down"),
        "{json}"
    );
    there_and_back(&dir, server.address(0), &[]);
    let load = [
        "--rw",
        "randrw",
        "--iodepth",
        "16",
        "--verify",
        "--runtime",
        "1s",
    ];
    tool::must(&mut lunar(
        &[],
        &[&["bench", server.address(0)], &load[..]].concat(),
    ))
    .unwrap();
    assert!(server.stop().unwrap().success());
}

/// Both are behind one end of a cable, which one port of ours has at a time, from when the first of
/// them is opened.
#[test]
fn several_units_are_used_over_one_cable() {
    let dir = scene("fcoe-several");
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["env".into(), "LUNAR_LOG=debug".into(), binary];
    let options = ["--fcoe", &cable(&dir)];
    let server = Server::start_as(&command, &dir, &["ram:8M", "ram:8M"], &options).unwrap();
    let (a, b) = (server.address(0).to_owned(), server.address(1).to_owned());
    there_and_back(&dir, &format!("concat({a},{b})"), &[]);
    tool::must(&mut lunar(&[], &["copy", &a, &b])).unwrap();
    tool::must(&mut lunar(&[], &["verify", &a, &b])).unwrap();
    // Once for each command, though each of them asks two units what they are, then uses them.
    let log = server.log_path().to_owned();
    assert!(server.stop().unwrap().success());
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("has logged in").count(), 4, "{log}");
}

/// What waits in one of two is not lost when their port logs in anew.
#[test]
fn all_users_of_a_port_go_on_when_their_target_is_back() {
    let dir = scene("fcoe-several-killed");
    let disks = ["a", "b"].map(|name| format!("file:{}?size=8M&sync", dir.join(name).display()));
    let disks = disks.each_ref().map(String::as_str);
    let start = || Server::start_in(&dir, &disks, &["--fcoe", &cable(&dir)]).unwrap();
    let mut server = start();
    let both = format!("concat({},{})", server.address(0), server.address(1));
    let image = format!("file:{}", dir.join("image").display());
    let slowly = format!("limit:rate=8M({image})");
    let mut copy = lunar(&[], &["copy", &slowly, &both]);
    let mut copy = copy.stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1800));
    assert!(copy.try_wait().unwrap().is_none(), "it is over already");
    server.kill().unwrap();
    server = start();
    assert!(copy.wait().unwrap().success());
    tool::must(&mut lunar(&[], &["verify", &image, &both])).unwrap();
    assert!(server.stop().unwrap().success());
}

#[test]
fn who_is_not_named_is_not_let_in() {
    let dir = scene("fcoe-closed");
    let options = ["--fcoe", &cable(&dir), "--allow", "20:00:02:00:00:00:00:01"];
    let server = Server::start_in(&dir, &["ram:1M"], &options).unwrap();
    let ran = tool::run(&mut lunar(&[], &["info", server.address(0)]), LIMIT).unwrap();
    assert_eq!(
        ran.status.and_then(|status| status.code()),
        Some(1),
        "{}",
        ran.output
    );
    assert!(
        ran.output.contains("that it admits 20:00:02"),
        "{}",
        ran.output
    );
}

#[test]
fn a_cable_that_nothing_else_has_open_is_told_of() {
    let dir = scene("fcoe-alone");
    let unit = format!("fcoe://{}/20:00:02:00:00:00:00:01/0", cable(&dir));
    let ran = tool::run(&mut lunar(&[], &["info", &unit]), LIMIT).unwrap();
    let code = ran.status.and_then(|status| status.code());
    assert_eq!(code, Some(1), "{}", ran.output);
    let told = "no server has opened the other end of cable:";
    assert!(ran.output.contains(told), "{}", ran.output);
}

/// What `ls` prints for a script: its targets, and its ports.
fn listed(dir: &Path) -> [Vec<Value>; 2] {
    let portal = format!("fcoe://{}", cable(dir));
    let told = tool::must(&mut lunar(&[], &["ls", "--json", &portal])).unwrap();
    let objects = told.lines().map(|line| serde_json::from_str(line).unwrap());
    let (targets, ports) = objects.partition(|object: &Value| object.get("target").is_some());
    [targets, ports]
}

fn frames(count: &Value) -> u64 {
    count.as_u64().unwrap()
}

#[test]
fn a_script_is_told_of_ports_and_units() {
    let dir = scene("fcoe-listed");
    let server = Server::start_in(&dir, &["ram:1M"], &["--fcoe", &cable(&dir)]).unwrap();
    let [targets, ports] = listed(&dir);
    let [target] = &targets[..] else {
        panic!("{targets:?}")
    };
    let unit = &target["units"][0];
    assert_eq!(unit["address"], server.address(0));
    let said = ["vendor", "product", "revision"].map(|key| unit[key].as_str().unwrap());
    assert_eq!(said, ["LUNAR", "VOLUME", "0.1"]);
    let [own, its] = &ports[..] else {
        panic!("{ports:?}")
    };
    let flags = [own, its].map(|port| port["ours"].as_bool().unwrap());
    assert_eq!(flags, [true, false]);
    assert_eq!(its["port_name"], target["target"]);
    for (port, role) in [(own, "FCP Initiator"), (its, "FCP Target")] {
        assert_eq!(
            (&port["role"], &port["state"]),
            (&json!(role), &json!("Online"))
        );
        assert_eq!(port["interface"], cable(&dir));
        assert!(port["fc_id"].as_str().unwrap().starts_with("0x"), "{port}");
        assert!(port["frame_bytes"].as_u64().unwrap() > 1000, "{port}");
        assert!(
            port["node_name"].as_str().unwrap().starts_with("10:00:"),
            "{port}"
        );
        assert_eq!(port["speed_mbit"], Value::Null);
    }
    let lost: u64 = own["frames_lost"]
        .as_object()
        .unwrap()
        .values()
        .map(frames)
        .sum();
    assert_eq!((lost, &its["frames_lost"]), (0, &Value::Null), "{own}");
    assert!(server.stop().unwrap().success());
}

#[test]
fn a_script_is_told_who_does_not_let_us_in() {
    let dir = scene("fcoe-listed-closed");
    let options = ["--fcoe", &cable(&dir), "--allow", "20:00:02:00:00:00:00:01"];
    let server = Server::start_in(&dir, &["ram:1M"], &options).unwrap();
    let [targets, ports] = listed(&dir);
    assert_eq!(targets, [Value::Null; 0]);
    let [_, its] = &ports[..] else {
        panic!("{ports:?}")
    };
    assert_eq!(its["port_name"], server.luns[0].target);
    assert_eq!(its["state"], "not logged in");
}

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_target_that_was_killed_is_waited_for_and_nothing_is_lost() {
    let dir = scene("fcoe-killed");
    let disk = format!("file:{}?size=16M&sync", dir.join("disk").display());
    let start = || Server::start_in(&dir, &[&disk], &["--fcoe", &cable(&dir)]).unwrap();
    let mut server = start();
    let image = format!("limit:rate=4M(file:{})", dir.join("image").display());
    let mut copy = lunar(&[], &["copy", &image, server.address(0)]);
    let mut copy = copy.stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(1500));
        assert!(
            copy.try_wait().unwrap().is_none(),
            "it is over before its target was killed"
        );
        server.kill().unwrap();
        server = start();
    }
    assert!(copy.wait().unwrap().success());
    assert!(server.stop().unwrap().success());
    let same = fs::read(dir.join("image")).unwrap() == fs::read(dir.join("disk")).unwrap();
    assert!(same, "what was written is not there");
}

/// Both ends of the pair are in one namespace: what is sent by the one comes in by the other.
fn on_ethernet(name: &str, mtu: u16) {
    let dir = scene(name);
    let script = format!(
        "ip link add front mtu {mtu} up type veth peer name back mtu {mtu} && \
         ip link set back up && exec \"$0\" \"$@\""
    );
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["unshare", "-rn", "sh", "-c", &script, &binary].map(str::to_owned);
    let options = ["--fcoe", "back", "--open"];
    let server = Server::start_as(&command, &dir, &["ram:16M"], &options).unwrap();
    let pid = server.pid().to_string();
    let before = ["nsenter", "-t", &pid, "-U", "-n", "--preserve-credentials"];
    let unit = server.address(0).replace("fcoe://back/", "fcoe://front/");
    there_and_back(&dir, &unit, &before);
    // Each job has a port of its own, with an address of its own.
    let load = [
        "--rw",
        "randrw",
        "--iodepth",
        "8",
        "--numjobs",
        "3",
        "--verify",
        "--runtime",
        "1s",
    ];
    tool::must(&mut lunar(
        &before,
        &[&["bench", &unit], &load[..]].concat(),
    ))
    .unwrap();
    assert!(server.stop().unwrap().success());
}

#[test]
fn a_unit_is_used_over_ethernet_with_full_frames() {
    on_ethernet("fcoe-2500", 2500);
}

#[test]
fn a_unit_is_used_over_ethernet_with_short_frames() {
    on_ethernet("fcoe-1500", 1500);
}

/// An interface of an Ethernet without anybody, which is told of until frames pass there.
#[test]
fn what_is_in_the_way_of_frames_is_told_with_what_mends_it() {
    let dir = scene("fcoe-obstacles");
    let script = "ip link add front type veth peer name back && \
                  ip link add low mtu 301 type veth && exec \"$0\" \"$@\"";
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["unshare", "-rn", "sh", "-c", script, &binary].map(str::to_owned);
    let options = ["--fcoe", "back", "--open"];
    let server = Server::start_as(&command, &dir, &["ram:1M"], &options).unwrap();
    let pid = server.pid().to_string();
    let before = ["nsenter", "-t", &pid, "-U", "-n", "--preserve-credentials"];
    let told = |words: &str| server.has_logged(words).unwrap();
    let ip = |args: &str| {
        let words = ["ip", "link", "set"].into_iter().chain(args.split(' '));
        let words: Vec<_> = before.into_iter().chain(words).collect();
        tool::must(Command::new(words[0]).args(&words[1..])).unwrap();
    };
    told("back: the link is down: ip link set back up");
    let unit = server.address(0).replace("fcoe://back/", "fcoe://front/");
    for (args, words) in [
        (
            &["info", &unit] as &[_],
            "front: the link is down: ip link set front up",
        ),
        (
            &["ls", "fcoe://front"],
            "front: the link is down: ip link set front up",
        ),
        (
            &["floor", "fcoe://front"],
            "front: the link is down: ip link set front up",
        ),
        (&["ls", "fcoe://low"], "low: an MTU of 301 is too small"),
        (
            &["serve", "ram:1M", "--fcoe", "low", "--open"],
            "ip link set low mtu 2500",
        ),
    ] {
        let ran = tool::run(&mut lunar(&before, args), LIMIT).unwrap();
        let code = ran.status.and_then(|status| status.code());
        assert_eq!(code, Some(1), "{args:?}: {}", ran.output);
        assert!(ran.output.contains(words), "{args:?}: {}", ran.output);
    }
    ip("back up");
    ip("front up");
    told("back: an MTU of 1500 limits frames to 1452 of 2112 bytes");
    ip("front mtu 2500");
    ip("back mtu 2500");
    told("back: the link is up, with MTU 2500");
    ip("back mtu 300");
    told("back: an MTU of 300 is too small");
    assert!(server.stop().unwrap().success());
}

/// Three interfaces of one Ethernet.
const BRIDGE: &str = "ip link add bridge up type bridge && for name in front back other; do \
     ip link add $name mtu 2500 up type veth peer name port-$name mtu 2500 && \
     ip link set port-$name master bridge up || exit 1; done && exec \"$0\" \"$@\"";

#[test]
fn a_second_port_of_its_target_s_name_gets_nothing_of_a_copy() {
    let dir = scene("fcoe-twice");
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["unshare", "-rn", "sh", "-c", BRIDGE, &binary].map(str::to_owned);
    let options = ["--fcoe", "back", "--open"];
    let first = Server::start_as(&command, &dir, &["ram:16M"], &options).unwrap();
    let pid = first.pid().to_string();
    let before = ["nsenter", "-t", &pid, "-U", "-n", "--preserve-credentials"];
    let unit = first.address(0).replace("fcoe://back/", "fcoe://front/");
    let image = format!("file:{}", dir.join("image").display());
    let slowly = format!("limit:rate=4M({image})");
    let mut copy = lunar(&before, &["copy", &slowly, &unit]);
    let mut copy = copy.stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    let other = format!("file:{}?size=16M", dir.join("other").display());
    let port = format!("other,wwpn={}", first.luns[0].target);
    let command = [&before[..], &[&binary]].concat();
    let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
    let options = ["--fcoe", &port, "--open"];
    let second = tests::scratch("fcoe-twice-second").unwrap();
    let second = Server::start_as(&command, &second, &[&other], &options).unwrap();
    assert!(copy.try_wait().unwrap().is_none(), "it is over already");
    assert!(copy.wait().unwrap().success());
    assert!(second.stop().unwrap().success());
    tool::must(&mut lunar(&before, &["verify", &image, &unit])).unwrap();
    let untouched = fs::read(dir.join("other")).unwrap();
    assert!(
        untouched == [0; BYTES as usize],
        "the second port got some of it"
    );
    assert!(first.stop().unwrap().success());
}
