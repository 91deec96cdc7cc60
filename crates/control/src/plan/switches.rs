//! Rows of switches: which change of one ends logins to its fabric, and which only changes who sees
//! whom.

use std::collections::{BTreeSet, HashMap, HashSet};

use fc::fabric::zones::{MemberIdentifier, ZoneEntry, Zones};

use super::rows::{between, change};
use super::{Difference, Impact, Plan};
use crate::tree::{SwitchRow, Tree, pairs};

/// A port that is logged in to the fabric of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricLoginFact {
    /// The switch, as its row is called.
    pub switch: String,
    /// The WWPN.
    pub wwpn: String,
}

/// The ports that are logged in to fabrics, as far as the switches tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricLogins {
    /// Those that are known.
    pub logins: Vec<FabricLoginFact>,
    /// The switches that do not answer, as their rows are called.
    pub silent: Vec<String>,
}

pub(super) fn compare(old: &Tree, new: &Tree, plan: &mut Plan) {
    for (name, before, after) in pairs(&old.switch, &new.switch) {
        if before == after {
            plan.stays += 1;
            continue;
        }
        let (impact, effect) = impact(before, after);
        plan.differences.push(Difference {
            change: change(before, after),
            row: format!("{SECTION}{name}"),
            what: between(before, after),
            impact,
            effect: effect.map(str::to_owned),
            hosts: Vec::new(),
        });
    }
}

/// Names the ports whose logins end.
pub(super) fn tell_logins(plan: &mut Plan, logins: &[FabricLoginFact]) {
    let differences = plan.differences.iter_mut();
    for difference in differences.filter(|one| ends_logins(one)) {
        let name = difference.row.strip_prefix(SECTION);
        let cut = logins.iter().filter(|login| Some(&*login.switch) == name);
        let cut: BTreeSet<_> = cut.map(|login| login.wwpn.clone()).collect();
        difference.hosts = cut.into_iter().collect();
    }
}

/// A line for each switch whose logins end and that does not tell of them.
pub(super) fn untold_logins(plan: &Plan, silent: &[String]) -> Vec<String> {
    let cut = plan.differences.iter().filter(|one| ends_logins(one));
    let cut = cut.filter_map(|one| one.row.strip_prefix(SECTION));
    let untold = cut.filter(|name| silent.iter().any(|one| one == name));
    let line = |name| {
        format!(
            "{SECTION}{name}: it does not answer, so the plan does not name the ports that lose \
             their login: lunar ls switch shows whether it does again"
        )
    };
    untold.map(line).collect()
}

/// What comes before the name of a row.
const SECTION: &str = "switch.";

const GOES: &str = "logins to its fabric end";
const RESTARTS: &str = "it starts again: logins to its fabric end and come back";

fn ends_logins(difference: &Difference) -> bool {
    let effect = difference.effect.as_deref();
    effect.is_some_and(|effect| [GOES, RESTARTS].contains(&effect))
}

fn impact(before: Option<&SwitchRow>, after: Option<&SwitchRow>) -> (Impact, Option<&'static str>) {
    let (Some(before), after) = (before, after) else {
        return (Impact::Quiet, None);
    };
    match after {
        None => (Impact::Cuts, Some(GOES)),
        Some(after) if before.without_zones() != after.without_zones() => {
            (Impact::Cuts, Some(RESTARTS))
        }
        Some(after) => match (zones(before), zones(after)) {
            (Some(before), Some(after)) if keeps_all(&before, &after) => (
                Impact::Told,
                Some("ports are told of those that they see by now"),
            ),
            (Some(_), Some(_)) => (
                Impact::Cuts,
                Some("pairs of ports in no common zone any more lose each other"),
            ),
            _ => (
                Impact::Cuts,
                Some("pairs of ports that the file does not put together lose each other"),
            ),
        },
    }
}

/// The zones of a row; `None` where a file has them, of which a plan knows nothing.
fn zones(row: &SwitchRow) -> Option<Zones> {
    match &row.zone_file {
        Some(_) => None,
        None if row.open => Some(Zones::open()),
        // A row that was checked has none that cannot be read.
        None => Some(Zones::parse(&row.zone_text()).unwrap_or_default()),
    }
}

/// Whether two ports that share a zone still do. A port that is identified otherwise than before
/// counts as another one, so that "no" may be wrong and "yes" is not.
fn keeps_all(old: &Zones, new: &Zones) -> bool {
    let new_zones = active(new);
    let identified: HashSet<_> = new_zones.iter().flatten().collect();
    let are_known = || {
        let old_zones = active(old);
        let known: HashSet<_> = old_zones.into_iter().flatten().collect();
        identified.iter().all(|member| known.contains(**member))
    };
    // Ports of the default zone are those in no zone.
    if old.permits() && !(new.permits() && are_known()) {
        return false;
    }
    // Then all ports are in the default zone.
    if new.permits() && new_zones.is_empty() {
        return true;
    }
    let mut zones_of: HashMap<&MemberIdentifier, Vec<usize>> = HashMap::new();
    for (number, zone) in new_zones.iter().enumerate() {
        for member in zone {
            zones_of.entry(member).or_default().push(number);
        }
    }
    let default = Vec::new();
    active(old).iter().all(|zone| {
        let together = |member| zones_of.get(member).unwrap_or(&default);
        let mut members = zone.iter();
        let Some(first) = members.next() else {
            return true;
        };
        let has_all = |number: &usize| zone.iter().all(|one| together(one).contains(number));
        let is_alone = zone.len() == 1 && matches!(first, MemberIdentifier::Port(_));
        is_alone || together(first).iter().any(has_all)
    })
}

/// The members of each zone that is active.
fn active<'a>(zones: &'a Zones) -> Vec<HashSet<&'a MemberIdentifier>> {
    let aliases: HashMap<_, _> = zones.aliases().iter().map(|one| (&one.name, one)).collect();
    let sets = zones.sets().iter();
    let names: HashSet<_> = sets
        .filter(|set| Some(&*set.name) == zones.active())
        .flat_map(|set| &set.list)
        .collect();
    let zones = zones.zones().iter();
    let zones = zones.filter(|zone| names.contains(&zone.name));
    let members = |entry: &'a ZoneEntry| match entry {
        ZoneEntry::Member(member) => std::slice::from_ref(member),
        ZoneEntry::Alias(name) => aliases.get(name).map_or(&[][..], |alias| &alias.list),
    };
    zones
        .map(|zone| zone.list.iter().flat_map(members).collect())
        .collect()
}

#[cfg(test)]
mod tests;
