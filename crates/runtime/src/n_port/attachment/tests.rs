//! Which interface a port of a VLAN is at.

use std::fs;

use super::*;

#[test]
fn the_interface_of_a_vlan_takes_the_place_of_the_one_below() {
    let dir = tempfile::tempdir().unwrap();
    let vlans = dir.path().join("config");
    let list = "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n\
                fcoe0          | 152  | eth0\n";
    fs::write(&vlans, list).unwrap();
    let tag = |vid| VlanTag {
        priority: 3,
        dei: false,
        vid,
    };
    let place = |name: &str| Place::Interface(name.to_owned());
    let cable = Place::Cable("/run/x.sock".into());
    for (asked, vid, expected) in [
        (place("eth0"), Some(152), (place("fcoe0"), None)),
        (place("eth0"), Some(153), (place("eth0"), Some(tag(153)))),
        (place("eth1"), Some(152), (place("eth1"), Some(tag(152)))),
        (place("eth0"), None, (place("eth0"), None)),
        (cable.clone(), Some(152), (cable.clone(), Some(tag(152)))),
    ] {
        assert_eq!(of_vlan(&vlans, &asked, vid.map(tag)), expected);
    }
}
