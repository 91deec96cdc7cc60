//! Switches: their ports, zones and names.

use std::collections::BTreeMap;

use address::Time;
use engine::switch::options::{
    DOMAINS, FKA_PERIODS, FcMap, LINUX_FKA_MIN, PORTS_MAX, Place, THREADS_MAX, VLANS, Wwn,
    are_cables, place,
};
use fc::fabric::zones::Zones;

use super::target::{Portal, portal};
use super::{Findings, check_row_name};
use crate::tree::{SwitchRow, Tree};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    if tree.switch.is_empty() {
        return;
    }
    let mut taken = interfaces_of_targets(tree);
    let mut folders = BTreeMap::new();
    for (name, row) in &tree.switch {
        check_row_name("switch", name, findings);
        let at = format!("switch.{name}");
        check_places(&at, (name, row), &mut taken, findings);
        check_standby(&at, row, findings);
        check_zoning(&at, row, findings);
        check_numbers(&at, row, findings);
        check_names(&at, row, findings);
        check_paths(&at, (name, row), &mut folders, findings);
    }
    check_twins(tree, findings);
}

/// Who has a place, by the name of its interface or the path of its cable. A cable has two ends: a
/// target may have one of them and a switch the other.
type Taken = BTreeMap<String, String>;

fn interfaces_of_targets(tree: &Tree) -> Taken {
    let targets = tree.target.iter();
    let written =
        targets.flat_map(|(name, row)| row.portals.iter().map(move |(_, row)| (name, row)));
    let interface = |(name, row): (&String, &crate::tree::PortalRow)| {
        let Ok(Portal::Fcoe(port)) = portal(&row.address) else {
            return None;
        };
        let interface = port.place.interface()?.to_owned();
        Some((interface, format!("target {name}")))
    };
    written.filter_map(interface).collect()
}

/// What two ports cannot share.
fn end_of(place: &Place) -> String {
    let interface = place.interface();
    interface.map_or_else(|| place.to_string(), ToOwned::to_owned)
}

fn check_places(
    at: &str,
    (name, row): (&str, &SwitchRow),
    taken: &mut Taken,
    findings: &mut Findings,
) {
    let at = format!("{at}.places");
    let owner = format!("switch {name}");
    match row.places.len() {
        0 => findings.problem(
            &at,
            "a switch has at least one port",
            "name interfaces or cables, as in [\"eth1\", \"cable:/run/a.sock\"]",
        ),
        1..=PORTS_MAX => {}
        many => findings.problem(
            &at,
            format_args!("{many} ports are too many"),
            &format!("a switch has at most {PORTS_MAX}: make a second one of the others"),
        ),
    }
    for written in &row.places {
        let place = match place(written) {
            Ok(place) => place,
            Err(cause) => {
                let way_out = "write INTERFACE or cable:PATH";
                let what = format_args!("{written:?} is not a port: {cause}");
                findings.problem(&at, what, way_out);
                continue;
            }
        };
        match taken.insert(end_of(&place), owner.clone()) {
            Some(other) if other == owner => {
                findings.problem(&at, format_args!("{written} is there twice"), "omit one");
            }
            Some(other) => findings.problem(
                &at,
                format_args!("{written} is a port of {other} already"),
                "a port belongs to one of them: connect both by a cable:PATH or a veth pair, or \
                 take it out of one",
            ),
            None => {}
        }
    }
}

/// A place that is none is told of already.
fn check_standby(at: &str, row: &SwitchRow, findings: &mut Findings) {
    let places = row.places.iter().map(|written| place(written));
    let places = places.collect::<Result<Vec<_>, _>>().unwrap_or_default();
    if row.standby && !places.is_empty() && are_cables(&places) {
        findings.problem(
            format_args!("{at}.standby"),
            "the other switch is heard at interfaces, and all ports here are cables",
            "add an interface that both switches have a port on, or omit standby",
        );
    }
}

fn check_zoning(at: &str, row: &SwitchRow, findings: &mut Findings) {
    let said = [
        ("zones", !row.zones.is_empty()),
        ("zone-file", row.zone_file.is_some()),
        ("open", row.open),
    ];
    let said: Vec<_> = said.iter().filter(|(_, is_said)| *is_said).collect();
    match &said[..] {
        [] => findings.warning(
            format_args!("{at}.zones"),
            "there are no zones, so no port sees another",
            "give zones or a zone-file, or open = true to let every port see all others",
        ),
        [_] => {}
        [(first, _), (second, _), ..] => findings.problem(
            format_args!("{at}.{second}"),
            format_args!("{first} says who sees whom already"),
            "omit one of them",
        ),
    }
    if let Err(error) = Zones::parse(&row.zone_text()) {
        findings.problem(format_args!("{at}.zones"), error, "mend this line");
    }
}

