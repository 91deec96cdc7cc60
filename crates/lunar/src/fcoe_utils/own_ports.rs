//! Ports of this program, as the kernel shows its own in sysfs: both are shown by the same views.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use fcoe_utils::instance::directory_name;
use fcoe_utils::sysfs::{ROOT, SysfsDir};
use runtime::n_port::{FcfStatus, PortStatus, RemoteStatus, UnitStatus, ports_here};

use crate::VerbError;
use crate::ls::GARBLED;

/// The running ports of this program, as they were when they were asked.
#[derive(Debug)]
pub(super) struct OwnPorts(Vec<PortStatus>);

impl OwnPorts {
    /// Those of this machine. A copy of another machine's sysfs has none.
    pub(super) fn beside(sysfs: &Path) -> Self {
        let is_here = sysfs == Path::new(ROOT);
        Self(if is_here { known_ports() } else { Vec::new() })
    }

    /// sysfs with the ports laid over it.
    pub(super) fn laid_over(&self, sysfs: &Path) -> SysfsDir {
        let root = SysfsDir::root(sysfs);
        root.with(attributes(&self.0, |interface| {
            CardFacts::of(&root, interface)
        }))
    }

    /// The port that has this name.
    pub(super) fn named(&self, name: &str) -> Option<&PortStatus> {
        let mut names = (0..self.0.len()).map(|at| name_of(&self.0, at));
        self.0.get(names.position(|known| known == name)?)
    }
}

/// The running ports. One whose answer cannot be read is told of on standard error.
fn known_ports() -> Vec<PortStatus> {
    let answers = ports_here();
    for process in answers.garbled {
        let line = format!("lunar: the answer of the port of process {process} {GARBLED}\n");
        let _ = io::stderr().write_all(line.as_bytes());
    }
    answers.told
}

/// sysfs with the running ports of this program laid over it.
pub(super) fn laid_over(sysfs: &Path) -> SysfsDir {
    OwnPorts::beside(sysfs).laid_over(sysfs)
}

/// What stands for `hostN`: the process, and the number of the port among those of the process, so
/// that it stays what it is whichever other programs begin and end.
fn name_of(ports: &[PortStatus], at: usize) -> String {
    let pid = ports[at].pid;
    let number = ports[..at].iter().filter(|port| port.pid == pid).count();
    format!("lunar-{pid}-{number}")
}

/// Refuses to change the ports of this program that are at an interface.
pub(super) fn refuse_change(sysfs: &Path, interface: &str) -> Result<(), VerbError> {
    if sysfs != Path::new(ROOT) {
        return Ok(());
    }
    let ports = known_ports();
    let Some(port) = ports.iter().find(|port| interface_of(port) == interface) else {
        return Ok(());
    };
    Err(VerbError::failed(format!(
        "{interface} has a port of {}",
        how_it_ends(interface, port)
    )))
}

/// Which program has a port of ours, and what ends the port with as little else as can be.
fn how_it_ends(interface: &str, port: &PortStatus) -> String {
    let PortStatus { program, pid, .. } = port;
    if program.ends_with(" daemon") {
        return format!(
            "{program} (PID {pid}), which its configuration gives it: take the portal at \
             {interface} from target.\"{}\" there, and lunar apply ends the port alone",
            port.port_name
        );
    }
    format!(
        "{program}, which begins and ends with that command, and looks for targets by itself: \
         kill {pid} ends it"
    )
}

/// The interface, also where frames are taken by XDP; or a cable.
fn interface_of(port: &PortStatus) -> &str {
    port.interface.as_deref().unwrap_or(&port.place)
}

/// Paths below the root of sysfs, and texts. `card` tells what its interface is like.
fn attributes(ports: &[PortStatus], card: impl Fn(&str) -> CardFacts) -> Vec<(String, String)> {
    let mut tree = Tree::default();
    for (number, port) in ports.iter().enumerate() {
        let name = name_of(ports, number);
        let interface = interface_of(port);
        let controller = format!("class/net/{}/ctlr_{name}", directory_name(interface));
        let card = card(interface);
        tree.controller(&controller, port, card.fcs_errors);
        let host = format!("{controller}/{name}");
        for dir in [
            format!("{host}/fc_host/{name}"),
            format!("class/fc_host/{name}"),
        ] {
            tree.host(&dir, port, card.speed.clone());
        }
        for (number, fcf) in port.fcfs.iter().enumerate() {
            tree.fcf(&format!("{controller}/fcf_{number}"), fcf, port.vlan);
        }
        for (number, remote) in port.remotes.iter().enumerate() {
            let rport = format!("rport-{name}-{number}");
            let class = format!("fc_remote_ports/{rport}");
            for dir in [format!("{host}/{rport}/{class}"), format!("class/{class}")] {
                tree.remote(&dir, number, remote);
            }
            let target = format!("{host}/{rport}/target{name}:0:{number}");
            for unit in &remote.units {
                tree.unit(&format!("{target}/{name}:0:{number}:{}", unit.lun), unit);
            }
        }
    }
    tree.0
}

/// Attributes that are being gathered.
#[derive(Default)]
struct Tree(Vec<(String, String)>);

