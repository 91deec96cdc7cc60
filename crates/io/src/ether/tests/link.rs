//! What rtnetlink tells of interfaces, as Linux 6.1 told it.

use super::super::link::{Interface, parse};

/// An answer with this IFLA_LINKINFO and nothing else.
fn told(link_info: &str) -> Interface {
    let head = "00000000100000000000000098000000\
                00000100030000004310010000000000";
    let octets: Vec<u8> = (head.to_owned() + link_info)
        .as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    parse(&octets).unwrap().unwrap()
}

/// The words are little endian, as those of the machine where they were taken.
#[cfg(target_endian = "little")]
#[test]
fn the_egress_map_of_a_vlan_says_which_priority_our_frames_carry() {
    // ip link add link eth0 name eth0.100 type vlan id 100
    let as_made = "3000120009000100766c616e0000000020000200060005008100000006000100640000000c000200\
                   01000000ffffffff";
    assert_eq!(told(as_made).tag_priority, Some(0));
    // … egress-qos-map 5:6 3:3
    let mapped = "4c00120009000100766c616e000000003c000200060005008100000006000100640000000c000200\
                  01000000ffffffff1c0003000c00010003000000030000000c0001000500000006000000";
    assert_eq!(told(mapped).tag_priority, Some(3));
}

#[test]
fn other_interfaces_give_no_tags() {
    let veth = "10001200090001007665746800000000";
    assert_eq!(told(veth).tag_priority, None);
    assert_eq!(told("").tag_priority, None);
}
