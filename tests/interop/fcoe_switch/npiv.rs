//! Further ports of an interface (NPIV): of an initiator, each with a target of its own by zones;
//! and of a server, each with a host of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tests::server::{self, Server};
use tests::tool;

use super::{Fabric, cable};
use crate::{file, lunar_says, refused};

const HOSTS: [&str; 2] = ["20:00:00:00:00:00:00:a1", "20:00:00:00:00:00:00:a2"];
const TARGETS: [&str; 2] = ["20:00:00:00:00:00:00:b1", "20:00:00:00:00:00:00:b2"];

/// A host sees the target of its own number alone.
const ZONES: &str = "default deny
zone first = 20:00:00:00:00:00:00:a1 20:00:00:00:00:00:00:b1
zone second = 20:00:00:00:00:00:00:a2 20:00:00:00:00:00:00:b2
zoneset both = first second
active both
";

/// The initiator has the interface `front`; the targets are at cables.
const INTERFACES: &str = "ip link add front mtu 2500 up type veth peer name back mtu 2500 && \
    ip link set back up && exec \"$0\" \"$@\"";

/// A switch with these zones, at `back` and at two cables.
fn fabric(dir: PathBuf, text: &str) -> Fabric {
    let zones = dir.join("zones");
    fs::write(&zones, text).unwrap();
    let mut switch = Command::new("unshare");
    switch.args(["-rn", "sh", "-c", INTERFACES]);
    switch.arg(server::binary().unwrap());
    let places = ["back".to_owned(), cable(&dir, "1"), cable(&dir, "2")];
    Fabric::begin(switch, dir, &places, &["--zones", zones.to_str().unwrap()])
}

/// A target with 16 MiB at a cable.
fn serve(fabric: &Fabric, name: &str, wwpn: &str) -> Server {
    let place = format!("{},mode=fabric,wwpn={wwpn}", cable(&fabric.dir, name));
    let dir = tests::scratch(&format!("switch-npiv-{name}")).unwrap();
    let server = Server::start_in(&dir, &["ram:16M"], &["--fcoe", &place]).unwrap();
    fabric.logs(&format!("{wwpn} ("));
    server
}

/// `lunar` where the interface `front` is, as the words of a command.
fn beside(fabric: &Fabric) -> Vec<String> {
    let switch = fabric.switch.id().to_string();
    let lunar = server::binary().unwrap();
    let lunar = lunar.to_str().unwrap();
    let into = ["nsenter", "-t", &switch, "-U", "-n"];
    let words = [&into[..], &["--preserve-credentials", lunar]].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn lunar(fabric: &Fabric, args: &[&str]) -> Command {
    let words = beside(fabric);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(args);
    command
}

fn unit(host: usize, target: usize) -> String {
    let (host, target) = (HOSTS[host], TARGETS[target]);
    format!("fcoe://front/{target}/0?mode=fabric&npiv={host}")
}

#[test]
fn each_further_port_of_an_initiator_uses_what_its_own_zone_has() {
    let mut fabric = fabric(tests::scratch("switch-npiv").unwrap(), ZONES);
    let servers = ["1", "2"].into_iter().zip(TARGETS);
    let servers: Vec<_> = servers
        .map(|(name, wwpn)| serve(&fabric, name, wwpn))
        .collect();
    let says = |args: &[&str]| tool::must(&mut lunar(&fabric, args)).unwrap();
    for (own, other) in [(0, 1), (1, 0)] {
        let place = format!("fcoe://front?mode=fabric&npiv={}", HOSTS[own]);
        let listed = says(&["ls", &place]);
        assert!(listed.contains(&unit(own, own)), "{listed}");
        assert!(!listed.contains(TARGETS[other]), "{listed}");
        refused(&mut lunar(&fabric, &["info", &unit(own, other)]));
    }
    let bytes: Vec<u8> = (0..16_u32 << 18).flat_map(u32::to_le_bytes).collect();
    fs::write(fabric.dir.join("image"), &bytes).unwrap();
    says(&["copy", &file(&fabric.dir, "image"), &unit(0, 0)]);
    // One program has both ports at once.
    says(&["copy", &unit(0, 0), &unit(1, 1)]);
    says(&["copy", &unit(1, 1), &file(&fabric.dir, "back?size=16M")]);
    assert!(fs::read(fabric.dir.join("back")).unwrap() == bytes);
    for server in servers {
        server.stop_well().unwrap();
    }
    // The ENodes of the further ports have logged out, too.
    fabric.ends_empty();
}

/// The MAC address of the ENode that has logged in under this name.
fn enode(fabric: &Fabric, wwpn: &str) -> String {
    let log = fabric.log();
    let (_, rest) = log.split_once(&format!("{wwpn} (")).unwrap();
    rest.split(')').next().unwrap().to_owned()
}

#[test]
fn each_port_of_a_server_is_seen_and_used_by_the_host_of_its_zone() {
    let dir = tests::scratch("switch-npiv-server").unwrap();
    let hosts = ["1", "2"].map(|name| cable(&dir, name));
    let [first, second] = &hosts;
    let zones = format!(
        "default deny\nzone first = port:{first} {}\nzone second = port:{second} {}\n\
         zoneset both = first second\nactive both\n",
        TARGETS[0], TARGETS[1]
    );
    let mut fabric = fabric(dir, &zones);
    let place = format!("front,mode=fabric,wwpn={},npiv={}", TARGETS[0], TARGETS[1]);
    let server_dir = tests::scratch("switch-npiv-server-1").unwrap();
    let options = ["--fcoe", &place, "--open"];
    let server = Server::start_as(&beside(&fabric), &server_dir, &["ram:16M"], &options).unwrap();
    for wwpn in TARGETS {
        fabric.logs(&format!("{wwpn} ("));
    }
    // An FLOGI of the same ENode would have ended the first login.
    let [one, other] = TARGETS.map(|wwpn| enode(&fabric, wwpn));
    assert_eq!(one, other);
    assert!(!fabric.log().contains("is logged out"), "{}", fabric.log());
    let unit = |host: usize, target: usize| {
        format!("fcoe://{}/{}/0?mode=fabric", hosts[host], TARGETS[target])
    };
    for (own, other) in [(0, 1), (1, 0)] {
        let listed = lunar_says(&["ls", &format!("fcoe://{}?mode=fabric", hosts[own])]);
        assert!(listed.contains(&unit(own, own)), "{listed}");
        assert!(!listed.contains(TARGETS[other]), "{listed}");
        refused(&mut crate::lunar(&["info", &unit(own, other)]));
    }
    let bytes: Vec<u8> = (0..16_u32 << 18).flat_map(u32::to_le_bytes).collect();
    fs::write(fabric.dir.join("image"), &bytes).unwrap();
    lunar_says(&["copy", &file(&fabric.dir, "image"), &unit(0, 0)]);
    // Both ports have the same units.
    lunar_says(&["copy", &unit(1, 1), &file(&fabric.dir, "back?size=16M")]);
    assert!(fs::read(fabric.dir.join("back")).unwrap() == bytes);
    server.stop_well().unwrap();
    fabric.ends_empty();
}
