use std::fs;

use super::*;

#[test]
fn requests_for_a_vlan_are_answered_at_the_interface_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let vlans = dir.path().join("config");
    fs::write(&vlans, "VLAN Dev name | VLAN ID\nfcoe0 | 152 | eth0\n").unwrap();
    assert_eq!(below(&vlans, "fcoe0"), ("eth0".to_owned(), 152));
    assert_eq!(below(&vlans, "eth0"), ("eth0".to_owned(), 0));
}
