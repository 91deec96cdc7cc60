//! Changes in a large fabric: no call does more than a bounded amount, and all are told in the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rig::{ELS, Rig, id, login, wwpn};
use crate::fabric::zones::Zones;
use crate::wire::els::{Els, Rscn};
use crate::wire::frame::RCtl;
use crate::wire::names::FcId;

const PORTS: u32 = 4096;

/// Looks of a call, in ports that are told.
const AT_ONCE: usize = 16_384 / PORTS as usize;

/// So many ports, registered by SCR, which have been told of each other.
fn settled(zones: Zones, ports: u32) -> Rig {
    let mut rig = Rig::zoned(zones, 1..=ports);
    for number in 1..=ports {
        rig.sends(
            (id(number), FcId::FABRIC_CONTROLLER),
            ELS,
            &Els::Scr(3).encode(),
            2112,
        );
        rig.sent();
    }
    while rig.servers.next_deadline().is_some() {
        rig.pass(200);
        rscns(&mut rig);
    }
    rig
}

/// Who is told, and of what: ports, or the whole fabric. Each accepts.
fn rscns(rig: &mut Rig) -> Vec<(FcId, Vec<(u8, FcId)>)> {
    let mut told = Vec::new();
    for sent in rig.sent() {
        let header = sent.header;
        let Ok(Els::Rscn(Rscn(pages))) = Els::parse(&sent.payload) else {
            continue;
        };
        told.push((header.d_id, pages));
        let kind = (RCtl::ELS_REPLY, ELS.1);
        let reply = crate::wire::els::Reply::Accept.encode();
        let mut answer = rig.frames((header.d_id, FcId::FABRIC_CONTROLLER), kind, &reply, 2112);
        answer[0].header.ox_id = header.ox_id;
        rig.comes(&answer[0]);
    }
    told
}

/// All steps that are due now, and who is told in the one that has most of them.
fn steps(rig: &mut Rig) -> (BTreeSet<FcId>, usize) {
    let (mut told, mut most) = (BTreeSet::new(), 0);
    while rig.servers.next_deadline().is_some_and(|at| at <= rig.now) {
        rig.servers.expire(rig.now);
        let step = rscns(rig);
        most = most.max(step.len());
        told.extend(step.into_iter().map(|(to, _)| to));
    }
    (told, most)
}

#[test]
fn zones_of_a_large_fabric_are_told_in_steps() {
    let mut rig = settled(Zones::open(), PORTS);
    rig.servers.set_zones(rig.now, Arc::new(Zones::closed()));
    let first = rscns(&mut rig);
    assert_eq!(first.len(), AT_ONCE);
    let (told, most) = steps(&mut rig);
    assert_eq!(told.len() + first.len(), PORTS as usize);
    assert_eq!(most, AT_ONCE);
    assert_eq!(rig.servers.next_deadline(), None);
}

/// A port of the switch has lost its link, with half of all logins. The other half is told of all
/// of them, or that they are many.
#[test]
fn many_logouts_at_once_are_told_in_steps() {
    let mut rig = settled(Zones::open(), 1024);
    for number in 1..=512 {
        rig.servers.logged_out(rig.now, id(number));
    }
    rscns(&mut rig);
    let left = rig.servers.next_deadline();
    assert_eq!(left, Some(rig.now), "there is more");
    let mut asks_for_all = BTreeSet::new();
    for _ in 0..10 {
        rig.pass(100);
        for (to, pages) in rscns(&mut rig) {
            if pages.iter().any(|(format, _)| *format == 3) {
                asks_for_all.insert(to);
            }
        }
    }
    assert_eq!(asks_for_all.len(), 512);
    assert_eq!(rig.servers.next_deadline(), None);
}

