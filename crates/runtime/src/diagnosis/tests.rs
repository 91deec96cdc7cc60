//! Each rule on made-up readings, the interfaces that frames pass, and what is read from files.

mod mtu;
mod peers;
mod probe;
mod queues;
mod survey;
mod way;

use io::ether::survey::{LinkReading, QdiscReading};

use super::readings::{Hop, HopPlace, KernelSettings, Readings};
use super::{Finding, judge};

/// An interface of this name and MTU, and nothing wrong with it.
fn hop(name: &str, mtu: u32, place: HopPlace) -> Hop {
    Hop {
        link: LinkReading {
            name: name.to_owned(),
            is_ethernet: true,
            is_up: true,
            mtu,
            queue_len: 1000,
            ..LinkReading::default()
        },
        place,
        qdiscs: vec![qdisc("pfifo_fast", None)],
        ..Hop::default()
    }
}

fn qdisc(kind: &str, limit: Option<u32>) -> QdiscReading {
    QdiscReading {
        kind: kind.to_owned(),
        parent: QdiscReading::ROOT,
        limit,
        ..QdiscReading::default()
    }
}

/// An interface where nothing is wrong, nor behind it.
fn sound() -> Readings {
    Readings {
        interface: "eth0".to_owned(),
        hops: vec![hop("eth0", 2500, HopPlace::Own)],
        kernel: KernelSettings {
            budget: Some(300),
            max_backlog: Some(1000),
        },
        ..Readings::default()
    }
}

/// What is found, a line each: rule, place and command, with where to run it.
fn told(readings: &Readings) -> Vec<String> {
    let line = |one: Finding| {
        let (command, elsewhere) = one.remedy.map_or_else(Default::default, |remedy| {
            (remedy.command, remedy.elsewhere.unwrap_or_default())
        });
        let there = if elsewhere.is_empty() {
            elsewhere
        } else {
            format!(" @ {elsewhere}")
        };
        format!("{} {}: {command}{there}", one.rule, one.place)
    };
    judge(readings).into_iter().map(line).collect()
}

#[track_caller]
fn only(readings: &Readings) -> String {
    let mut told = told(readings);
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

#[track_caller]
fn nothing(readings: &Readings) {
    assert_eq!(told(readings), [""; 0]);
}

#[test]
fn nothing_is_said_of_a_sound_path() {
    nothing(&sound());
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let names = super::rules::RULES.map(|rule| rule.name);
    let all: std::collections::BTreeSet<_> = names.into_iter().collect();
    assert_eq!(all.len(), names.len());
}

#[test]
fn a_finding_is_told_in_two_lines() {
    let mut readings = sound();
    readings.hops[0].link.is_up = false;
    let found = judge(&readings).remove(0).to_string();
    let what = "eth0: the link is down, so no frame passes; if it stays down, check its cable";
    assert_eq!(found, format!("{what}\n    ip link set eth0 up"));
}

#[test]
fn what_is_below_a_vlan_is_looked_at_too() {
    let mut readings = sound();
    readings.hops.push(hop("eth1", 2500, HopPlace::Below));
    nothing(&readings);
    readings.hops[1].link.is_up = false;
    assert_eq!(only(&readings), "link eth1: ip link set eth1 up");
}

/// The others of a bond take over from a port that is down.
#[test]
fn a_port_of_a_bond_is_down_with_all_of_them() {
    let mut readings = sound();
    let port = |name, is_up| {
        let mut port = hop(name, 2500, HopPlace::Bonded);
        port.link.is_up = is_up;
        port
    };
    readings.hops.extend([port("p0", false), port("p1", true)]);
    nothing(&readings);
    readings.hops[2].link.is_up = false;
    readings.hops[0].link.is_up = false;
    assert_eq!(
        told(&readings),
        ["eth0", "p0", "p1"].map(|name| format!("link {name}: ip link set {name} up"))
    );
}

#[test]
fn frames_of_a_vlan_carry_the_priority_of_fcoe() {
    let mut readings = sound();
    readings.hops[0].link.tag_priority = Some(3);
    nothing(&readings);
    readings.hops[0].link.tag_priority = Some(0);
    assert_eq!(
        only(&readings),
        "vlan-priority eth0: ip link set eth0 type vlan egress-qos-map 3:3"
    );
}
