//! The table of rules.
//!
//! | rule | what it finds | mended by |
//! |---|---|---|
//! | `link` | an interface that is down | `ip link set … up` |
//! | `mtu` | an interface that is too narrow for full frames | `ip link set … mtu` |
//! | `path-mtu` | full frames that do not pass, one way or both | the same, in between |
//! | `peer-mtu` | a port that takes no full frames | the same, there |
//! | `qdisc` | a queueing discipline that drops or delays frames, or holds few | `tc qdisc replace` |
//! | `rings` | rings that hold few frames, or were full | `ethtool -G` |
//! | `backlog` | a backlog that holds few frames, or was full | `sysctl -w net.core.netdev_max_backlog` |
//! | `budget` | turns of receiving that are too short | `sysctl -w net.core.netdev_budget` |
//! | `flow-control` | neither link flow control nor that of FCoE's priority, or both | `dcb pfc`, `ethtool -A` |
//! | `neighbor-pfc` | a neighbour whose flow control of FCoE's priority is off | `dcb pfc`, there |
//! | `vlan-priority` | frames that leave with another priority than FCoE's | `ip link set … type vlan` |
//! | `kernel-port` | the kernel's FCoE port in the place of ours | `…/libfcoe/parameters/destroy` |
//! | `point-to-point` | kernels that have left FIP | to begin anew, there |
//! | `losses` | frames lost in other places | what is to be said there |
//!
//! A path that is sound has no finding.

mod losses;
mod mtu;
mod peers;
mod queues;

use io::ether::PRIORITY;
use io::ether::survey::PauseReading;

use super::readings::{Hop, HopPlace, Readings};
use super::{Finding, Remedy};

/// A rule: its name, and what it finds.
#[derive(Clone, Copy)]
pub struct Rule {
    /// As it stands in a [`Finding`].
    pub name: &'static str,
    judge: fn(&Readings) -> Vec<Finding>,
}

/// All of them, in the order in which what they find is to be mended.
pub const RULES: [Rule; 14] = [
    Rule::new("link", link),
    Rule::new("mtu", mtu::own),
    Rule::new("path-mtu", mtu::path),
    Rule::new("peer-mtu", mtu::peer),
    Rule::new("qdisc", queues::qdisc),
    Rule::new("rings", queues::rings),
    Rule::new("backlog", queues::backlog),
    Rule::new("budget", queues::budget),
    Rule::new("flow-control", flow_control),
    Rule::new("neighbor-pfc", neighbour_pfc),
    Rule::new("vlan-priority", vlan_priority),
    Rule::new("kernel-port", peers::kernel_port),
    Rule::new("point-to-point", peers::point_to_point),
    Rule::new("losses", losses::elsewhere),
];

impl Rule {
    const fn new(name: &'static str, judge: fn(&Readings) -> Vec<Finding>) -> Self {
        Self { name, judge }
    }
}

/// What is wrong, in the order in which it is to be mended.
#[must_use]
pub fn judge(readings: &Readings) -> Vec<Finding> {
    let found = RULES.iter().flat_map(|rule| (rule.judge)(readings));
    found.collect()
}

impl Readings {
    /// The interfaces that all frames pass.
    fn certain(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().filter(|hop| hop.place.is_certain())
    }

    /// The MTU of the interface in question.
    fn mtu(&self) -> u32 {
        self.hops.first().map_or(0, |own| own.link.mtu)
    }
}

/// Something at an interface of this machine.
fn at(hop: &Hop, rule: &'static str, what: String, command: String) -> Finding {
    Finding {
        rule,
        place: hop.link.name.clone(),
        what,
        remedy: Some(Remedy::here(command)),
    }
}

fn link(readings: &Readings) -> Vec<Finding> {
    let is_replaced = |hop: &Hop| {
        let mut bonded = readings.certain().filter(|one| is_bonded(one));
        is_bonded(hop) && bonded.any(|one| one.link.is_up)
    };
    let down = readings.certain().filter(|hop| !hop.link.is_up);
    let down = down.filter(|hop| !is_replaced(hop));
    let found = down.map(|hop| {
        let name = &hop.link.name;
        let what = "the link is down, so no frame passes; if it stays down, check its cable";
        at(
            hop,
            "link",
            what.to_owned(),
            format!("ip link set {name} up"),
        )
    });
    found.collect()
}

fn is_bonded(hop: &Hop) -> bool {
    hop.place == HopPlace::Bonded
}

/// Whether link flow control is on in both directions.
const fn pauses(pause: PauseReading) -> bool {
    pause.rx && pause.tx
}

/// Whether these priorities, a bit each, are also FCoE's.
const fn has_fcoe(priorities: u8) -> bool {
    priorities & 1 << PRIORITY != 0
}

/// Frames of class 3 that a full queue drops are lost, unless one end can have the other wait.
fn flow_control(readings: &Readings) -> Vec<Finding> {
    let found = readings.certain().filter_map(|hop| {
        let name = &hop.link.name;
        let (what, command) = match (hop.pfc.map(|pfc| has_fcoe(pfc.enabled)), hop.pause) {
            (Some(true), Some(pause)) if pause.rx || pause.tx => (
                "both link flow control and priority flow control are on, which exclude each other",
                format!("ethtool -A {name} rx off tx off"),
            ),
            // Where there is neither, the other end knows, if any does.
            (Some(true), _) | (None, None) => return None,
            (_, Some(pause)) if pauses(pause) => return None,
            (Some(false), _) => (
                "priority flow control is off for priority 3, so a full queue drops frames of FCoE",
                format!("dcb pfc set dev {name} prio-pfc {PRIORITY}:on"),
            ),
            (None, Some(_)) => (
                "link flow control is off, so a full queue drops frames",
                format!("ethtool -A {name} rx on tx on"),
            ),
        };
        Some(at(hop, "flow-control", what.to_owned(), command))
    });
    found.collect()
}

/// What the neighbour says by DCBX. Link flow control does instead of that of a priority.
fn neighbour_pfc(readings: &Readings) -> Vec<Finding> {
    let neighbours = readings.path.iter().flat_map(|path| &path.neighbours);
    let has_pause = readings.certain().any(|hop| hop.pause.is_some_and(pauses));
    let off = neighbours.filter(|one| !has_fcoe(one.pfc) && !has_pause);
    let found = off.map(|one| Finding {
        rule: "neighbor-pfc",
        place: one.name.clone(),
        what: format!(
            "priority flow control is off for priority {PRIORITY} at this neighbor, so its full \
             queue drops frames of FCoE"
        ),
        remedy: Some(Remedy::at(
            one.name.clone(),
            format!("dcb pfc set dev PORT prio-pfc {PRIORITY}:on"),
        )),
    });
    found.collect()
}

fn vlan_priority(readings: &Readings) -> Vec<Finding> {
    let found = readings.certain().filter_map(|hop| {
        let given = hop.link.tag_priority.filter(|given| *given != PRIORITY)?;
        let name = &hop.link.name;
        let what = format!("frames carry VLAN priority {given}, so switches may drop them");
        let map = format!("egress-qos-map {PRIORITY}:{PRIORITY}");
        let command = format!("ip link set {name} type vlan {map}");
        Some(at(hop, "vlan-priority", what, command))
    });
    found.collect()
}