/// Ports 1 and 2 share a zone, 600 and 601 another one, and all between them a third.
fn three_zones(names: [&str; 3]) -> Zones {
    let members = |numbers: std::ops::Range<u32>| {
        let names = numbers.map(|number| format!(" {}", wwpn(number)));
        names.collect::<String>()
    };
    // Their order in the file gives them their numbers.
    let zones = names.map(|name| match name {
        "first" => format!("zone first ={}\n", members(1..3)),
        "many" => format!("zone many ={}\n", members(3..600)),
        _ => format!("zone last ={}\n", members(600..602)),
    });
    let text = zones.concat() + "zoneset all = first many last\nactive all";
    Zones::parse(&text).unwrap()
}

/// Those that are told all that is due.
fn all_told(rig: &mut Rig) -> BTreeSet<FcId> {
    let told: BTreeSet<_> = rscns(rig).into_iter().map(|(to, _)| to).collect();
    &told | &steps(rig).0
}

/// Ports of these numbers have something new to tell.
fn change(rig: &mut Rig, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        rig.servers.registration_changed(rig.now, id(number));
    }
}

/// More change than are looked at for each port. Those that see none of them are not told.
#[test]
fn changes_of_many_are_told_in_their_zones_only() {
    let mut rig = settled(three_zones(["first", "many", "last"]), 601);
    // Port 600 is seen by 601, and does not see itself change.
    change(&mut rig, 3..601);
    rig.pass(100);
    let expected: BTreeSet<_> = (3..600).chain([601]).map(id).collect();
    assert_eq!(all_told(&mut rig), expected);
}

#[test]
fn changes_of_many_in_the_default_zone() {
    for (default, told) in [("permit", 598), ("deny", 0)] {
        let (one, other) = (wwpn(1), wwpn(2));
        let text = format!("zone a = {one} {other}\nzoneset s = a\nactive s\ndefault {default}");
        let mut rig = settled(Zones::parse(&text).unwrap(), 600);
        change(&mut rig, 3..=600);
        rig.pass(100);
        assert_eq!(all_told(&mut rig).len(), told, "{default}");
    }
}

/// The zones of those that have changed have other numbers when the last ones are told.
#[test]
fn zones_that_change_while_changes_of_many_are_told() {
    let mut rig = settled(three_zones(["first", "many", "last"]), 601);
    change(&mut rig, 3..600);
    rig.now += std::time::Duration::from_millis(100);
    rig.servers.expire(rig.now);
    let first = rscns(&mut rig).len();
    assert!((1..100).contains(&first), "{first}");
    let zones = three_zones(["many", "first", "last"]);
    rig.servers.set_zones(rig.now, Arc::new(zones));
    assert_eq!(first + all_told(&mut rig).len(), 597);
}

/// Ports 1 and 2 have registered for what ports tell themselves (FC-LS-2, SCR): not for changes of
/// many, nor for zones, nor for zones that are others before all are told.
#[test]
fn what_the_fabric_has_seen_is_told_to_those_that_want_it() {
    let mut rig = settled(Zones::open(), 600);
    for number in 1..=2 {
        let to = (id(number), FcId::FABRIC_CONTROLLER);
        rig.sends(to, ELS, &Els::Scr(2).encode(), 2112);
        rig.sent();
    }
    let expected: BTreeSet<_> = (3..=600).map(id).collect();
    change(&mut rig, 3..=600);
    rig.pass(100);
    assert_eq!(all_told(&mut rig), expected);
    rig.pass(100);
    rig.servers.set_zones(rig.now, Arc::new(Zones::closed()));
    assert_eq!(all_told(&mut rig), expected);
    rig.pass(100);
    rig.servers.set_zones(rig.now, Arc::new(Zones::open()));
    let first = rscns(&mut rig).len();
    rig.servers.set_zones(rig.now, Arc::new(Zones::closed()));
    rig.pass(100);
    let told = all_told(&mut rig);
    assert!(first < 100 && told.is_subset(&expected), "{told:?}");
}

