//! Fibre Channel over Ethernet between two of our own: over a cable, and over a pair of virtual
//! Ethernet interfaces in a namespace of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tests::server::{self, Server};
use tests::tool;

use crate::{file, refused, says, words};

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

/// Runs `lunar`, which must not fail; gives what it said.
#[track_caller]
fn must(before: &[&str], args: &[&str]) -> String {
    tool::must(&mut lunar(before, args)).unwrap_or_else(|cause| panic!("{cause:#}"))
}

/// Writes the image to the unit and reads it back; whoever reads another thing than he wrote fails.
fn there_and_back(dir: &Path, unit: &str, before: &[&str]) {
    must(before, &["copy", &file(dir, "image"), unit]);
    must(before, &["copy", unit, &file(dir, "back?size=16M")]);
    let same = fs::read(dir.join("image")).unwrap() == fs::read(dir.join("back")).unwrap();
    assert!(same, "what was read is not what was written");
}

/// Reads and writes at random, and verifies.
fn bench(unit: &str, options: &str, before: &[&str]) {
    let load = format!("bench {unit} --rw randrw {options} --verify --runtime 1s");
    must(before, &words(&load));
}

fn cable(dir: &Path) -> String {
    format!("cable:{}", dir.join("cable").display())
}

/// A server at one end of the cable of a folder.
fn serve(dir: &Path, volumes: &[&str], options: &[&str]) -> Server {
    let cable = cable(dir);
    let options = [&["--fcoe", &cable], options].concat();
    Server::start_in(dir, volumes, &options).unwrap()
}

/// A copy of the image that is under way; what it says is not looked at.
fn begin_to_copy(dir: &Path, rate: &str, unit: &str, before: &[&str]) -> Child {
    let slowly = format!("limit:rate={rate}({})", file(dir, "image"));
    let mut copy = lunar(before, &["copy", &slowly, unit]);
    copy.stderr(Stdio::null()).spawn().unwrap()
}

/// Some time later a copy must still be under way.
fn goes_on(copy: &mut Child, time_ms: u64) {
    thread::sleep(Duration::from_millis(time_ms));
    assert!(copy.try_wait().unwrap().is_none(), "it is over already");
}

#[test]
fn a_unit_is_used_over_a_cable() {
    let dir = scene("fcoe-cable");
    let server = serve(&dir, &["ram:16M", "ram:1M"], &[]);
    let told = must(&[], &["info", server.address(1)]);
    says(&told, &["1.0 MiB", "target port", &server.luns[1].target]);
    let portal = format!("fcoe://{}", cable(&dir));
    let told = must(&[], &["ls", &portal]);
    says(&told, &["(ours)", server.address(0), server.address(1)]);
    let json = must(&[], &["ls", "--json", &portal]);
    says(&json, &["frames_lost", "link_down"]);
    there_and_back(&dir, server.address(0), &[]);
    bench(server.address(0), "--iodepth 16", &[]);
    server.stop_well().unwrap();
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
    must(&[], &["copy", &a, &b]);
    must(&[], &["verify", &a, &b]);
    // Once for each command, though each of them asks two units what they are, then uses them.
    let log = server.stop_well().unwrap();
    assert_eq!(log.matches("has logged in").count(), 4, "{log}");
}

/// What waits in one of two is not lost when their port logs in anew.
#[test]
fn all_users_of_a_port_go_on_when_their_target_is_back() {
    let dir = scene("fcoe-several-killed");
    let disks = ["a?size=8M&sync", "b?size=8M&sync"].map(|name| file(&dir, name));
    let start = || serve(&dir, &disks.each_ref().map(String::as_str), &[]);
    let mut server = start();
    let both = format!("concat({},{})", server.address(0), server.address(1));
    let mut copy = begin_to_copy(&dir, "8M", &both, &[]);
    goes_on(&mut copy, 1800);
    server.kill().unwrap();
    server = start();
    assert!(copy.wait().unwrap().success());
    must(&[], &["verify", &file(&dir, "image"), &both]);
    server.stop_well().unwrap();
}

