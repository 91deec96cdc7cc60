//! Rows of switches in these worlds: the ports that are logged in to each, what a change does to
//! them, and whether the plan has said so. Who sees whom is told by the code of the switch, since
//! what a plan makes of two lists of zones is in question here.
//!
//! | a row says | its ports have seen |
//! |---|---|
//! | nothing, `quiet` or `told` | no login has ended, and ports that saw each other still do |
//! | `cuts`, and names ports | their logins have ended, and no others |
//! | `cuts`, and names none | no login has ended; pairs may have lost each other |

use std::collections::{BTreeMap, BTreeSet};

use control::plan::{FabricLoginFact, FabricLogins, Impact, Plan};
use control::tree::{SwitchRow, Tree};
use fc::fabric::zones::{ZoneMember, Zones};
use fc::wire::names::{FcId, Wwn};
use sim::Rng;

use super::server::Defect;

const SWITCHES: [&str; 2] = ["edge", "core"];
const PLACES: [&str; 3] = ["eth1", "eth2", "cable:/run/a.sock"];

/// Zone files, and what is in them.
const FILES: [(&str, &str); 2] = [
    ("/zones/permit", "default permit"),
    (
        "/zones/places",
        "zone a = port:eth1 port:eth2\nzoneset all = a\nactive all",
    ),
];

/// The number of ports that there are.
const PORTS: usize = 5;

/// A port by its number; two of them are of one node.
const fn port(number: usize) -> ZoneMember<'static> {
    ZoneMember {
        wwpn: Wwn(0x2000_0000_5e00_5300 + number as u64),
        wwnn: Wwn(0x1000_0000_5e00_5300 + number as u64 / 2),
        fc_id: FcId(0x01_0100 + number as u32),
        place: PLACES[number % PLACES.len()],
    }
}

fn wwpn(number: usize) -> String {
    port(number).wwpn.to_string()
}

/// The switches that run.
#[derive(Default)]
pub(super) struct Fabrics {
    running: BTreeMap<String, Running>,
    /// What the last change has done, by switch.
    losses: BTreeMap<String, Losses>,
}

struct Running {
    row: SwitchRow,
    /// The numbers of ports.
    logins: BTreeSet<usize>,
}

/// What ports of a switch have lost by a change.
struct Losses {
    /// The WWPNs of those whose logins have ended.
    logins: BTreeSet<String>,
    /// Ports that see each other no longer, though both are still logged in.
    pairs: Vec<[usize; 2]>,
}

impl Fabrics {
    /// Ports log in and out. What the last change has done is forgotten.
    pub(super) fn wander(&mut self, rng: &mut Rng) {
        self.losses.clear();
        for running in self.running.values_mut() {
            for number in 0..PORTS {
                let is_at = running.row.places.iter().any(|at| at == port(number).place);
                if is_at && !rng.one_in(3) {
                    running.logins.insert(number);
                } else {
                    running.logins.remove(&number);
                }
            }
        }
    }

    /// As the gate asks for them.
    pub(super) fn logins(&self) -> FabricLogins {
        let fact = |name: &String, number: usize| FabricLoginFact {
            switch: name.clone(),
            wwpn: wwpn(number),
        };
        let running = self.running.iter();
        let logins = running.flat_map(|(name, running)| {
            let numbers = running.logins.iter();
            numbers.map(move |number| fact(name, *number))
        });
        FabricLogins {
            logins: logins.collect(),
            silent: Vec::new(),
        }
    }

    /// Serves the rows of a tree.
    pub(super) fn serve(&mut self, tree: &Tree, defect: Option<Defect>) {
        let before = std::mem::take(&mut self.running);
        for (name, row) in &tree.switch {
            let runs_on = before.get(name).filter(|old| match defect {
                Some(Defect::RestartsSwitches) => old.row == *row,
                _ => without_zones(&old.row) == without_zones(row),
            });
            let running = Running {
                row: row.clone(),
                logins: runs_on.map(|old| old.logins.clone()).unwrap_or_default(),
            };
            self.running.insert(name.clone(), running);
        }
        for (name, old) in before {
            let losses = Losses::between(&old, self.running.get(&name));
            self.losses.insert(name, losses);
        }
    }

