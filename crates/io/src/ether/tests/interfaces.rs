//! The interfaces of a machine: listed, set up and down, and one made for a VLAN.

use std::process::Command;

use super::super::interfaces::{EtherInterface, add_vlan, interface, interfaces, set_up};
use super::super::netlink::attribute;
use super::ip;

mod mtu_2500 {
    super::super::on_veth! { 2500:
        ethernet_is_listed_and_nothing_else
        many_interfaces_are_listed_whole
        an_interface_is_set_up_and_down
        a_vlan_has_an_interface_that_keeps_the_priority
        what_the_kernel_refuses_is_told
    }
}

fn named(name: &str) -> EtherInterface {
    let mut all = interfaces().unwrap().into_iter();
    all.find(|one| one.name == name).unwrap()
}

/// Whether a VLAN was made. A kernel may be built without them.
#[track_caller]
fn has_vlans(made: std::io::Result<()>) -> bool {
    match made.map_err(|cause| cause.raw_os_error()) {
        Err(Some(libc::EOPNOTSUPP)) => {
            eprintln!("left out: the kernel has no VLANs");
            false
        }
        made => {
            made.unwrap();
            true
        }
    }
}

/// What ip tells of an interface.
fn told(name: &str) -> String {
    let shown = Command::new("ip")
        .args(["-d", "link", "show", name])
        .output();
    String::from_utf8(shown.unwrap().stdout).unwrap()
}

fn ethernet_is_listed_and_nothing_else() {
    ip("link set va address 02:00:00:00:00:0a");
    let mut names: Vec<_> = interfaces()
        .unwrap()
        .into_iter()
        .map(|one| one.name)
        .collect();
    names.sort();
    assert_eq!(names, ["va", "vb"]);
    let va = named("va");
    assert_eq!(va.mac, [2, 0, 0, 0, 0, 0x0a]);
    assert!(
        va.is_up && !va.is_bond && va.vlan.is_none() && va.index > 0,
        "{va:?}"
    );
}

/// More than one datagram has room for.
fn many_interfaces_are_listed_whole() {
    for number in 0..100 {
        ip(&format!(
            "link add many{number} type veth peer name peer{number}"
        ));
    }
    assert_eq!(interfaces().unwrap().len(), 202);
}

fn an_interface_is_set_up_and_down() {
    let index = named("va").index;
    for up in [false, true] {
        set_up(index, up).unwrap();
        assert_eq!(named("va").is_up, up);
    }
}

fn a_vlan_has_an_interface_that_keeps_the_priority() {
    let below = named("va").index;
    if !has_vlans(add_vlan(below, 152, "va.152-fcoe")) {
        return;
    }
    let made = named("va.152-fcoe");
    assert_eq!((made.vlan, made.is_up), (Some((below, 152)), false));
    let told = told("va.152-fcoe");
    assert!(told.contains("vlan protocol 802.1Q id 152"), "{told}");
    assert!(told.contains("egress-qos-map { 3:3 }"), "{told}");
}

fn what_the_kernel_refuses_is_told() {
    let below = named("va").index;
    let code = |done: std::io::Result<()>| done.unwrap_err().raw_os_error();
    let long = "va.4094-fcoe-but-long";
    assert_eq!(code(add_vlan(below, 8, long)), Some(libc::ENAMETOOLONG));
    assert_eq!(code(set_up(0x7fff_ffff, true)), Some(libc::ENODEV));
    if !has_vlans(add_vlan(below, 7, "v7")) {
        return;
    }
    assert_eq!(code(add_vlan(below, 7, "other")), Some(libc::EEXIST));
    assert_eq!(code(add_vlan(below, 8, "vb")), Some(libc::EEXIST));
    assert_eq!(code(add_vlan(0x7fff_ffff, 8, "v8")), Some(libc::ENODEV));
}

/// `ifinfomsg` of an Ethernet interface.
fn ethernet() -> Vec<u8> {
    let mut info = vec![0; 16];
    info[2..4].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
    info
}

#[test]
fn a_message_that_is_cut_off_tells_nothing() {
    let whole = ethernet();
    assert!(interface(&whole).is_some());
    for len in 0..whole.len() {
        assert_eq!(interface(&whole[..len]), None, "{len}");
    }
}

/// The number of an interface in another network namespace may be that of another one here.
#[test]
fn the_interface_below_a_vlan_is_one_of_this_namespace() {
    let vlan = [
        attribute(1, b"vlan\0"),
        attribute(2, &attribute(1, &[152, 0])),
    ]
    .concat();
    let below = attribute(libc::IFLA_LINK, &7_u32.to_ne_bytes());
    let here = [ethernet(), below, attribute(18, &vlan)].concat();
    assert_eq!(
        interface(&here).unwrap().vlan,
        Some((7, u16::from_ne_bytes([152, 0])))
    );
    let elsewhere = [here, attribute(37, &0_u32.to_ne_bytes())].concat();
    assert_eq!(interface(&elsewhere).unwrap().vlan, None);
}