/// For as long as it uses them.
#[test]
fn fcoeadm_shows_the_units_that_a_port_uses() {
    let dir = scene("fcoe-shown");
    let server = serve(&dir, &["ram:16M", "ram:16M"], &[]);
    let mut copy = begin_to_copy(&dir, "4M", server.address(1), &[]);
    goes_on(&mut copy, 1500);
    let told = must(&[], &["fcoeadm", "-t", &cable(&dir)]);
    says(
        &told,
        &["         1  -             16.00 MiB      512     LUNAR VOLUME"],
    );
    assert!(!told.contains("         0  -"), "{told}");
    let told = must(&[], &["fcoeadm", "-l", &cable(&dir)]);
    says(
        &told,
        &["    LUN #1 Information:", "    Capacity in Blocks: 32768"],
    );
    assert!(copy.wait().unwrap().success());
    server.stop_well().unwrap();
}

/// There is no name server that could be asked.
#[test]
fn a_port_without_a_fabric_asks_its_neighbours() {
    let dir = scene("fcoe-neighbours");
    let server = serve(&dir, &["ram:16M"], &[]);
    let mut copy = begin_to_copy(&dir, "4M", server.address(0), &[]);
    goes_on(&mut copy, 1500);
    let shown = must(&[], &["fcoeadm", "-i", &cable(&dir)]);
    let devices = shown
        .lines()
        .filter_map(|line| line.split_once("OS Device Name:"));
    let device = format!("lunar-{}-0", copy.id());
    assert!(
        devices.into_iter().any(|(_, name)| name.trim() == device),
        "{shown}"
    );
    let target = &server.luns[0].target;
    let told = must(
        &[],
        &["fcping", "-h", &device, "-c", "2", "-f", "-P", target],
    );
    says(
        &told,
        &[
            "echo    1 accepted ",
            "2 frames sent, 2 received 0 errors, 0.000% loss",
        ],
    );
    let rport = format!("rport-{device}-0");
    let told = must(&[], &["fcrls", "--port", &rport]);
    says(
        &told,
        &[
            "RLS request accepted (LS_ACC)",
            "Link Failure Count                   = 0",
        ],
    );
    let told = refused(&mut lunar(
        &[],
        &["fcping", "-h", &device, "-c", "1", "-F", "0xeffff"],
    ));
    says(
        &told,
        &["echo    1 error: no port with N_Port_ID 0x0EFFFF is on this Ethernet"],
    );
    let told = refused(&mut lunar(
        &[],
        &["fcping", "-h", &device, "-N", "10:00:00:00:00:00:00:07"],
    ));
    says(&told, &["wwnn 0x1000000000000007: no neighbour has it"]);
    let told = refused(&mut lunar(&[], &["fcnsq", &device, "--gpn", "1"]));
    says(
        &told,
        &["gpn_id not answered: the port is in VN2VN mode, in which there is no name server"],
    );
    assert!(copy.wait().unwrap().success());
    server.stop_well().unwrap();
}

#[test]
fn who_is_not_named_is_not_let_in() {
    let dir = scene("fcoe-closed");
    let server = serve(&dir, &["ram:1M"], &["--allow", "20:00:02:00:00:00:00:01"]);
    let told = refused(&mut lunar(&[], &["info", server.address(0)]));
    let refusal = "it rejects the login (PLOGI): unable to perform, invalid N_Port name (LS_RJT \
        09h/0dh); let the target admit 20:00:02";
    says(&told, &[refusal]);
}

#[test]
fn a_cable_that_nothing_else_has_open_is_told_of() {
    let dir = scene("fcoe-alone");
    let unit = format!("fcoe://{}/20:00:02:00:00:00:00:01/0", cable(&dir));
    let told = refused(&mut lunar(&[], &["info", &unit]));
    says(&told, &["no server has opened the other end of cable:"]);
}

/// What `ls` prints for a script: its targets, and its ports.
fn listed(dir: &Path) -> [Vec<Value>; 2] {
    let portal = format!("fcoe://{}", cable(dir));
    let told = must(&[], &["ls", "--json", &portal]);
    let objects = told.lines().map(|line| serde_json::from_str(line).unwrap());
    let (targets, ports) = objects.partition(|object: &Value| object.get("target").is_some());
    [targets, ports]
}