/// One that ends its registration while changes of many are told is not told of them.
#[test]
fn a_port_that_ends_its_registration_meanwhile() {
    let mut rig = settled(Zones::open(), 600);
    change(&mut rig, 1..=600);
    rig.now += std::time::Duration::from_millis(100);
    rig.servers.expire(rig.now);
    rscns(&mut rig);
    let to = (id(600), FcId::FABRIC_CONTROLLER);
    rig.sends(to, ELS, &Els::Scr(255).encode(), 2112);
    let told = all_told(&mut rig);
    assert!(told.contains(&id(599)) && !told.contains(&id(600)));
}

/// It waits to be told of the zones, and the port that it saw is gone before.
#[test]
fn a_port_that_was_seen_before_and_is_gone_is_told() {
    let mut rig = settled(Zones::open(), PORTS);
    rig.servers.set_zones(rig.now, Arc::new(Zones::closed()));
    let (mut told, _): (BTreeSet<_>, Vec<_>) = rscns(&mut rig).into_iter().unzip();
    rig.servers.logged_out(rig.now, id(PORTS));
    told.extend(steps(&mut rig).0);
    assert_eq!(told.len(), PORTS as usize - 1);
    // Those that were told of the zones before are told of the port 100 ms later.
    rig.pass(100);
    assert!(!rscns(&mut rig).is_empty());
    assert_eq!(rig.servers.next_deadline(), None);
}

/// What was not told yet is not what changed: those that wait ask for all.
#[test]
fn zones_that_change_again_meanwhile() {
    let mut rig = settled(Zones::open(), PORTS);
    rig.servers.set_zones(rig.now, Arc::new(Zones::closed()));
    rscns(&mut rig);
    let text = format!("zone a = {} {}\nzoneset s = a\nactive s", wwpn(1), wwpn(2));
    let zones = Zones::parse(&text).unwrap();
    rig.servers.set_zones(rig.now, Arc::new(zones));
    let mut told = BTreeSet::new();
    for _ in 0..3 {
        for (to, pages) in rscns(&mut rig) {
            assert_eq!(pages, [(3, FcId(0))], "{to}");
            told.insert(to);
        }
        rig.pass(100);
    }
    assert_eq!(told.len(), PORTS as usize);
    assert_eq!(rig.servers.next_deadline(), None);
}

/// Ports that come while zones are told are told when they have registered.
#[test]
fn a_port_that_logs_in_meanwhile() {
    let mut rig = settled(Zones::closed(), 2048);
    rig.servers.set_zones(rig.now, Arc::new(Zones::open()));
    rscns(&mut rig);
    rig.servers.logged_in(rig.now, login(PORTS));
    let (told, _) = steps(&mut rig);
    assert!(told.len() > 2000, "{}", told.len());
    rig.pass(2100);
    let told = rscns(&mut rig);
    let all: BTreeSet<_> = told.iter().map(|(to, _)| *to).collect();
    let (rest, _) = steps(&mut rig);
    assert_eq!(all.union(&rest).count(), 2048);
}

/// Each time the others would be told, 4 of them at once. They ask for all in its place.
#[test]
fn a_port_that_comes_and_goes_without_end() {
    let mut rig = settled(Zones::open(), PORTS);
    let before = rig.servers.records();
    // Of each other port there is an RSCN, and when that is sent again.
    let most = 8_192 + 2 * PORTS as usize;
    for _ in 0..16_500 {
        rig.servers.logged_in(rig.now, login(PORTS));
        let kept = rig.servers.records() - before;
        assert!(kept <= most, "{kept}");
    }
    let mut asks_for_all = BTreeSet::new();
    while asks_for_all.len() < PORTS as usize - 1 {
        let told = rscns(&mut rig).into_iter();
        let all = told.filter(|(_, pages)| pages == &[(3, FcId(0))]);
        asks_for_all.extend(all.map(|(to, _)| to));
        rig.pass(100);
    }
}
