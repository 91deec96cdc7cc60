//! What rtnetlink tells of interfaces, as Linux 6.1 told it, and questions that threads ask it.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use super::super::link::{IFLA_STATS64, Interface, LinkChange, LinkCounters, change, parse};
use super::super::link_query::LinkQuery;
use super::{LONG, SHORT};

/// An answer with this IFLA_LINKINFO and nothing else.
fn told(link_info: &str) -> Interface {
    let head = "00000000100000000000000098000000\
                00000100030000004310010000000000";
    let bytes: Vec<u8> = (head.to_owned() + link_info)
        .as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    parse(&bytes).unwrap().unwrap()
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

/// Its counters are 100, 101 and so on.
#[test]
fn counters_are_found_by_their_numbers() {
    let mut answer = vec![0; 32];
    answer.extend((4 + 8 * 24_u16).to_ne_bytes());
    answer.extend(IFLA_STATS64.to_ne_bytes());
    answer.extend((100..124_u64).flat_map(u64::to_ne_bytes));
    let expected = LinkCounters {
        received: 106,
        transmitted: 107,
        missed: 114 + 115,
        fcs: 112,
        framing: 113,
    };
    assert_eq!(parse(&answer).unwrap().unwrap().counters, expected);
}

/// A notification of the kind, about the interface `index` of this name and MTU.
fn notice(kind: u16, family: i32, index: i32, name: &str, mtu: u32) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[16] = family as u8;
    bytes[18..20].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
    bytes[20..24].copy_from_slice(&index.to_ne_bytes());
    for (kind, value) in [
        (libc::IFLA_IFNAME, [name.as_bytes(), &[0]].concat()),
        (libc::IFLA_MTU, mtu.to_ne_bytes().to_vec()),
    ] {
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

#[test]
fn what_is_told_of_other_interfaces_changes_nothing() {
    let (new, gone) = (libc::RTM_NEWLINK, libc::RTM_DELLINK);
    let told = |kind, index, name| change(&notice(kind, 0, index, name, 2500), "eth0", 7);
    let is =
        |told| matches!(told, Some(LinkChange::Is(Interface { link, .. })) if link.mtu == 2500);
    assert!(is(told(new, 7, "eth0")));
    assert_eq!(told(new, 8, "eth1"), None);
    assert_eq!(told(gone, 8, "eth1"), None);
    assert_eq!(told(gone, 7, "eth0"), Some(LinkChange::Gone));
    assert!(is(told(new, 9, "eth0")), "it was made anew");
    let renamed = told(new, 7, "eth5");
    assert_eq!(renamed, Some(LinkChange::Gone));
    let of_a_bridge = notice(gone, libc::AF_BRIDGE, 7, "eth0", 2500);
    assert_eq!(change(&of_a_bridge, "eth0", 7), None);
    let without_state = notice(new, 0, 7, "eth0", 0);
    assert_eq!(change(&without_state, "eth0", 7), None);
    let whole = notice(new, 0, 7, "eth0", 2500);
    for len in 0..whole.len() {
        let _ = change(&whole[..len], "eth0", 7);
    }
}

/// Held while the kernel does not answer.
static RTNL: Mutex<()> = Mutex::new(());

static ASKED: AtomicU32 = AtomicU32::new(0);

/// An interface whose number is how many were asked for.
fn look(_: &str) -> io::Result<Interface> {
    let index = ASKED.fetch_add(1, Relaxed) as i32 + 1;
    drop(RTNL.lock());
    Ok(Interface {
        index,
        ..Interface::default()
    })
}

#[test]
fn threads_do_not_gather_while_the_kernel_is_silent() {
    let mut asked = LinkQuery::by("va", look);
    let rtnl = RTNL.lock();
    for _ in 0..100 {
        asked.forget();
        asked.ask().unwrap();
    }
    assert!(asked.is_open() && asked.answer().is_none());
    drop(rtnl);
    let deadline = Instant::now() + LONG;
    let told = loop {
        if let Some(told) = asked.answer() {
            break told.unwrap();
        }
        assert!(Instant::now() < deadline, "no answer");
        std::thread::sleep(SHORT);
    };
    // The first one may tell what was before the last question.
    assert_eq!((told.index, ASKED.load(Relaxed)), (2, 2));
    assert!(!asked.is_open());
}