#[test]
fn a_script_is_told_of_ports_and_units() {
    let dir = scene("fcoe-listed");
    let server = serve(&dir, &["ram:1M"], &[]);
    let [targets, ports] = listed(&dir);
    let [target] = &targets[..] else {
        panic!("{targets:?}")
    };
    let unit = &target["units"][0];
    assert_eq!(unit["address"], server.address(0));
    let said = ["vendor", "product", "revision"].map(|key| unit[key].as_str().unwrap());
    let (major, minor) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    );
    assert_eq!(said, ["LUNAR", "VOLUME", &format!("{major}.{minor}")]);
    let [own, its] = &ports[..] else {
        panic!("{ports:?}")
    };
    let flags = [own, its].map(|port| port["ours"].as_bool().unwrap());
    assert_eq!(flags, [true, false]);
    assert_eq!(its["port_name"], target["target"]);
    for (port, role) in [(own, "FCP Initiator"), (its, "FCP Target")] {
        assert_eq!(port["role"], role);
        assert_eq!(port["state"], "Online");
        assert_eq!(port["interface"], cable(&dir));
        assert!(port["fc_id"].as_str().unwrap().starts_with("0x"), "{port}");
        assert!(port["frame_bytes"].as_u64().unwrap() > 1000, "{port}");
        let node_name = port["node_name"].as_str().unwrap();
        assert!(node_name.starts_with("10:00:"), "{port}");
        assert_eq!(port["speed_mbit"], Value::Null);
    }
    let counts = own["frames_lost"].as_object().unwrap().values();
    let lost: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((lost, &its["frames_lost"]), (0, &Value::Null), "{own}");
    server.stop_well().unwrap();
}

#[test]
fn a_script_is_told_who_does_not_let_us_in() {
    let dir = scene("fcoe-listed-closed");
    let server = serve(&dir, &["ram:1M"], &["--allow", "20:00:02:00:00:00:00:01"]);
    let [targets, ports] = listed(&dir);
    assert_eq!(targets, [Value::Null; 0]);
    let [_, its] = &ports[..] else {
        panic!("{ports:?}")
    };
    assert_eq!(its["port_name"], server.luns[0].target);
    assert_eq!(its["state"], "not logged in");
}

#[test]
fn a_target_that_was_killed_is_waited_for_and_nothing_is_lost() {
    let dir = scene("fcoe-killed");
    let start = || serve(&dir, &[&file(&dir, "disk?size=16M&sync")], &[]);
    let mut server = start();
    let mut copy = begin_to_copy(&dir, "4M", server.address(0), &[]);
    for _ in 0..2 {
        goes_on(&mut copy, 1500);
        server.kill().unwrap();
        server = start();
    }
    assert!(copy.wait().unwrap().success());
    server.stop_well().unwrap();
    let same = fs::read(dir.join("image")).unwrap() == fs::read(dir.join("disk")).unwrap();
    assert!(same, "what was written is not there");
}

/// A server in a network namespace of its own, at the interface `back` of what `script` makes
/// there; the way of other commands into it; and its unit as `front` has it.
fn on_interfaces(dir: &Path, script: &str, volume: &str) -> (Server, String, String) {
    on_interfaces_at(dir, script, ("back", volume))
}

/// The same at this place of `--fcoe`.
fn on_interfaces_at(
    dir: &Path,
    script: &str,
    (place, volume): (&str, &str),
) -> (Server, String, String) {
    let script = format!("{script} && exec \"$0\" \"$@\"");
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command = ["unshare", "-rn", "sh", "-c", &script, &binary].map(str::to_owned);
    let options = ["--fcoe", place, "--open"];
    let server = Server::start_as(&command, dir, &[volume], &options).unwrap();
    let into = format!("nsenter -t {} -U -n --preserve-credentials", server.pid());
    let unit = server.address(0).replace("fcoe://back/", "fcoe://front/");
    (server, into, unit)
}

