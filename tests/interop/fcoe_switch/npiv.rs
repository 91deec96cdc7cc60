//! Two further ports of an initiator's interface (NPIV), each with a target of its own by zones.

use std::fs;
use std::process::Command;

use tests::server::{self, Server};
use tests::tool;

use super::{Fabric, cable};
use crate::{file, refused};

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

fn fabric() -> Fabric {
    let dir = tests::scratch("switch-npiv").unwrap();
    let zones = dir.join("zones");
    fs::write(&zones, ZONES).unwrap();
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

/// `lunar` where the initiator's interface is.
fn lunar(fabric: &Fabric, args: &[&str]) -> Command {
    let switch = fabric.switch.id().to_string();
    let mut command = Command::new("nsenter");
    command.args(["-t", &switch, "-U", "-n", "--preserve-credentials"]);
    command.arg(server::binary().unwrap()).args(args);
    command
}

fn unit(host: usize, target: usize) -> String {
    let (host, target) = (HOSTS[host], TARGETS[target]);
    format!("fcoe://front/{target}/0?mode=fabric&npiv={host}")
}

#[test]
fn each_further_port_of_an_initiator_uses_what_its_own_zone_has() {
    let mut fabric = fabric();
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
