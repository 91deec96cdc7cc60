//! Lines as a switch writes them.

use super::{logins, same_ids};

const LOG: &str = "\
22:00:00 INFO eth1: 20:01:02:00:00:00:00:01 (02:00:00:00:00:01) has logged in as 0x010100
22:00:01 INFO eth1: 20:00:02:00:00:00:00:02 (02:00:00:00:00:02) has logged in as 0x010101
22:00:02 INFO eth1: 20:01:02:00:00:00:00:01 is logged out: the switch ends
22:00:03 INFO eth2: 20:01:02:00:00:00:00:01 (02:00:00:00:00:01) has logged in as 0x010100
";

#[test]
fn logins_are_told_by_wwpn_and_n_port_id() {
    let first = ("20:01:02:00:00:00:00:01", "0x010100");
    let second = ("20:00:02:00:00:00:00:02", "0x010101");
    let told: Vec<_> = logins(LOG).collect();
    assert_eq!(told, [first, second, first]);
    same_ids(LOG, 2).unwrap();
}

#[test]
fn another_n_port_id_is_found_and_so_is_a_missing_port() {
    let other = LOG.replacen("0x010100", "0x010102", 1);
    let told = same_ids(&other, 2).unwrap_err().to_string();
    assert!(told.contains("have changed"), "{told}");
    assert!(same_ids(LOG, 3).is_err());
}