/// Both ends of the pair are in one namespace: what is sent by the one comes in by the other.
fn on_ethernet(name: &str, mtu: u16) {
    let dir = scene(name);
    let script = format!(
        "ip link add front mtu {mtu} up type veth peer name back mtu {mtu} && \
         ip link set back up"
    );
    let (server, into, unit) = on_interfaces(&dir, &script, "ram:16M");
    let before = words(&into);
    there_and_back(&dir, &unit, &before);
    // Each job has a port of its own, with an address of its own.
    bench(&unit, "--iodepth 8 --numjobs 3", &before);
    server.stop_well().unwrap();
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
                  ip link add low mtu 301 type veth";
    let (server, into, unit) = on_interfaces(&dir, script, "ram:1M");
    let before = words(&into);
    let told = |words: &str| server.has_logged(words).unwrap();
    let ip = |args: &str| {
        let line = format!("{into} ip link set {args}");
        let words = words(&line);
        crate::must(words[0], &words[1..]);
    };
    told("back: the link is down: ip link set back up");
    let is_down = "front: the link is down: ip link set front up";
    for (args, told) in [
        (&*format!("info {unit}"), is_down),
        ("ls fcoe://front", is_down),
        ("floor fcoe://front", is_down),
        ("ls fcoe://low", "low: an MTU of 301 is too small"),
        ("serve ram:1M --fcoe low --open", "ip link set low mtu 2500"),
        (
            "serve ram:1M --fcoe front,mode=fabric,dcb=required --open",
            "front: this NIC has no DCB",
        ),
        (
            "info fcoe://front/20:00:00:00:00:00:00:07/0?mode=fabric&dcb=required",
            "front: this NIC has no DCB",
        ),
    ] {
        let said = refused(&mut lunar(&before, &words(args)));
        assert!(said.contains(told), "{args}: {said}");
    }
    ip("back up");
    ip("front up");
    told("back: an MTU of 1500 limits frames to 1452 of 2112 bytes");
    ip("front mtu 2500");
    ip("back mtu 2500");
    told("back: the link is up, with MTU 2500");
    ip("back mtu 300");
    told("back: an MTU of 300 is too small");
    server.stop_well().unwrap();
}

/// The interface is that of no VLAN, which is told as 0.
#[test]
fn a_port_without_a_fabric_tells_hosts_its_vlan_if_it_is_to() {
    let script = "ip link add front mtu 2500 up type veth peer name back mtu 2500 && \
                  ip link set back up";
    for (name, place) in [
        ("fcoe-fip-resp", "back,fip-resp=yes"),
        ("fcoe-no-fip-resp", "back,fip-resp=no"),
    ] {
        let dir = scene(name);
        let (server, into, _) = on_interfaces_at(&dir, script, (place, "ram:1M"));
        let before = words(&into);
        let ask = ["fipvlan", "-m", "vn2vn", "-l", "3", "front"];
        if place.ends_with("yes") {
            let told = must(&before, &ask);
            let row = told.lines().find(|line| line.starts_with("front "));
            let columns: Vec<_> = row.unwrap_or_default().split('|').map(str::trim).collect();
            assert_eq!(columns[..2], ["front", "0"], "{told}");
        } else {
            refused(&mut lunar(&before, &ask));
        }
        server.stop_well().unwrap();
    }
}

/// Three interfaces of one Ethernet.
const BRIDGE: &str = "ip link add bridge up type bridge && for name in front back other; do \
     ip link add $name mtu 2500 up type veth peer name port-$name mtu 2500 && \
     ip link set port-$name master bridge up || exit 1; done";

#[test]
fn a_second_port_of_its_target_s_name_gets_nothing_of_a_copy() {
    let dir = scene("fcoe-twice");
    let (first, into, unit) = on_interfaces(&dir, BRIDGE, "ram:16M");
    let before = words(&into);
    let mut copy = begin_to_copy(&dir, "4M", &unit, &before);
    thread::sleep(Duration::from_millis(1500));
    let port = format!("other,wwpn={}", first.luns[0].target);
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let command: Vec<_> = before.iter().map(|word| (*word).to_owned()).collect();
    let command = [command, vec![binary]].concat();
    let options = ["--fcoe", &port, "--open"];
    let second = tests::scratch("fcoe-twice-second").unwrap();
    let other = file(&dir, "other?size=16M");
    let second = Server::start_as(&command, &second, &[&other], &options).unwrap();
    goes_on(&mut copy, 0);
    assert!(copy.wait().unwrap().success());
    second.stop_well().unwrap();
    must(&before, &["verify", &file(&dir, "image"), &unit]);
    let untouched = fs::read(dir.join("other")).unwrap() == [0; BYTES as usize];
    assert!(untouched, "the second port got some of it");
    first.stop_well().unwrap();
}
