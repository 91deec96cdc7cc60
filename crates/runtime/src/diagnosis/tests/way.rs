//! Which interfaces frames pass.

use io::ether::survey::LinkReading;

use crate::diagnosis::readings::HopPlace::{self, Below, Bonded, Bridged, Own};
use crate::diagnosis::way::hops;

/// Interfaces by name, kind, what is below, and what they are a port of; their number is their
/// place in the list, from 1 on.
fn links(rows: &[(&str, &str, Option<i32>, Option<i32>)]) -> Vec<LinkReading> {
    let link = |(at, (name, kind, lower, master)): (usize, &(&str, &str, _, _))| LinkReading {
        index: at as i32 + 1,
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        lower: *lower,
        master: *master,
        ..LinkReading::default()
    };
    rows.iter().enumerate().map(link).collect()
}

fn told(name: &str, links: &[LinkReading]) -> Vec<(String, HopPlace)> {
    let hops = hops(name, links).into_iter();
    hops.map(|(link, place)| (link.name.clone(), place))
        .collect()
}

fn row(name: &str, place: HopPlace) -> (String, HopPlace) {
    (name.to_owned(), place)
}

#[test]
fn a_vlan_is_carried_by_what_is_below_it() {
    let links = links(&[
        ("eth0", "", None, None),
        ("eth1", "", None, None),
        ("eth0.5", "vlan", Some(1), None),
    ]);
    assert_eq!(
        told("eth0.5", &links),
        [row("eth0.5", Own), row("eth0", Below)]
    );
    assert_eq!(told("eth0", &links), [row("eth0", Own)]);
    assert_eq!(told("none", &links), []);
}

#[test]
fn all_ports_of_a_bond_carry_it() {
    let links = links(&[
        ("bond0", "bond", None, None),
        ("eth0", "", None, Some(1)),
        ("eth1", "", None, Some(1)),
    ]);
    let ports = [row("eth0", Bonded), row("eth1", Bonded)];
    assert_eq!(
        told("bond0", &links),
        [&[row("bond0", Own)], &ports[..]].concat()
    );
}

#[test]
fn from_a_pair_frames_pass_the_bridge_at_its_other_end() {
    let links = links(&[
        ("va", "veth", Some(2), None),
        ("pa", "veth", Some(1), Some(5)),
        ("vb", "veth", Some(4), None),
        ("pb", "veth", Some(3), Some(5)),
        ("br0", "bridge", None, None),
        ("eth0", "", None, None),
    ]);
    let all = [
        row("va", Own),
        row("pa", Below),
        row("pb", Bridged),
        row("vb", Bridged),
    ];
    assert_eq!(told("va", &links), all);
    // The bridge itself, as an interface of this machine.
    let from_bridge = ["br0", "pa", "pb", "va", "vb"];
    let names: Vec<_> = told("br0", &links)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, from_bridge);
}

/// What is sent by a port of a bridge leaves at once.
#[test]
fn a_port_of_a_bridge_does_not_pass_it() {
    let links = links(&[
        ("eth0", "", None, Some(2)),
        ("br0", "bridge", None, None),
        ("tap0", "tun", None, Some(2)),
    ]);
    assert_eq!(told("eth0", &links), [row("eth0", Own)]);
}

#[test]
fn interfaces_without_end_and_in_circles_are_answered_soon() {
    let many: Vec<_> = (0..1000).map(|_| ("tap", "tun", None, Some(1))).collect();
    let rows = [&[("br0", "bridge", Some(2), None)], &many[..]].concat();
    assert_eq!(hops("br0", &links(&rows)).len(), 64);
    let circle = links(&[
        ("a", "macvlan", Some(2), None),
        ("b", "macvlan", Some(1), None),
    ]);
    assert_eq!(told("a", &circle), [row("a", Own), row("b", Below)]);
}
