//! Frames that were lost where no setting was found to be wrong.

use crate::diagnosis::readings::{BlastReading, Losses, Readings};
use crate::diagnosis::{Finding, Remedy};
use crate::n_port::problems::MTU;

pub(super) fn elsewhere(readings: &Readings) -> Vec<Finding> {
    let mut found: Vec<_> = PLACES
        .iter()
        .filter_map(|place| lost(readings, place))
        .collect();
    found.extend(behind(readings));
    found
}

/// A place with how many were lost there, what that means, and what mends it at an interface.
type LossPlace = (fn(&Losses) -> u64, &'static str, fn(&str) -> Option<Remedy>);

const PLACES: [LossPlace; 3] = [
    (
        |losses| losses.too_long,
        "frames came in that are longer than it takes",
        |name| Some(Remedy::here(format!("ip link set {name} mtu {MTU}"))),
    ),
    (
        |losses| losses.damaged,
        "frames came in damaged: replace the cable, or what it is plugged into",
        |_| None,
    ),
    (
        |losses| losses.transmitted,
        "frames were dropped when they were to be sent",
        |name| {
            let command = format!("ip link set {name} txqueuelen 10000");
            Some(Remedy::here(command))
        },
    ),
];

fn lost(readings: &Readings, (of, what, remedy): &LossPlace) -> Option<Finding> {
    let count = Some(readings.losses.all(of)).filter(|count| *count > 0)?;
    Some(Finding {
        rule: "losses",
        place: readings.interface.clone(),
        what: format!("{count} {what}"),
        remedy: remedy(&readings.interface),
    })
}

/// Frames of the blast that no counter of this machine has.
fn behind(readings: &Readings) -> Vec<Finding> {
    let Some(blast) = &readings.blast else {
        return Vec::new();
    };
    let during = &readings.losses.during;
    let came_in = during.missed + during.backlog + during.too_long + during.damaged;
    let left = during.transmitted + during.qdisc;
    let found = [
        full_ring(readings, blast),
        unseen(
            readings,
            blast.lost_in.saturating_sub(came_in + blast.ring_full),
            "from",
        ),
        unseen(readings, blast.lost_out.saturating_sub(left), "to"),
    ];
    found.into_iter().flatten().collect()
}

fn full_ring(readings: &Readings, blast: &BlastReading) -> Option<Finding> {
    (blast.ring_full > 0).then(|| Finding {
        rule: "losses",
        place: readings.interface.clone(),
        what: format!(
            "{} frames found the ring of Lunar's socket full: this machine has too little CPU \
             time for the link",
            blast.ring_full
        ),
        remedy: None,
    })
}

fn unseen(readings: &Readings, count: u64, way: &str) -> Option<Finding> {
    (count > 0).then(|| Finding {
        rule: "losses",
        place: readings.interface.clone(),
        what: format!(
            "{count} frames {way} the other end of the floor were lost, and not in this machine"
        ),
        remedy: Some(Remedy::at(
            "the other end".to_owned(),
            "lunar doctor fcoe://IFACE".to_owned(),
        )),
    })
}
