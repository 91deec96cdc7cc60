//! Zone files: what is understood is written so that it is understood the same, and two ports share
//! what a search through the active zones finds.

use std::collections::BTreeSet;

use fc::fabric::zones::{Definition, MemberIdentifier, ZoneEntry, ZoneMember, Zones};
use fc::wire::names::{FcId, Wwn};

/// See docs/fuzzing.md.
pub fn zones(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let zones = match Zones::parse(text) {
        Ok(zones) => zones,
        Err(error) => {
            let line = text.lines().nth(error.line - 1).unwrap_or_default();
            let columns = line.chars().count().max(1);
            assert!((1..=columns).contains(&error.column), "{error}");
            return;
        }
    };
    assert_eq!(Zones::parse(&written(&zones)), Ok(zones.clone()));
    assert_eq!(zones.memberships(), memberships(&zones));
    let ports: Vec<_> = zones.members().take(MEMBERS).map(port).collect();
    for a in &ports {
        for b in &ports {
            assert_eq!(zones.share(a, b), found(&zones, a, b), "{a:?} {b:?}");
        }
    }
}

/// Members that are looked at in pairs.
const MEMBERS: usize = 8;

fn written(zones: &Zones) -> String {
    let mut text = String::new();
    for alias in zones.aliases() {
        text += &line("alias", &alias.name, alias.list.iter());
    }
    for zone in zones.zones() {
        text += &line("zone", &zone.name, zone.list.iter());
    }
    for set in zones.sets() {
        text += &line("zoneset", &set.name, set.list.iter());
    }
    if let Some(active) = zones.active() {
        text += &format!("active {active}\n");
    }
    text + if zones.permits() {
        "default permit"
    } else {
        "default deny"
    }
}

fn line(word: &str, name: &str, list: impl Iterator<Item: ToString>) -> String {
    let list: Vec<_> = list.map(|one| one.to_string()).collect();
    format!("{word} {name} = {}\n", list.join(" "))
}

/// A port that this identifies, and nothing else does that is likely to be a member.
fn port(member: &MemberIdentifier) -> ZoneMember<'_> {
    let other = ZoneMember {
        wwpn: Wwn(u64::MAX),
        wwnn: Wwn(u64::MAX),
        fc_id: FcId::UNIDENTIFIED,
        place: "",
    };
    match member {
        MemberIdentifier::Port(wwpn) => ZoneMember {
            wwpn: *wwpn,
            ..other
        },
        MemberIdentifier::Node(wwnn) => ZoneMember {
            wwnn: *wwnn,
            ..other
        },
        MemberIdentifier::Id(fc_id) => ZoneMember {
            fc_id: *fc_id,
            ..other
        },
        MemberIdentifier::Place(place) => ZoneMember { place, ..other },
    }
}

/// Members of each active zone, each once: what is kept, by which a login costs, is no more.
fn memberships(zones: &Zones) -> usize {
    let of_zone = |zone: &Definition<ZoneEntry>| {
        let members = zone.list.iter().flat_map(|entry| members(zones, entry));
        members.collect::<BTreeSet<_>>().len()
    };
    active(zones).map(of_zone).sum()
}

/// What an entry of a zone stands for.
fn members<'a>(zones: &'a Zones, entry: &'a ZoneEntry) -> &'a [MemberIdentifier] {
    match entry {
        ZoneEntry::Member(member) => std::slice::from_ref(member),
        ZoneEntry::Alias(name) => {
            let alias = zones.aliases().iter().find(|alias| alias.name == *name);
            &alias.expect("an alias that is defined").list
        }
    }
}

/// The zones of the active set, in the order of the file.
fn active(zones: &Zones) -> impl Iterator<Item = &Definition<ZoneEntry>> {
    let sets = zones.sets().iter();
    let sets = sets.filter(|set| zones.active() == Some(&set.name));
    let names: Vec<_> = sets.flat_map(|set| &set.list).collect();
    let all = zones.zones().iter();
    all.filter(move |zone| names.contains(&&zone.name))
}

/// Whether an active zone has both; or none has either, and the default zone permits.
fn found(zones: &Zones, a: &ZoneMember<'_>, b: &ZoneMember<'_>) -> bool {
    let in_use = || active(zones);
    let has = |list: &[ZoneEntry], port| list.iter().any(|entry| is_in(zones, entry, port));
    let is_member = |port| in_use().any(|zone| has(&zone.list, port));
    let share = in_use().any(|zone| has(&zone.list, a) && has(&zone.list, b));
    share || zones.permits() && !is_member(a) && !is_member(b)
}

fn is_in(zones: &Zones, entry: &ZoneEntry, port: &ZoneMember<'_>) -> bool {
    members(zones, entry).iter().any(|member| is(member, port))
}

fn is(member: &MemberIdentifier, port: &ZoneMember<'_>) -> bool {
    match member {
        MemberIdentifier::Port(wwpn) => *wwpn == port.wwpn,
        MemberIdentifier::Node(wwnn) => *wwnn == port.wwnn,
        MemberIdentifier::Id(fc_id) => *fc_id == port.fc_id,
        MemberIdentifier::Place(place) => **place == *port.place,
    }
}
