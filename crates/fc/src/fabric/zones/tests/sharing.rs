use proptest::collection::vec;
use proptest::prelude::*;

use crate::fabric::zones::{MemberIdentifier, ZoneMember, Zones};
use crate::wire::names::{FcId, Wwn};

/// Port `number` of node `number / 10`.
fn port(number: u8, place: &str) -> ZoneMember<'_> {
    ZoneMember {
        wwpn: Wwn(0x2000 << 48 | u64::from(number)),
        wwnn: Wwn(0x1000 << 48 | u64::from(number / 10)),
        fc_id: FcId(0x01_0100 + u32::from(number)),
        place,
    }
}

/// Whether two ports see each other, asked both ways.
#[track_caller]
fn share(zones: &Zones, a: ZoneMember<'_>, b: ZoneMember<'_>) -> bool {
    let shared = zones.share(&a, &b);
    assert_eq!(zones.share(&b, &a), shared);
    shared
}

#[test]
fn members_of_one_active_zone_see_each_other() {
    let zones = Zones::parse(
        "# Two hosts, each with the array.
         alias array = 20:00:00:00:00:00:00:01 20:00:00:00:00:00:00:02
         zone left  = array 20:00:00:00:00:00:00:0a
         zone right = array 200000000000000b      # without colons
         zone spare = 20:00:00:00:00:00:00:0a 20:00:00:00:00:00:00:0c
         zoneset day = left right
         zoneset night = spare
         active day",
    )
    .unwrap();
    let see = |a, b| share(&zones, port(a, "eth0"), port(b, "eth0"));
    assert!(see(1, 10) && see(2, 10) && see(1, 11) && see(2, 11) && see(1, 2));
    assert!(!see(10, 11), "two hosts");
    assert!(!see(10, 12), "a zone that is not active");
    assert!(!see(12, 13), "the default zone denies");
    let names: Vec<_> = zones.names_of(&zones.membership(&port(1, ""))).collect();
    assert_eq!(
        (names, zones.active()),
        (vec!["left", "right"], Some("day"))
    );
    assert_eq!(zones.members().count(), 4);
}

#[test]
fn a_port_is_known_by_either_name_by_its_address_and_by_its_place() {
    let zones = Zones::parse(
        "zone a = 20:00:00:00:00:00:00:63 node:10:00:00:00:00:00:00:01
         zone b = 20:00:00:00:00:00:00:63 id:010118
         zone c = 20:00:00:00:00:00:00:63 port:cable:a=b
         zoneset all = a b c
         active all",
    )
    .unwrap();
    let target = port(99, "eth1");
    assert!(share(&zones, target, port(10, "eth0")), "by node");
    assert!(share(&zones, target, port(24, "eth0")), "by address");
    assert!(share(&zones, target, port(30, "cable:a=b")), "by place");
    assert!(!share(&zones, target, port(30, "cable:b")));
    let written: Vec<_> = zones.members().map(MemberIdentifier::to_string).collect();
    let expected = [
        "20:00:00:00:00:00:00:63",
        "node:10:00:00:00:00:00:00:01",
        "id:010118",
        "port:cable:a=b",
    ];
    assert_eq!(written, expected);
}

/// A port in a zone sees nobody outside of its zones, though the default zone permits.
#[test]
fn the_default_zone_has_those_that_no_zone_has() {
    let text = "zone a = 20:00:00:00:00:00:00:01 20:00:00:00:00:00:00:02
                zoneset all = a\nactive all\ndefault permit";
    let zones = Zones::parse(text).unwrap();
    let see = |a, b| share(&zones, port(a, ""), port(b, ""));
    assert!(see(1, 2) && see(3, 4) && !see(1, 3));
    let inactive = Zones::parse(&text.replace("active all", "")).unwrap();
    assert!(share(&inactive, port(1, ""), port(3, "")));
    assert!(share(&Zones::open(), port(1, ""), port(2, "")));
    assert!(!share(&Zones::closed(), port(1, ""), port(2, "")));
    assert_eq!(Zones::parse("").unwrap(), Zones::closed());
    assert_eq!(Zones::parse("default permit").unwrap(), Zones::open());
}

#[test]
fn a_statement_may_go_on_in_the_next_line() {
    let text = "zone a = 20:00:00:00:00:00:00:01 \\\n  20:00:00:00:00:00:00:02\\\n
                zoneset all=a \nactive all";
    // A backslash that no blank precedes belongs to its word.
    assert!(Zones::parse(text).is_err());
    let zones = Zones::parse(&text.replace("02\\", "02 \\")).unwrap();
    assert!(share(&zones, port(1, ""), port(2, "")));
}

proptest! {
    /// However zones are put together, two ports share what both are members of.
    #[test]
    fn the_index_agrees_with_a_search(
        lists in vec(vec(0..12u8, 1..5), 1..6), active in vec(any::<bool>(), 6),
        permits: bool, a in 0..12u8, b in 0..12u8,
    ) {
        let mut text = format!("default {}\n", if permits { "permit" } else { "deny" });
        let mut set = String::new();
        for (at, list) in lists.iter().enumerate() {
            let mut list = list.clone();
            list.sort_unstable();
            list.dedup();
            let members = list.iter().map(|number| format!(" {}", port(*number, "").wwpn));
            text += &format!("zone z{at} ={}\n", members.collect::<String>());
            if active[at] {
                set += &format!(" z{at}");
            }
        }
        if !set.is_empty() {
            text += &format!("zoneset all ={set}\nactive all\n");
        }
        let zones = Zones::parse(&text).unwrap();
        let in_use = || lists.iter().zip(&active).filter(|(_, active)| **active);
        let of = |port: u8| in_use().filter(move |(list, _)| list.contains(&port));
        let both = of(a).any(|(list, _)| list.contains(&b));
        let neither = of(a).chain(of(b)).next().is_none();
        let expected = both || permits && neither;
        prop_assert_eq!(share(&zones, port(a, ""), port(b, "")), expected);
    }
}
