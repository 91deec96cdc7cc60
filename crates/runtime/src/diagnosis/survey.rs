//! Asks the kernel, at the beginning and after each phase.

use std::fs;
use std::io;
use std::path::Path;

use ::io::ether::survey::{self as kernel, LinkReading, QdiscReading};

use super::readings::{
    BlastReading, Hop, KernelPort, KernelSettings, Losses, LossesByPhase, PathReadings, Readings,
};
use super::way;
use crate::n_port::problems::{SYSFS, kernel_port};

/// An interface that is being looked at.
#[derive(Debug)]
pub struct Survey {
    readings: Readings,
    /// What was lost before the phase that goes on.
    last: Losses,
}

/// What goes on between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyPhase {
    /// The way is being measured.
    Before,
    /// As many frames as possible go back and forth.
    During,
    /// Nothing of ours.
    After,
}

impl Survey {
    /// Looks for the first time. `None` if there is no such interface.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn begin(interface: &str) -> io::Result<Option<Self>> {
        let (links, qdiscs) = (kernel::links()?, kernel::qdiscs()?);
        let hops = way::hops(interface, &links).into_iter();
        let hops = hops.map(|(link, place)| Hop {
            link: link.clone(),
            place,
            qdiscs: of_link(&qdiscs, link),
            // An interface that is gone meanwhile has none.
            rings: kernel::ring_sizes(&link.name).ok().flatten(),
            pause: kernel::pause(&link.name).ok().flatten(),
            pfc: kernel::pfc(&link.name).ok().flatten(),
        });
        let hops: Vec<_> = hops.collect();
        if hops.is_empty() {
            return Ok(None);
        }
        let readings = Readings {
            interface: interface.to_owned(),
            kernel: settings(Path::new(PROC)),
            kernel_port: port_of_kernel(Path::new(SYSFS), interface),
            hops,
            ..Readings::default()
        };
        let last = counted(&readings.hops, &links, &qdiscs, Path::new(PROC));
        Ok(Some(Self { readings, last }))
    }

    /// A phase is over: what was lost meanwhile counts as lost in it.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn ends(&mut self, phase: SurveyPhase) -> io::Result<()> {
        let (links, qdiscs) = (kernel::links()?, kernel::qdiscs()?);
        let now = counted(&self.readings.hops, &links, &qdiscs, Path::new(PROC));
        let lost = now.since(&self.last);
        self.last = now;
        let LossesByPhase {
            before,
            during,
            after,
        } = &mut self.readings.losses;
        *match phase {
            SurveyPhase::Before => before,
            SurveyPhase::During => during,
            SurveyPhase::After => after,
        } = lost;
        Ok(())
    }

    /// What is known so far.
    #[must_use]
    pub const fn readings(&self) -> &Readings {
        &self.readings
    }

    /// All that is known.
    #[must_use]
    pub fn finish(self, path: Option<PathReadings>, blast: Option<BlastReading>) -> Readings {
        let mut readings = self.readings;
        if let Some(blast) = &blast {
            readings.losses.during.socket = blast.ring_full;
        }
        (readings.path, readings.blast) = (path, blast);
        readings
    }
}

fn of_link(qdiscs: &[QdiscReading], link: &LinkReading) -> Vec<QdiscReading> {
    let own = qdiscs.iter().filter(|qdisc| qdisc.index == link.index);
    own.cloned().collect()
}

/// What was ever lost at the interfaces that all frames pass.
fn counted(hops: &[Hop], links: &[LinkReading], qdiscs: &[QdiscReading], proc: &Path) -> Losses {
    let [backlog, squeezed] = softnet(proc);
    let mut losses = Losses {
        backlog,
        squeezed,
        ..Losses::default()
    };
    for hop in hops.iter().filter(|hop| hop.place.is_certain()) {
        let index = hop.link.index;
        if let Some(link) = links.iter().find(|link| link.index == index) {
            losses.missed += link.losses.missed;
            losses.too_long += link.losses.too_long;
            losses.damaged += link.losses.damaged;
            losses.received += link.losses.received;
            losses.transmitted += link.losses.transmitted;
        }
        // What those below drop is counted at the top, too.
        let own = qdiscs.iter().filter(|qdisc| qdisc.index == index);
        losses.qdisc += own.map(|qdisc| qdisc.dropped).max().unwrap_or_default();
    }
    losses
}

/// Frames that found the backlog full, and turns that ended with more to do, of all processors: the
/// second and third column, in hexadecimal.
pub(super) fn softnet(proc: &Path) -> [u64; 2] {
    let told = fs::read_to_string(proc.join("net/softnet_stat")).unwrap_or_default();
    let column = |number: usize| {
        let cells = told.lines().map(|line| line.split_whitespace().nth(number));
        let numbers = cells.map(|cell| u64::from_str_radix(cell?, 16).ok());
        numbers.flatten().sum()
    };
    [column(1), column(2)]
}

pub(super) fn settings(proc: &Path) -> KernelSettings {
    let setting = |name: &str| {
        let told = fs::read_to_string(proc.join("sys/net/core").join(name));
        told.ok()?.trim().parse().ok()
    };
    KernelSettings {
        budget: setting("netdev_budget"),
        max_backlog: setting("netdev_max_backlog"),
    }
}

/// The kernel's FCoE port on an interface or a VLAN of it.
pub(super) fn port_of_kernel(sysfs: &Path, interface: &str) -> Option<KernelPort> {
    let on = kernel_port(sysfs, interface)?;
    let net = sysfs.join("class/net").join(&on);
    Some(KernelPort {
        is_point_to_point: is_point_to_point(&net),
        interface: on,
    })
}

/// Whether a port below this device has one of the addresses that Linux takes point-to-point
/// (`FC_LOCAL_PTP_FID_LO`, `_HI` of its libfc). A fabric of domain 1 gives them to its ports, too,
/// so that a port that has selected an FCF is none.
fn is_point_to_point(net: &Path) -> bool {
    let below = |folder: &Path, begins: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|one| one.file_name().to_string_lossy().starts_with(begins));
        named.map(|one| one.path()).collect::<Vec<_>>()
    };
    let is_in_fabric = |controller: &Path| {
        let fcfs = below(controller, "fcf_").into_iter();
        let mut selected = fcfs.map(|fcf| fs::read_to_string(fcf.join("selected")));
        selected.any(|told| told.is_ok_and(|told| told.trim() == "1"))
    };
    let hosts = below(net, "ctlr_")
        .into_iter()
        .filter(|controller| !is_in_fabric(controller))
        .flat_map(|one| below(&one, "host"));
    let fc_hosts = hosts.flat_map(|host| below(&host.join("fc_host"), "host"));
    let mut addresses = fc_hosts.map(|host| fs::read_to_string(host.join("port_id")));
    addresses.any(|address| address.is_ok_and(|told| POINT_TO_POINT.contains(&told.trim())))
}

const POINT_TO_POINT: [&str; 2] = ["0x010101", "0x010102"];

/// Where the kernel shows settings and statistics.
const PROC: &str = "/proc";
