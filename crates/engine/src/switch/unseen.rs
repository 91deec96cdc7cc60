//! Members of zones that are not there: a typing error in a zone file is no error of it.

use std::collections::{BTreeSet, HashSet};

use fc::fabric::FabricLogin;
use fc::fabric::zones::{MemberIdentifier, ZoneEntry, Zones};

/// The members of the active zones that nothing logged in has, in order.
pub(super) fn unseen<'a>(
    zones: &'a Zones,
    logins: impl Iterator<Item = &'a FabricLogin>,
) -> BTreeSet<&'a MemberIdentifier> {
    let mut there = HashSet::new();
    for login in logins {
        there.extend([
            MemberIdentifier::Port(login.wwpn),
            MemberIdentifier::Node(login.wwnn),
            MemberIdentifier::Id(login.fc_id),
            MemberIdentifier::Place(login.place.clone()),
        ]);
    }
    let members = active_entries(zones).flat_map(|entry| members(zones, entry));
    members.filter(|member| !there.contains(*member)).collect()
}

/// What the zones of the active zone set list.
fn active_entries(zones: &Zones) -> impl Iterator<Item = &ZoneEntry> {
    let active = zones.sets().iter();
    let active = active.filter(|set| Some(&*set.name) == zones.active());
    let names: HashSet<_> = active.flat_map(|set| &set.list).collect();
    let zones = zones.zones().iter();
    let zones = zones.filter(move |zone| names.contains(&zone.name));
    zones.flat_map(|zone| &zone.list)
}

fn members<'a>(zones: &'a Zones, entry: &'a ZoneEntry) -> &'a [MemberIdentifier] {
    let name = match entry {
        ZoneEntry::Member(member) => return std::slice::from_ref(member),
        ZoneEntry::Alias(name) => name,
    };
    let alias = zones.aliases().iter().find(|alias| alias.name == *name);
    alias.map_or(&[], |alias| &alias.list)
}
