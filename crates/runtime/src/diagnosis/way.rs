//! Which interfaces of this machine frames pass on their way from one of them.

use std::collections::{BTreeSet, VecDeque};

use io::ether::survey::LinkReading;

use super::readings::HopPlace;

/// The interface of this name, then those that its frames pass, or may pass, in the order of their
/// distance. Empty if there is none of this name.
pub(super) fn hops<'a>(name: &str, links: &'a [LinkReading]) -> Vec<(&'a LinkReading, HopPlace)> {
    let Some(own) = links.iter().find(|link| link.name == name) else {
        return Vec::new();
    };
    let mut hops = vec![(own, HopPlace::Own)];
    let mut seen = BTreeSet::from([own.index]);
    let mut next = VecDeque::from([(own, HopPlace::Own)]);
    while let Some((link, place)) = next.pop_front() {
        for (beside, place) in beside(link, place, links) {
            if seen.insert(beside.index) && hops.len() < HOPS_MAX {
                next.push_back((beside, place));
                // A bridge that is passed checks no length of its own.
                if beside.kind != BRIDGE {
                    hops.push((beside, place));
                }
            }
        }
    }
    hops
}

/// What is next to an interface that frames pass.
fn beside<'a>(
    link: &LinkReading,
    place: HopPlace,
    links: &'a [LinkReading],
) -> Vec<(&'a LinkReading, HopPlace)> {
    let certain = match place {
        HopPlace::Own | HopPlace::Below => HopPlace::Below,
        HopPlace::Bonded => HopPlace::Bonded,
        HopPlace::Bridged => HopPlace::Bridged,
    };
    let lower = links.iter().filter(|one| link.lower == Some(one.index));
    let ports_place = match link.kind.as_str() {
        BRIDGE => HopPlace::Bridged,
        BOND | TEAM if certain == HopPlace::Below => HopPlace::Bonded,
        _ => certain,
    };
    let ports = links.iter().filter(|one| one.master == Some(link.index));
    // What is sent by the interface in question itself does not pass a bridge that it is a port of.
    let is_passed_on = place != HopPlace::Own;
    let master = links
        .iter()
        .filter(|one| is_passed_on && link.master == Some(one.index) && one.kind == BRIDGE);
    let lower = lower.map(|one| (one, certain));
    let ports = ports.map(|one| (one, ports_place));
    let master = master.map(|one| (one, HopPlace::Bridged));
    lower.chain(ports).chain(master).collect()
}

const BRIDGE: &str = "bridge";
const BOND: &str = "bond";
const TEAM: &str = "team";

/// Interfaces that are looked at, so that a host with thousands of them answers soon.
const HOPS_MAX: usize = 64;