    /// Looks whether the plan of the last change has told what it did.
    pub(super) fn judge(&self, plan: &Plan) {
        for name in SWITCHES {
            let row = format!("switch.{name}");
            let told = plan.differences.iter().find(|one| one.row == row);
            let named: BTreeSet<_> = told.iter().flat_map(|one| one.hosts.clone()).collect();
            let losses = self.losses.get(name);
            let ended = losses.map(|losses| losses.logins.clone());
            assert_eq!(named, ended.unwrap_or_default(), "logins to {name}: {plan}");
            let parted = losses.map_or(&[][..], |losses| &losses.pairs);
            let may_part = told.is_some_and(|one| one.impact == Impact::Cuts);
            assert!(
                may_part || parted.is_empty(),
                "{parted:?} of {name}: {plan}"
            );
        }
    }
}

impl Losses {
    fn between(old: &Running, new: Option<&Running>) -> Self {
        let stays = |number: &usize| new.is_some_and(|new| new.logins.contains(number));
        let (stay, gone): (Vec<_>, Vec<_>) = old.logins.iter().copied().partition(stays);
        let shares =
            |running: &Running, [a, b]: [usize; 2]| zones(&running.row).share(&port(a), &port(b));
        let pairs = stay.iter().flat_map(|a| stay.iter().map(move |b| [*a, *b]));
        let is_parted = |pair: &[usize; 2]| {
            let share_now = new.is_some_and(|new| shares(new, *pair));
            pair[0] < pair[1] && shares(old, *pair) && !share_now
        };
        Self {
            logins: gone.into_iter().map(wwpn).collect(),
            pairs: pairs.filter(is_parted).collect(),
        }
    }
}

/// All that a switch has to start again for.
fn without_zones(row: &SwitchRow) -> SwitchRow {
    SwitchRow {
        zones: Vec::new(),
        zone_file: None,
        open: false,
        ..row.clone()
    }
}

fn zones(row: &SwitchRow) -> Zones {
    let file = |path: &String| FILES.iter().find(|(name, _)| name == path);
    let text = match &row.zone_file {
        Some(path) => file(path).expect("a zone file").1.to_owned(),
        None if row.open => return Zones::open(),
        None => row.zone_text(),
    };
    Zones::parse(&text).unwrap_or_else(|wrong| panic!("{wrong} in\n{text}"))
}

/// Changes some row, or adds or removes one.
pub(super) fn edit(rng: &mut Rng, tree: &mut Tree) {
    let name = *rng.pick(&SWITCHES);
    let Some(row) = tree.switch.get_mut(name) else {
        let mut row = SwitchRow {
            places: any_places(rng),
            ..SwitchRow::default()
        };
        edit_zones(rng, &mut row);
        tree.switch.insert(name.to_owned(), row);
        return;
    };
    match rng.below(8) {
        0 => drop(tree.switch.remove(name)),
        1 => row.places = any_places(rng),
        2 => row.vlan = rng.one_in(2).then_some(152),
        _ => edit_zones(rng, row),
    }
}

fn any_places(rng: &mut Rng) -> Vec<String> {
    let places = PLACES.iter().filter(|_| rng.one_in(2));
    let places: Vec<_> = places.map(|place| (*place).to_owned()).collect();
    if places.is_empty() {
        vec![(*rng.pick(&PLACES)).to_owned()]
    } else {
        places
    }
}

fn edit_zones(rng: &mut Rng, row: &mut SwitchRow) {
    if rng.one_in(3) {
        // Ports that are in no zone do not see each other any more.
        row.zones.retain(|line| !line.starts_with("default"));
        return;
    }
    (row.zones, row.zone_file, row.open) = (Vec::new(), None, false);
    match rng.below(6) {
        0 => row.open = true,
        1 => row.zone_file = Some(rng.pick(&FILES).0.to_owned()),
        _ => row.zones = any_zones(rng),
    }
}

/// The lines of a few zones.
fn any_zones(rng: &mut Rng) -> Vec<String> {
    let names: Vec<_> = (0..rng.below(4))
        .map(|number| format!("z{number}"))
        .collect();
    let zone = |name: &String| {
        let members = (0..=rng.below(4)).map(|_| member(rng));
        let members: BTreeSet<_> = members.collect();
        let members: Vec<_> = members.into_iter().collect();
        format!("zone {name} = {}", members.join(" "))
    };
    let mut lines: Vec<_> = names.iter().map(zone).collect();
    if rng.one_in(2) {
        lines.push("default permit".to_owned());
    }
    if !names.is_empty() {
        lines.push(format!("zoneset all = {}", names.join(" ")));
        lines.push("active all".to_owned());
    }
    lines
}

/// A port, identified in some way.
fn member(rng: &mut Rng) -> String {
    let port = port(rng.below(PORTS));
    match rng.below(4) {
        0 => format!("node:{}", port.wwnn),
        1 => format!("port:{}", port.place),
        _ => port.wwpn.to_string(),
    }
}
