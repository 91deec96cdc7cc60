//! What was found, for people and for programs.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use runtime::diagnosis::Finding;
use runtime::diagnosis::readings::{Hop, HopPlace, Losses, PathReadings, Readings};
use serde::Serialize;

use super::Examined;
use crate::units::counted;
use crate::{VerbError, documents};

/// Each finding, with an empty line between them.
pub(super) fn text(findings: &[Finding]) -> String {
    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
    texts.join("\n\n") + "\n"
}

/// The only line there is to say of a sound path.
pub(super) fn all_is_well(readings: &Readings) -> String {
    let mut told = format!("{}: all is well", readings.interface);
    told += &match &readings.path {
        None => "; not measured behind it".to_owned(),
        Some(path) => {
            let floor_answers = readings.blast.is_some();
            heard(
                &readings.interface,
                path.ports.len(),
                path.fcfs.len(),
                floor_answers,
            )
        }
    };
    if let Some(blast) = &readings.blast {
        told += &format!(
            "; {} frames came and {} went without a loss",
            blast.received, blast.sent
        );
    }
    told + "\n"
}

/// How many ports and FCFs were heard behind an interface. Where there are none the fabric may be
/// on a VLAN, unless a floor answers: this is the interface that is meant then.
fn heard(interface: &str, ports: usize, fcfs: usize, floor_answers: bool) -> String {
    let number = |number: usize, what: &str| match number {
        0 => format!("no {what}"),
        _ => counted(number as u64, what),
    };
    match (ports, fcfs) {
        (0, 0) if floor_answers => "; no other port answers, and no FCF".to_owned(),
        (0, 0) => format!(
            "; no other port answers, and no FCF: lunar fipvlan {interface} shows whether one does \
             on a VLAN"
        ),
        _ => format!(
            "; full frames pass, with {} and {} heard",
            number(ports, "other port"),
            number(fcfs, "FCF")
        ),
    }
}

/// All of it, as `--json` prints it.
#[derive(Serialize)]
struct DoctorReport<'a> {
    interface: &'a str,
    findings: Vec<FindingReport<'a>>,
    /// Why nothing was measured behind the interface.
    not_measured: Option<&'a str>,
    interfaces: Vec<HopReport<'a>>,
    netdev_budget: Option<u32>,
    netdev_max_backlog: Option<u32>,
    kernel_port: Option<&'a str>,
    losses: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    path: Option<PathReport>,
    blast: Option<BlastReport>,
}

#[derive(Serialize)]
struct FindingReport<'a> {
    rule: &'a str,
    place: &'a str,
    what: &'a str,
    command: Option<&'a str>,
    /// Where to run it, if not on this machine.
    elsewhere: Option<&'a str>,
}

#[derive(Serialize)]
struct HopReport<'a> {
    name: &'a str,
    place: &'static str,
    kind: &'a str,
    up: bool,
    mtu: u32,
    qdiscs: Vec<QdiscReport<'a>>,
    rings: Option<RingReport>,
    pause: Option<PauseReport>,
    pfc: Option<PfcReport>,
}

#[derive(Serialize)]
struct QdiscReport<'a> {
    kind: &'a str,
    limit: Option<u32>,
    dropped: u64,
}

#[derive(Serialize)]
struct RingReport {
    rx: u32,
    rx_max: u32,
    tx: u32,
    tx_max: u32,
}

#[derive(Serialize)]
struct PauseReport {
    rx: bool,
    tx: bool,
    frames_sent: Option<u64>,
    frames_received: Option<u64>,
}

#[derive(Serialize)]
struct PfcReport {
    priorities: Vec<usize>,
    frames_sent: [u64; 8],
    frames_received: [u64; 8],
}

#[derive(Serialize)]
struct PathReport {
    mtu: usize,
    ports: Vec<PortReport>,
    fcfs: Vec<FcfReport>,
    /// Ports that log in outside of FIP: address and WWPN.
    outside_fip: BTreeMap<String, String>,
    /// Those that speak DCBX: the priorities that PFC is on for.
    neighbors: BTreeMap<String, Vec<usize>>,
}

#[derive(Serialize)]
struct PortReport {
    mac: String,
    port_name: Option<String>,
    max_fcoe: Option<u16>,
    answer: Option<u16>,
    verdict: String,
}

#[derive(Serialize)]
struct FcfReport {
    mac: String,
    switch_name: Option<String>,
    answer: Option<u16>,
}

