//! Where frames wait in this machine, and what does not let them wait.

use io::ether::survey::QdiscReading;

use super::at;
use crate::diagnosis::readings::{Hop, Readings};
use crate::diagnosis::{Finding, Remedy};

/// Queueing disciplines that drop no frame before they are full, and delay none.
const PLAIN: [&str; 7] = [
    "noqueue",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "mq",
    "mqprio",
    "prio",
];

/// Frames that a queue should have room for: 32 READs of 256 KiB ask for more than 4,000, which
/// come from a target within milliseconds.
const FRAMES: u32 = 20_000;

/// Frames below which a queue is told to be short, and bytes.
const FEW: u32 = 1000;
const FEW_BYTES: u32 = FEW * 2176;

pub(super) fn qdisc(readings: &Readings) -> Vec<Finding> {
    let dropped = readings.losses.all(|losses| losses.qdisc);
    let hops = readings.certain();
    let found = hops.filter_map(|hop| {
        let name = &hop.link.name;
        let (what, command) = if let Some(kind) = not_plain(hop) {
            let what = format!(
                "the queueing discipline {kind} drops or delays frames under load, and a lost \
                 frame costs seconds"
            );
            (what, replaced(hop, |qdisc| !is_plain(qdisc)))
        } else if let Some(limit) = short(hop) {
            (
                format!("its queue holds no more than {limit}"),
                replaced(hop, |qdisc| short_limit(qdisc).is_some()),
            )
        } else if goes_by_length(hop) && hop.link.queue_len < FEW {
            let what = format!("its queue holds no more than {} frames", hop.link.queue_len);
            (what, format!("ip link set {name} txqueuelen 10000"))
        } else {
            return None;
        };
        Some(at(hop, "qdisc", what, command))
    });
    let mut found: Vec<_> = found.collect();
    if found.is_empty() && dropped > 0 {
        found.extend(readings.certain().take(1).map(|own| {
            let what = format!("its queue was full and dropped {dropped} frames");
            at(own, "qdisc", what, replaced(own, |_| true))
        }));
    }
    found
}

/// Replaces what is at the top by a plain queue. What is at the top and divides frames by priority
/// among the queues of the card (mqprio) is what keeps FCoE apart from the rest, so it stays, and
/// those under it that are `wrong` are replaced.
fn replaced(hop: &Hop, wrong: impl Fn(&QdiscReading) -> bool) -> String {
    let name = &hop.link.name;
    let queue = format!("pfifo limit {FRAMES}");
    let mut tops = hop.qdiscs.iter();
    if !tops.any(|qdisc| qdisc.parent == QdiscReading::ROOT && qdisc.kind == MQPRIO) {
        return format!("tc qdisc replace dev {name} root {queue}");
    }
    let under = hop.qdiscs.iter();
    let under = under.filter(|qdisc| qdisc.parent != QdiscReading::ROOT && wrong(qdisc));
    let classes: Vec<_> = under.map(|qdisc| class(qdisc.parent)).collect();
    format!(
        "for class in {}; do tc qdisc replace dev {name} parent $class {queue}; done",
        classes.join(" ")
    )
}

/// As tc(8) writes it, in hexadecimal: that of a discipline, and its own.
fn class(parent: u32) -> String {
    format!("{:x}:{:x}", parent >> 16, parent & 0xffff)
}

const MQPRIO: &str = "mqprio";

fn not_plain(hop: &Hop) -> Option<&str> {
    let qdisc = hop.qdiscs.iter().find(|qdisc| !is_plain(qdisc))?;
    Some(&qdisc.kind)
}

fn is_plain(qdisc: &QdiscReading) -> bool {
    PLAIN.contains(&qdisc.kind.as_str())
}

/// What a queue holds at the most, in words, if that is little.
fn short(hop: &Hop) -> Option<String> {
    hop.qdiscs.iter().find_map(short_limit)
}

fn short_limit(qdisc: &QdiscReading) -> Option<String> {
    let limit = qdisc.limit?;
    match qdisc.kind.as_str() {
        "pfifo" if limit < FEW => Some(format!("{limit} frames")),
        "bfifo" if limit < FEW_BYTES => Some(format!("{limit} bytes")),
        _ => None,
    }
}

/// Whether what a queue holds goes by `txqueuelen`.
fn goes_by_length(hop: &Hop) -> bool {
    hop.qdiscs.iter().any(|qdisc| qdisc.kind == "pfifo_fast")
}

pub(super) fn rings(readings: &Readings) -> Vec<Finding> {
    let missed = readings.losses.all(|losses| losses.missed);
    let found = readings.certain().filter_map(|hop| {
        let rings = hop.rings.filter(|rings| rings.rx < rings.rx_max)?;
        let what = if missed > 0 {
            format!(
                "{missed} frames found its receive ring of {} full",
                rings.rx
            )
        } else if rings.rx < rings.rx_max.min(FEW) {
            format!(
                "its receive ring holds {} of {} frames",
                rings.rx, rings.rx_max
            )
        } else {
            return None;
        };
        let command = format!("ethtool -G {} rx {}", hop.link.name, rings.rx_max);
        Some(at(hop, "rings", what, command))
    });
    found.collect()
}

pub(super) fn backlog(readings: &Readings) -> Vec<Finding> {
    let dropped = readings.losses.all(|losses| losses.backlog);
    let Some(now) = readings.kernel.max_backlog else {
        return of_machine(dropped > 0, "backlog", || {
            let what = format!("{dropped} frames found the backlog of a processor full");
            (what, sysctl("netdev_max_backlog", FRAMES))
        });
    };
    of_machine(dropped > 0 || now < FEW, "backlog", || {
        let what = if dropped > 0 {
            format!("{dropped} frames found the backlog of a processor full, which holds {now}")
        } else {
            format!("the backlog of a processor holds {now} frames")
        };
        (
            what,
            sysctl("netdev_max_backlog", FRAMES.max(now.saturating_mul(2))),
        )
    })
}

/// Turns that end too soon are no loss as long as the rings have room.
pub(super) fn budget(readings: &Readings) -> Vec<Finding> {
    let losses = &readings.losses;
    let [missed, squeezed] = [losses.all(|one| one.missed), losses.all(|one| one.squeezed)];
    let Some(now) = readings.kernel.budget else {
        return Vec::new();
    };
    let is_short = missed > 0 && squeezed > 0;
    of_machine(now < BUDGET || is_short, "budget", || {
        let what = if is_short {
            format!(
                "{squeezed} turns of receiving ended after {now} frames with more to do, while \
                 {missed} frames found a ring full"
            )
        } else {
            format!("a turn of receiving ends after {now} frames")
        };
        (
            what,
            sysctl("netdev_budget", (2 * BUDGET).max(now.saturating_mul(2))),
        )
    })
}

/// The kernel's own default.
const BUDGET: u32 = 300;

fn sysctl(name: &str, value: u32) -> String {
    format!("sysctl -w net.core.{name}={value}")
}

/// Something that holds for all interfaces.
fn of_machine(
    is_wrong: bool,
    rule: &'static str,
    told: impl FnOnce() -> (String, String),
) -> Vec<Finding> {
    let found = is_wrong.then(told).map(|(what, command)| Finding {
        rule,
        place: "this machine".to_owned(),
        what,
        remedy: Some(Remedy::here(command)),
    });
    found.into_iter().collect()
}