fn check_numbers(at: &str, row: &SwitchRow, findings: &mut Findings) {
    if let Some(domain) = row.domain.filter(|domain| !DOMAINS.contains(domain)) {
        findings.problem(
            format_args!("{at}.domain"),
            format_args!("{domain} is not a domain"),
            &format!("give {} to {}", DOMAINS.start(), DOMAINS.end()),
        );
    }
    let may_be = |threads: &u16| (1..=THREADS_MAX).contains(&usize::from(*threads));
    if let Some(threads) = row.threads.filter(|threads| !may_be(threads)) {
        findings.problem(
            format_args!("{at}.threads"),
            format_args!("{threads} is not a number of cores that can forward"),
            &format!("give 1 to {THREADS_MAX}, or leave it out"),
        );
    }
    if let Some(vlan) = row.vlan.filter(|vlan| !VLANS.contains(vlan)) {
        findings.problem(
            format_args!("{at}.vlan"),
            format_args!("{vlan} is not a VLAN"),
            &format!("give {} to {}, or omit it", VLANS.start(), VLANS.end()),
        );
    }
    let at = format!("{at}.fka");
    match row.fka {
        Some(Time(period)) if !FKA_PERIODS.contains(&period) => findings.problem(
            at,
            "ENodes refuse periods below 250ms or over 90s",
            "give one between, such as \"8s\"",
        ),
        Some(Time(period)) if period < LINUX_FKA_MIN => findings.warning(
            at,
            "Linux takes a period below 500ms for 8 s, so it notices the loss of this switch after \
             20 s",
            "give \"500ms\" or more",
        ),
        _ => {}
    }
}

fn check_names(at: &str, row: &SwitchRow, findings: &mut Findings) {
    if let Some(Err(cause)) = row.fc_map.as_ref().map(|map| map.parse::<FcMap>()) {
        let what = format_args!("this is not an FC-MAP: {cause}");
        findings.problem(format_args!("{at}.fc-map"), what, "mend it, or omit it");
    }
    let names = [
        ("fabric-name", &row.fabric_name),
        ("switch-name", &row.switch_name),
    ];
    for (key, written) in names {
        let at = format!("{at}.{key}");
        let way_out = "omit it to derive one from the first port's address";
        match written.as_ref().map(|name| name.parse::<Wwn>()) {
            None => {
                if row.standby {
                    findings.problem(
                        at,
                        "a standby takes over the names of another switch",
                        "give both names, as that switch has them",
                    );
                }
            }
            Some(Err(cause)) => findings.problem(at, cause, way_out),
            Some(Ok(Wwn(0 | u64::MAX))) => findings.problem(at, "this name is reserved", way_out),
            Some(Ok(_)) => {}
        }
    }
}

fn check_paths<'a>(
    at: &str,
    (name, row): (&'a str, &'a SwitchRow),
    folders: &mut BTreeMap<&'a str, &'a str>,
    findings: &mut Findings,
) {
    for (key, path) in [("zone-file", &row.zone_file), ("state", &row.state)] {
        let Some(path) = path.as_ref().filter(|path| !path.starts_with('/')) else {
            continue;
        };
        let what = format_args!("{path:?} is not a path from the root");
        findings.problem(
            format_args!("{at}.{key}"),
            what,
            "write it whole, as in /srv/NAME",
        );
    }
    if let Some(folder) = &row.state
        && let Some(other) = folders.insert(folder, name)
    {
        findings.problem(
            format_args!("{at}.state"),
            format_args!("switch {other} remembers its N_Port_IDs there"),
            "give each a directory of its own",
        );
    }
}

/// Of two active switches of one name ENodes would take one for the other.
fn check_twins(tree: &Tree, findings: &mut Findings) {
    let mut known: BTreeMap<Wwn, &str> = BTreeMap::new();
    let active = tree.switch.iter().filter(|(_, row)| !row.standby);
    for (name, row) in active {
        let Some(Ok(wwn)) = row.switch_name.as_ref().map(|name| name.parse()) else {
            continue;
        };
        if let Some(other) = known.insert(wwn, name) {
            findings.problem(
                format_args!("switch.{name}.switch-name"),
                format_args!("switch {other} has this name"),
                "give it another one, or omit it",
            );
        }
    }
}

#[cfg(test)]
mod tests;