#[derive(Serialize)]
struct BlastReport {
    received: u64,
    lost_in: u64,
    sent: u64,
    lost_out: u64,
}

pub(super) fn print_json(examined: &Examined, findings: &[Finding]) -> Result<(), VerbError> {
    let readings = &examined.readings;
    let losses = &readings.losses;
    let phases = [
        ("before", &losses.before),
        ("during", &losses.during),
        ("after", &losses.after),
    ];
    let kernel_port = readings.kernel_port.as_ref();
    documents::print_json(&DoctorReport {
        interface: &readings.interface,
        findings: findings.iter().map(FindingReport::of).collect(),
        not_measured: examined.unmeasured.as_deref(),
        interfaces: readings.hops.iter().map(HopReport::of).collect(),
        netdev_budget: readings.kernel.budget,
        netdev_max_backlog: readings.kernel.max_backlog,
        kernel_port: kernel_port.map(|port| port.interface.as_str()),
        losses: phases.map(|(phase, lost)| (phase, by_place(lost))).into(),
        path: readings.path.as_ref().map(PathReport::of),
        blast: readings.blast.map(|blast| BlastReport {
            received: blast.received,
            lost_in: blast.lost_in,
            sent: blast.sent,
            lost_out: blast.lost_out,
        }),
    })
    .map(drop)
}

fn by_place(losses: &Losses) -> BTreeMap<&'static str, u64> {
    losses.places().into()
}

impl<'a> FindingReport<'a> {
    fn of(finding: &'a Finding) -> Self {
        let remedy = finding.remedy.as_ref();
        Self {
            rule: finding.rule,
            place: &finding.place,
            what: &finding.what,
            command: remedy.map(|remedy| remedy.command.as_str()),
            elsewhere: remedy.and_then(|remedy| remedy.elsewhere.as_deref()),
        }
    }
}

impl<'a> HopReport<'a> {
    fn of(hop: &'a Hop) -> Self {
        Self {
            name: &hop.link.name,
            place: match hop.place {
                HopPlace::Own => "own",
                HopPlace::Below => "below",
                HopPlace::Bonded => "bonded",
                HopPlace::Bridged => "bridged",
            },
            kind: &hop.link.kind,
            up: hop.link.is_up,
            mtu: hop.link.mtu,
            qdiscs: qdiscs(hop),
            rings: hop.rings.map(|rings| RingReport {
                rx: rings.rx,
                rx_max: rings.rx_max,
                tx: rings.tx,
                tx_max: rings.tx_max,
            }),
            pause: hop.pause.map(|pause| PauseReport {
                rx: pause.rx,
                tx: pause.tx,
                frames_sent: pause.frames.map(|frames| frames.sent),
                frames_received: pause.frames.map(|frames| frames.received),
            }),
            pfc: hop.pfc.map(|pfc| PfcReport {
                priorities: priorities(pfc.enabled),
                frames_sent: pfc.requests,
                frames_received: pfc.indications,
            }),
        }
    }
}

/// The numbers of the bits that are set.
fn priorities(bits: u8) -> Vec<usize> {
    (0..8).filter(|bit| bits & 1 << bit != 0).collect()
}

fn qdiscs(hop: &Hop) -> Vec<QdiscReport<'_>> {
    let told = hop.qdiscs.iter().map(|qdisc| QdiscReport {
        kind: &qdisc.kind,
        limit: qdisc.limit,
        dropped: qdisc.dropped,
    });
    told.collect()
}

impl PathReport {
    fn of(path: &PathReadings) -> Self {
        let ports = path.ports.iter().map(|port| PortReport {
            mac: port.enode.to_string(),
            port_name: port.wwpn.map(|wwpn| wwpn.to_string()),
            max_fcoe: port.max_fcoe,
            answer: port.answer,
            verdict: port.verdict(path.mtu).to_string(),
        });
        let fcfs = path.fcfs.iter().map(|fcf| FcfReport {
            mac: fcf.mac.to_string(),
            switch_name: fcf.name.map(|name| name.to_string()),
            answer: fcf.answer,
        });
        let outside = path.outside_fip.iter();
        let outside = outside.map(|(mac, wwpn)| (mac.to_string(), wwpn.to_string()));
        let neighbours = path.neighbours.iter();
        let neighbours = neighbours.map(|one| (one.name.clone(), priorities(one.pfc)));
        Self {
            mtu: path.mtu,
            ports: ports.collect(),
            fcfs: fcfs.collect(),
            outside_fip: outside.collect(),
            neighbors: neighbours.collect(),
        }
    }
}