impl Tree {
    fn put<const N: usize>(&mut self, dir: &str, attributes: [(&str, String); N]) {
        let paths = attributes.into_iter();
        self.0
            .extend(paths.map(|(name, text)| (format!("{dir}/{name}"), text)));
    }

    fn controller(&mut self, dir: &str, port: &PortStatus, fcs_errors: Option<String>) {
        let counts = &port.statistics;
        self.put(
            dir,
            [
                ("mode", port.mode.clone()),
                ("lesb/link_fail", counts.link_failures.to_string()),
                ("lesb/vlink_fail", counts.virtual_link_failures.to_string()),
            ],
        );
        if let Some(errors) = fcs_errors {
            self.put(dir, [("lesb/fcs_error", errors)]);
        }
    }

    fn host(&mut self, dir: &str, port: &PortStatus, speed: Option<String>) {
        let PortStatus { program, pid, .. } = port;
        let symbolic = format!("{program} (PID {pid}), {} over {}", port.role, port.place);
        let counts = &port.statistics;
        let fabric = port.fabric_name.as_deref().unwrap_or(NO_NAME);
        self.put(
            dir,
            [
                ("symbolic_name", symbolic),
                ("node_name", number(&port.node_name)),
                ("port_name", number(&port.port_name)),
                ("fabric_name", number(fabric)),
                ("maxframe_size", format!("{} bytes", port.max_frame)),
                ("port_id", number(port.fc_id.as_deref().unwrap_or("000000"))),
                ("port_state", port.state.clone()),
                (
                    "statistics/seconds_since_last_reset",
                    counts.seconds.to_string(),
                ),
                ("statistics/tx_frames", counts.tx_frames.to_string()),
                ("statistics/tx_words", (counts.tx_bytes / WORD).to_string()),
                ("statistics/rx_frames", counts.rx_frames.to_string()),
                ("statistics/rx_words", (counts.rx_bytes / WORD).to_string()),
                ("statistics/error_frames", counts.error_frames.to_string()),
                (
                    "statistics/invalid_crc_count",
                    counts.invalid_crc.to_string(),
                ),
                (
                    "statistics/link_failure_count",
                    counts.link_failures.to_string(),
                ),
            ],
        );
        if let Some(speed) = speed {
            self.put(dir, [("speed", speed)]);
        }
    }

    fn fcf(&mut self, dir: &str, fcf: &FcfStatus, vlan: Option<u16>) {
        self.put(
            dir,
            [
                ("state", "Connected".to_owned()),
                ("fabric_name", number(&fcf.fabric_name)),
                ("switch_name", number(&fcf.switch_name)),
                ("mac", fcf.mac.clone()),
                ("priority", fcf.priority.to_string()),
                ("fka_period", (fcf.fka_ms / 1000).to_string()),
                ("selected", u8::from(fcf.selected).to_string()),
                ("vlan_id", vlan.unwrap_or(0).to_string()),
            ],
        );
    }

    fn remote(&mut self, dir: &str, target: usize, remote: &RemoteStatus) {
        let state = if remote.online { "Online" } else { "Blocked" };
        self.put(
            dir,
            [
                ("roles", remote.role.clone()),
                ("node_name", number(&remote.node_name)),
                ("port_name", number(&remote.port_name)),
                ("scsi_target_id", target.to_string()),
                ("maxframe_size", format!("{} bytes", remote.max_frame)),
                ("port_id", number(&remote.fc_id)),
                ("port_state", state.to_owned()),
            ],
        );
    }

    /// A logical unit, which no block device stands for.
    fn unit(&mut self, dir: &str, unit: &UnitStatus) {
        self.put(
            dir,
            [
                ("vendor", unit.vendor.clone()),
                ("model", unit.product.clone()),
                ("rev", unit.revision.clone()),
                ("block/-/size", (unit.bytes / SECTOR).to_string()),
                ("block/-/queue/hw_sector_size", unit.block_size.to_string()),
            ],
        );
    }
}

/// A name or an address, as sysfs has it.
fn number(text: &str) -> String {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    format!("0x{}", digits.to_lowercase())
}

/// What the interface of a port tells.
#[derive(Clone, Debug, Default)]
struct CardFacts {
    /// `10 Gbit`.
    speed: Option<String>,
    /// Ethernet frames whose check sequence was wrong, which libfcoe shows in the LESB too.
    fcs_errors: Option<String>,
}

impl CardFacts {
    fn of(sysfs: &SysfsDir, interface: &str) -> Self {
        let dir = sysfs.child("class/net").child(interface);
        let told = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        let megabits = told("speed").and_then(|text| text.trim().parse().ok());
        let errors = told("statistics/rx_crc_errors");
        Self {
            speed: megabits.map(speed),
            fcs_errors: errors.map(|text| text.trim().to_owned()),
        }
    }
}

fn speed(megabits: u32) -> String {
    if megabits.is_multiple_of(1000) {
        format!("{} Gbit", megabits / 1000)
    } else {
        format!("{megabits} Mbit")
    }
}

/// A port that is in no fabric has no Fabric_Name.
const NO_NAME: &str = "0000000000000000";

/// Bytes of what sysfs counts capacities in.
const SECTOR: u64 = 512;

/// Words of Fibre Channel have four bytes.
const WORD: u64 = 4;
