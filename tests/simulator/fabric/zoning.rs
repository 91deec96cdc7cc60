//! Zones by lot: as a file that the switch reads, and as sets of stations that it is judged by.

use std::collections::BTreeSet;
use std::sync::Arc;

use fc::fabric::zones::Zones;
use fc::wire::names::{FcId, Wwn};
use sim::Rng;

use super::chassis::place;

/// What a station may be called by in a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZonedPort {
    pub(crate) wwpn: Wwn,
    pub(crate) wwnn: Wwn,
    /// Once it was given one.
    pub(crate) fc_id: Option<FcId>,
    /// At which Ethernet it is.
    pub(crate) place: usize,
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
            let members = (0..members).map(|_| ZoneMember::any(ports, rng));
            members.collect::<BTreeSet<_>>()
        };
        let count = rng.below(4);
        let members: Vec<_> = (0..count).map(|_| one(rng)).collect();
        let permits = rng.one_in(2);
        let text = text(&members, permits, ports);
        let stations = |zone: &BTreeSet<ZoneMember>| {
            let stations = zone.iter().flat_map(|member| &member.stations);
            stations.copied().collect()
        };
        let zones = members.iter().map(stations).collect();
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

/// A member of a zone.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ZoneMember {
    /// As the file has it.
    text: String,
    /// The stations that are meant.
    stations: Vec<usize>,
}

impl ZoneMember {
    /// Any station, in any way that there is; which may mean others too.
    fn any(ports: &[ZonedPort], rng: &mut Rng) -> Self {
        let at = rng.below(ports.len());
        let port = &ports[at];
        let all = |is_meant: &dyn Fn(&ZonedPort) -> bool| {
            let stations = (0..ports.len()).filter(|at| is_meant(&ports[*at]));
            stations.collect()
        };
        let (text, stations) = match (rng.below(8), port.fc_id) {
            (0 | 1, _) => (format!("a{at}"), vec![at]),
            (2 | 3, Some(fc_id)) => (format!("id:{fc_id:?}"), vec![at]),
            (4 | 5, _) => {
                let stations = all(&|other| other.wwnn == port.wwnn);
                (format!("node:{}", port.wwnn), stations)
            }
            (6, _) => {
                let stations = all(&|other| other.place == port.place);
                (format!("port:{}", place(port.place)), stations)
            }
            _ => (port.wwpn.to_string(), vec![at]),
        };
        Self { text, stations }
    }
}

/// The file.
fn text(zones: &[BTreeSet<ZoneMember>], permits: bool, ports: &[ZonedPort]) -> String {
    let default = if permits { "permit" } else { "deny" };
    let mut lines = vec![format!("default {default}")];
    for (at, port) in ports.iter().enumerate() {
        lines.push(format!("alias a{at} = {}", port.wwpn));
    }
    for (number, zone) in zones.iter().enumerate() {
        let members: Vec<_> = zone.iter().map(|member| member.text.as_str()).collect();
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
