//! Plans for rows of switches, as they are printed.

use fc::fabric::zones::{ZoneMember, Zones};
use fc::wire::names::{FcId, Wwn};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{FabricLoginFact, keeps_all};
use crate::document::parse;
use crate::plan::{Impact, Plan, plan};

const OPEN: &str = "[switch.a]\nplaces = [\"eth1\"]\nopen = true\n";

/// Zones of which the set `all` has these.
fn zoned(zones: &[&str]) -> String {
    let lines = zones
        .iter()
        .zip(0..)
        .map(|(members, n)| format!("zone z{n} = {members}"));
    let names: Vec<_> = (0..zones.len()).map(|n| format!("z{n}")).collect();
    if zones.is_empty() {
        return "[switch.a]\nplaces = [\"eth1\"]\nzones = [\"default deny\"]\n".to_owned();
    }
    let set = [
        format!("zoneset all = {}", names.join(" ")),
        "active all".to_owned(),
    ];
    let lines: Vec<_> = lines.chain(set).collect();
    format!("[switch.a]\nplaces = [\"eth1\"]\nzones = {lines:?}\n")
}

fn between(old: &str, new: &str) -> Plan {
    let tree = |rows: &str| parse(&format!("version = 1\n{rows}")).unwrap();
    let mut plan = plan(&tree(old), &tree(new), &[]);
    let login = |switch: &str, wwpn: &str| FabricLoginFact {
        switch: switch.to_owned(),
        wwpn: wwpn.to_owned(),
    };
    plan.tell_logins(&[
        login("a", ONE),
        login("a", TWO),
        login("b", "20:00:00:00:00:00:00:03"),
    ]);
    plan
}

const ONE: &str = "20:00:00:00:00:00:00:01";
const TWO: &str = "20:00:00:00:00:00:00:02";

fn told(old: &str, new: &str) -> Vec<String> {
    let plan = between(old, new);
    plan.differences.iter().map(ToString::to_string).collect()
}

#[test]
fn a_switch_comes_unnoticed_and_takes_its_logins_along() {
    assert_eq!(
        told("", OPEN),
        ["+ switch a  open = true, places = [\"eth1\"]"]
    );
    assert_eq!(
        told(OPEN, ""),
        [format!(
            "- switch a  cuts: {ONE}, {TWO}: logins to its fabric end"
        )]
    );
    assert_eq!(between(OPEN, OPEN).stays, 1);
}

#[test]
fn other_options_start_it_again_and_name_who_is_logged_in() {
    let vlan = format!("{OPEN}vlan = 152\n");
    assert_eq!(
        told(OPEN, &vlan),
        [format!(
            "~ switch a  + vlan = 152  cuts: {ONE}, {TWO}: it starts again: logins to its fabric \
             end and come back"
        )]
    );
    let plan = between(OPEN, &vlan);
    assert_eq!(
        (plan.worst(), &*plan.way_out()),
        (Impact::Cuts, "--allow cuts")
    );
}

#[test]
fn zones_that_only_put_ports_together_are_told() {
    let pair = format!("{ONE} {TWO}");
    for (old, new) in [
        (zoned(&[]), zoned(&[&pair])),
        (zoned(&[&pair]), zoned(&[&format!("{pair} port:eth1")])),
        (
            zoned(&[&pair]),
            zoned(&[&format!("{TWO} port:eth1"), &pair]),
        ),
        (zoned(&[&pair]), OPEN.to_owned()),
        (zoned(&[ONE]), zoned(&[TWO])),
    ] {
        let plan = between(&old, &new);
        assert_eq!(plan.worst(), Impact::Told, "{old}\n{new}\n{plan}");
        assert_eq!(plan.differences[0].hosts, [""; 0]);
    }
}

#[test]
fn zones_that_part_ports_cut() {
    let pair = format!("{ONE} {TWO}");
    for (old, new) in [
        (zoned(&[&pair]), zoned(&[])),
        (zoned(&[&pair]), zoned(&[ONE, TWO])),
        (zoned(&["port:eth1"]), zoned(&[])),
        (OPEN.to_owned(), zoned(&[&pair])),
    ] {
        let plan = between(&old, &new);
        assert_eq!(plan.worst(), Impact::Cuts, "{old}\n{new}\n{plan}");
    }
    let told = told(&zoned(&[&pair]), &zoned(&[ONE]));
    assert_eq!(
        told,
        [format!(
            "~ switch a  zones: - \"zone z0 = {pair}\" + \"zone z0 = {ONE}\"  cuts: pairs of ports \
             in no common zone any more lose each other"
        )]
    );
}

/// What is in a file shows when it is read.
#[test]
fn zones_of_a_file_may_part_ports() {
    let file = "[switch.a]\nplaces = [\"eth1\"]\nzone-file = \"/etc/lunar/zones\"\n";
    for (old, new) in [(OPEN, file), (file, OPEN)] {
        assert_eq!(between(old, new).worst(), Impact::Cuts);
    }
}

/// Zones of four ports, two of which are of one node, and two at each port of the switch.
fn zones() -> impl Strategy<Value = Zones> {
    let members = [
        "20:00:00:00:00:00:00:00",
        "20:00:00:00:00:00:00:01",
        "20:00:00:00:00:00:00:02",
        "20:00:00:00:00:00:00:03",
        "node:10:00:00:00:00:00:00:00",
        "node:10:00:00:00:00:00:00:01",
        "port:eth0",
        "port:eth1",
    ];
    let zone = prop::sample::subsequence(members.to_vec(), 1..4);
    (vec(zone, 0..4), any::<bool>()).prop_map(|(zones, permits)| {
        let default = if permits { "permit" } else { "deny" };
        let mut text = format!("default {default}\n");
        for (number, zone) in zones.iter().enumerate() {
            text += &format!("zone z{number} = {}\n", zone.join(" "));
        }
        if !zones.is_empty() {
            let names: Vec<_> = (0..zones.len())
                .map(|number| format!("z{number}"))
                .collect();
            text += &format!("zoneset s = {}\nactive s\n", names.join(" "));
        }
        Zones::parse(&text).unwrap()
    })
}

fn port(number: u64) -> ZoneMember<'static> {
    ZoneMember {
        wwpn: Wwn(0x2000 << 48 | number),
        wwnn: Wwn((0x1000 << 48) | (number / 2)),
        fc_id: FcId(0x01_0100 + number as u32),
        place: ["eth0", "eth1"][number as usize % 2],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// A plan that says so needs no permission.
    #[test]
    fn no_pair_is_parted_where_all_are_said_to_stay(old in zones(), new in zones()) {
        let shares = |zones: &Zones, a, b| zones.share(&port(a), &port(b));
        let pairs = (0..4).flat_map(|a| (0..a).map(move |b| (a, b)));
        let is_parted = |(a, b): &(_, _)| shares(&old, *a, *b) && !shares(&new, *a, *b);
        let parted: Vec<_> = pairs.filter(is_parted).collect();
        prop_assert!(!keeps_all(&old, &new) || parted.is_empty(), "{parted:?}");
        prop_assert!(keeps_all(&old, &old));
    }
}

#[test]
fn a_plan_says_what_it_does_not_know_of_a_switch_that_is_silent() {
    let silent = ["a".to_owned(), "b".to_owned()];
    let untold = |new: &str| between(OPEN, new).untold_logins(&silent);
    let [line] = &untold("")[..] else {
        panic!("one line");
    };
    assert!(line.starts_with("switch.a: it does not answer"), "{line}");
    assert_eq!(untold(OPEN), [""; 0], "nothing ends");
}
