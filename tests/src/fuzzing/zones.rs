//! Zone files: what is understood is written so that it is understood the same, and two ports share
//! what a search through the active zones finds.

use fc::fabric::zones::{MemberIdentifier, ZoneEntry, ZoneMember, Zones};
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

/// Whether an active zone has both; or none has either, and the default zone permits.
fn found(zones: &Zones, a: &ZoneMember<'_>, b: &ZoneMember<'_>) -> bool {
    let active = zones.sets().iter();
    let active = active.filter(|set| zones.active() == Some(&set.name));
    let names: Vec<_> = active.flat_map(|set| &set.list).collect();
    let in_use = || {
        zones
            .zones()
            .iter()
            .filter(|zone| names.contains(&&zone.name))
    };
    let has = |list: &[ZoneEntry], port| list.iter().any(|entry| is_in(zones, entry, port));
    let is_member = |port| in_use().any(|zone| has(&zone.list, port));
    let share = in_use().any(|zone| has(&zone.list, a) && has(&zone.list, b));
    share || zones.permits() && !is_member(a) && !is_member(b)
}

fn is_in(zones: &Zones, entry: &ZoneEntry, port: &ZoneMember<'_>) -> bool {
    match entry {
        ZoneEntry::Member(member) => is(member, port),
        ZoneEntry::Alias(name) => {
            let alias = zones.aliases().iter().find(|alias| alias.name == *name);
            let alias = alias.expect("an alias that is defined");
            alias.list.iter().any(|member| is(member, port))
        }
    }
}

fn is(member: &MemberIdentifier, port: &ZoneMember<'_>) -> bool {
    match member {
        MemberIdentifier::Port(wwpn) => *wwpn == port.wwpn,
        MemberIdentifier::Node(wwnn) => *wwnn == port.wwnn,
        MemberIdentifier::Id(fc_id) => *fc_id == port.fc_id,
        MemberIdentifier::Place(place) => **place == *port.place,
    }
}
