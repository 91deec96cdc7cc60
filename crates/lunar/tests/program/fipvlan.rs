//! `lunar fipvlan` at one end of a cable, with a forwarder that the test plays at the other.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use crate::namespace::Namespace;
use crate::rig::{LUNAR, PATIENCE, Run, folder, lunar, signal};

/// VLAN Notification (FC-BB-6): MAC address of the forwarder, and VLANs 152 and 200.
const ANSWER: [u8; 28] = [
    0x10, 0, 0, 4, 0, 2, 0, 4, 0x80, 1, // FIP 1, operation 4/2, 4 words, FP and F
    2, 2, 0x00, 0x0d, 0xec, 0x6d, 0x8f, 0x00, // MAC
    14, 1, 0, 152, 14, 1, 0, 200, 0, 0, // VLANs, padding
];

#[test]
fn forwarders_are_printed_as_they_answer() {
    let folder = folder("fipvlan");
    let forwarder = UnixDatagram::bind(folder.join("san.peer")).unwrap();
    forwarder.set_read_timeout(Some(PATIENCE)).unwrap();
    let place = format!("cable:{}", folder.join("san").display());
    let asking = lunar(&format!("fipvlan {place}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut request = [0; 100];
    let len = forwarder.recv(&mut request).unwrap();
    // All-FCF-MACs, FIP, operation 4/1.
    assert_eq!((len, &request[..6]), (60, &[1, 0x10, 0x18, 1, 0, 2][..]));
    assert_eq!(request[12..20], [0x89, 0x14, 0x10, 0, 0, 4, 0, 1]);
    let mut answer = request[6..12].to_vec();
    answer.extend([0x00, 0x0d, 0xec, 0x6d, 0x8f, 0x00, 0x89, 0x14]);
    answer.extend(ANSWER);
    forwarder.send_to(&answer, folder.join("san")).unwrap();
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success());
    let row = |vid: u16| format!("{place:<16.16}| {vid:<5}| 00:0d:ec:6d:8f:00\n");
    let head = "Fibre Channel Forwarders Discovered\ninterface       | VLAN | FCF MAC\n";
    let expected = format!("{head}{}\n{}{}\n", "-".repeat(42), row(152), row(200));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn where_nothing_answers_it_says_so_and_fails() {
    let folder = folder("fipvlan-silent");
    let place = format!("cable:{}", folder.join("san").display());
    lunar(&format!("fipvlan -l 0 {place}")).refused_with(1, "No Fibre Channel Forwarders or VN2VN");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// Two interfaces, of which the first one is down.
const PAIR: &str = "ip link add va mtu 2500 type veth peer name vb mtu 2500 && ip link set vb up";

/// Fails unless the first interface is down.
const IS_DOWN: &str = "ip -o link show va | grep -q 'state DOWN' && \
                       ! ip -o link show va | grep -q '[<,]UP[,>]'";

#[test]
fn an_interface_is_down_again_after_a_failure() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    namespace
        .lunar("fipvlan -l 0 va no-such-iface")
        .refused_with(1, "ip link");
    namespace.sh(IS_DOWN);
    namespace
        .lunar("fipvlan -l 0 va")
        .refused_with(1, "No Fibre Channel Forwarders");
    namespace.sh(IS_DOWN);
}

#[test]
fn an_interface_is_down_again_after_an_interruption() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    let mut asking = namespace.command(LUNAR);
    let mut asking = asking.args(["fipvlan", "va"]).spawn().unwrap();
    namespace.sh("until ip -o link show va | grep -q '[<,]UP[,>]'; do sleep 0.05; done");
    signal("INT", asking.id());
    assert_eq!(asking.wait().unwrap().code(), Some(130));
    namespace.sh(IS_DOWN);
}

/// `-s` follows from `-c`, of which it was told that it has failed.
#[test]
fn what_cannot_be_made_is_not_asked_for_again() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    namespace.sh("ip link set va up");
    let _switch = namespace.start("switch va --open --vlan 152");
    let ran = namespace
        .lunar("fipvlan -l 5 -c -s -f -much-too-long vb")
        .ran();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("is too long"), "{}", ran.err);
    assert!(!ran.err.contains("give -c"), "{}", ran.err);
}

#[test]
fn each_wrong_line_says_what_would_be_right() {
    for (line, way_out) in [
        ("", "IFACE"),
        ("-a eth0", "cannot be used with"),
        ("-c cable:/tmp/x", "omit -c and -s"),
        ("-m vn eth0", "choose from fabric, vn2vn"),
        ("-l x eth0", "give a number from 0 to 3600"),
    ] {
        lunar(&format!("fipvlan {line}")).refused_with(2, way_out);
    }
    lunar("fipvlan no-such-iface").refused_with(1, "ip link");
    // As it is called by boot scripts: the suffix begins with a dash.
    lunar("fipvlan -c -s -f -fcoe no-such-iface").refused_with(1, "ip link");
}
