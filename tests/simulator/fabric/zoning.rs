//! Zones by lot: as a file that the switch reads, and as sets of stations that it is judged by.

use std::collections::BTreeSet;
use std::sync::Arc;

use fc::fabric::zones::Zones;
use fc::wire::names::{FcId, Wwn};
use sim::Rng;

/// What a station may be called by in a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZonedPort {
    pub(crate) wwpn: Wwn,
    pub(crate) wwnn: Wwn,
    /// Once it was given one.
    pub(crate) fc_id: Option<FcId>,
}

/// Who sees whom.
#[derive(Clone, Debug)]
pub(crate) struct Zoning {
    /// Stations by their number.
    zones: Vec<BTreeSet<usize>>,
    /// Whether those in no zone see each other.
    permits: bool,
    pub(crate) file: Arc<Zones>,
}

impl Zoning {
    /// All see each other.
    pub(crate) fn open() -> Self {
        Self {
            zones: Vec::new(),
            permits: true,
            file: Arc::new(Zones::open()),
        }
    }

    /// A few zones of a few of these ports.
    pub(crate) fn any(ports: &[ZonedPort], rng: &mut Rng) -> Self {
        let one = |rng: &mut Rng| {
            let members = 1 + rng.below(ports.len());
            (0..members).map(|_| rng.below(ports.len())).collect()
        };
        let count = rng.below(4);
        let zones: Vec<BTreeSet<usize>> = (0..count).map(|_| one(rng)).collect();
        let permits = rng.one_in(2);
        let text = text(&zones, permits, ports, rng);
        let file = Zones::parse(&text).unwrap_or_else(|wrong| panic!("{wrong} in\n{text}"));
        Self {
            zones,
            permits,
            file: Arc::new(file),
        }
    }

    /// Whether two stations see each other.
    pub(crate) fn share(&self, a: usize, b: usize) -> bool {
        let is_zoned = |at: usize| self.zones.iter().any(|zone| zone.contains(&at));
        let both = |zone: &BTreeSet<usize>| zone.contains(&a) && zone.contains(&b);
        self.zones.iter().any(both) || self.permits && !is_zoned(a) && !is_zoned(b)
    }
}

/// The file: a member is written in any way that there is.
fn text(zones: &[BTreeSet<usize>], permits: bool, ports: &[ZonedPort], rng: &mut Rng) -> String {
    let default = if permits { "permit" } else { "deny" };
    let mut lines = vec![format!("default {default}")];
    for (at, port) in ports.iter().enumerate() {
        lines.push(format!("alias a{at} = {}", port.wwpn));
    }
    for (number, zone) in zones.iter().enumerate() {
        let members = zone.iter().map(|at| member(*at, &ports[*at], rng));
        let members: Vec<_> = members.collect();
        lines.push(format!("zone z{number} = {}", members.join(" ")));
    }
    if !zones.is_empty() {
        let names: Vec<_> = (0..zones.len())
            .map(|number| format!("z{number}"))
            .collect();
        lines.push(format!("zoneset all = {}", names.join(" ")));
        lines.push("active all".to_owned());
    }
    lines.join("\n")
}

fn member(at: usize, port: &ZonedPort, rng: &mut Rng) -> String {
    match (rng.below(4), port.fc_id) {
        (0, _) => format!("a{at}"),
        (1, Some(fc_id)) => format!("id:{fc_id:?}"),
        (2, _) => format!("node:{}", port.wwnn),
        _ => port.wwpn.to_string(),
    }
}
