//! `lunar fipvlan`: the VLANs on which there is FCoE, in the words and columns of fcoe-utils.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::{ArgAction, Args};
use fcoe_utils::change::{self, FcoeMode};
use fcoe_utils::interfaces::{EtherInterface, interfaces, set_up};
use fcoe_utils::sysfs::{ROOT, SysfsDir};
use fcoe_utils::vlan::interface::{VlanInterface, existing, make};
use fcoe_utils::vlan::ports::{DiscoveryOptions, QueriedPort, discover};
use fcoe_utils::vlan::{ForwarderKind, table};
use rustix::io::Errno;

use super::fcoeadm::MODES;
use crate::progress_display::{INTERRUPTED, stop_on_signal};
use crate::units::{choice, number};
use crate::{VerbError, documents};

/// Find the VLANs on which FCoE is spoken, as fipvlan of Open-FCoE does
///
/// Sends a FIP VLAN Request at each interface, and prints which Fibre Channel Forwarders (FCFs)
/// have answered, with their VLANs.
#[derive(Debug, Args)]
#[command(version, disable_version_flag = true)]
pub(crate) struct FipvlanArgs {
    /// Interfaces, or cables as cable:PATH
    #[arg(value_name = "IFACE", required_unless_present = "auto")]
    interfaces: Vec<String>,

    /// Ask at all Ethernet interfaces that are neither of a VLAN nor stand for a bond
    #[arg(short, long, conflicts_with = "interfaces")]
    auto: bool,

    /// Create an interface for each VLAN that has none
    #[arg(short, long)]
    create: bool,

    /// Start FCoE of the kernel on the interfaces of these VLANs
    #[arg(short, long)]
    start: bool,

    /// What ends the names of interfaces that -c creates, after INTERFACE.VLAN
    #[arg(short = 'f', long, value_name = "SUFFIX", default_value = "-fcoe")]
    #[arg(allow_hyphen_values = true)]
    suffix: String,

    /// How often again to ask, and how many seconds to wait for a link
    #[arg(short, long, value_name = "N", default_value_t = 20, value_parser = number(0..=3600_u32))]
    link_retry: u32,

    /// Whom to ask: FCFs, or other ports
    #[arg(short, long, default_value = "fabric", value_parser = choice(MODES))]
    mode: FcoeMode,

    /// Leave interfaces up that were set up to ask and got an answer
    #[arg(short = 'u', long)]
    link_up: bool,

    /// Another root than /sys, for -s
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    sysfs: PathBuf,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    version: Option<bool>,
}

pub(crate) fn run(args: &FipvlanArgs) -> Result<ExitCode, VerbError> {
    let all = list()?;
    let names = args.names(&all)?;
    let stop = stop_on_signal();
    let mut raised = Raised::default();
    raised.set_up(&all, &names)?;
    let ports = ask(args, &names, &stop)?;
    if stop.load(Relaxed) {
        raised.set_down()?;
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if args.link_up || args.create || args.start {
        raised.keep(&ports);
    }
    let told = tell(args, &all, &ports);
    raised.set_down()?;
    let mut failed = told?;
    if ports.iter().all(|port| port.found().is_empty()) {
        failed.push(format!(
            "No Fibre Channel Forwarders or VN2VN Responders Found on {}: is FCoE enabled at the \
             other end of the link?",
            names.join(", ")
        ));
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(VerbError::failed(failed.join("\nlunar: ")))
}

impl FipvlanArgs {
    /// Where to ask.
    fn names(&self, all: &[EtherInterface]) -> Result<Vec<String>, VerbError> {
        if !self.auto {
            let cable = self.interfaces.iter().find(|name| is_cable(name));
            return match cable {
                Some(cable) if self.create || self.start => Err(VerbError::usage(format!(
                    "{cable} is a cable, on which the kernel has no interface: omit -c and -s"
                ))),
                _ => Ok(self.interfaces.clone()),
            };
        }
        let plain = all.iter().filter(|one| one.vlan.is_none() && !one.is_bond);
        let names: Vec<_> = plain.map(|one| one.name.clone()).collect();
        if names.is_empty() {
            let none = "no interfaces to perform discovery on: this machine has no Ethernet";
            return Err(VerbError::failed(none));
        }
        Ok(names)
    }
}

fn is_cable(name: &str) -> bool {
    name.starts_with("cable:")
}

fn list() -> Result<Vec<EtherInterface>, VerbError> {
    interfaces().map_err(|cause| VerbError::failed(format!("cannot list interfaces: {cause}")))
}

/// Interfaces that were down and are up to ask. They are set down again, whatever fails.
#[derive(Default)]
struct Raised(Vec<(u32, String)>);

impl Raised {
    /// Sets up what is down, as frames need a link.
    fn set_up(&mut self, all: &[EtherInterface], names: &[String]) -> Result<(), VerbError> {
        let down = all
            .iter()
            .filter(|one| names.contains(&one.name) && !one.is_up);
        for EtherInterface { index, name, .. } in down {
            set_up(*index, true).map_err(|cause| {
                VerbError::failed(format!(
                    "{name} is down and cannot be set up: {cause}: ip link set {name} up"
                ))
            })?;
            self.0.push((*index, name.clone()));
        }
        Ok(())
    }

    /// Those that got an answer stay up.
    fn keep(&mut self, ports: &[QueriedPort]) {
        let has_answer = |name: &str| {
            let mut ports = ports.iter();
            ports.any(|port| port.name() == name && !port.found().is_empty())
        };
        self.0.retain(|(_, name)| !has_answer(name));
    }

    /// Sets all of them down, and tells of the first that stays up.
    fn set_down(&mut self) -> Result<(), VerbError> {
        let failed = self.0.drain(..).filter_map(|(index, name)| {
            let cause = set_up(index, false).err()?;
            let gone = cause.raw_os_error() == Some(Errno::NODEV.raw_os_error());
            (!gone).then(|| {
                format!("{name} cannot be set down again: {cause}: ip link set {name} down")
            })
        });
        match failed.reduce(|first, _| first) {
            Some(first) => Err(VerbError::failed(first)),
            None => Ok(()),
        }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // What failed before this is told already.
        let _ = self.set_down();
    }
}

fn ask(
    args: &FipvlanArgs,
    names: &[String],
    stop: &AtomicBool,
) -> Result<Vec<QueriedPort>, VerbError> {
    let options = DiscoveryOptions {
        mode: args.mode,
        retries: args.link_retry,
    };
    let mut ports = Vec::new();
    for name in names {
        ports.push(QueriedPort::open(name, options).map_err(VerbError::failed)?);
    }
    let asked = discover(&mut ports, stop);
    asked.map_err(|cause| VerbError::failed(format!("cannot ask: {cause}")))?;
    Ok(ports)
}

/// Makes interfaces, prints what was found, starts FCoE. Gives what failed of that.
fn tell(
    args: &FipvlanArgs,
    all: &[EtherInterface],
    ports: &[QueriedPort],
) -> Result<Vec<String>, VerbError> {
    let (mut failed, mut missing) = (Vec::new(), BTreeSet::new());
    if args.create {
        each_vlan(all, ports, &mut failed, |below, vid| {
            create(args, all, below, vid).inspect_err(|_| {
                missing.insert((below.index, vid));
            })
        });
    }
    let rows = ports.iter().flat_map(|port| {
        let found = port.found().iter();
        found.map(|forwarder| (port.name(), *forwarder))
    });
    let rows: Vec<_> = rows.collect();
    let kind = match args.mode {
        FcoeMode::Fabric => ForwarderKind::Fcf,
        FcoeMode::Vn2vn => ForwarderKind::Vn2vn,
    };
    if !rows.is_empty() {
        documents::print(table(kind, &rows).as_bytes())?;
    }
    if args.start {
        let all = list()?;
        each_vlan(&all, ports, &mut failed, |below, vid| {
            // That it has no interface, and why, is told already.
            if missing.contains(&(below.index, vid)) {
                return Ok(());
            }
            start(args, &all, below, vid)
        });
    }
    Ok(failed)
}

/// Does something for each VLAN once, whatever number of forwarders have told of it.
fn each_vlan(
    all: &[EtherInterface],
    ports: &[QueriedPort],
    failed: &mut Vec<String>,
    mut act: impl FnMut(&EtherInterface, u16) -> Result<(), String>,
) {
    for port in ports {
        let Some(below) = all.iter().find(|one| one.name == port.name()) else {
            continue;
        };
        let mut vids: Vec<_> = port.found().iter().map(|one| one.vid).collect();
        vids.sort_unstable();
        vids.dedup();
        for vid in vids {
            failed.extend(act(below, vid).err());
        }
    }
}

fn create(
    args: &FipvlanArgs,
    all: &[EtherInterface],
    below: &EtherInterface,
    vid: u16,
) -> Result<(), String> {
    match make(all, below, vid, &args.suffix) {
        Ok(VlanInterface::Found(_)) => Ok(()),
        Ok(VlanInterface::Made(name)) => {
            said(&format!("Created VLAN device {name}"));
            let made = interfaces().unwrap_or_default().into_iter();
            let mut made = made.filter(|one| one.name == name);
            made.try_for_each(|one| set_up(one.index, true))
                .map_err(|cause| format!("{name} cannot be set up: {cause}"))
        }
        Err(cause) => Err(cause.to_string()),
    }
}

fn start(
    args: &FipvlanArgs,
    all: &[EtherInterface],
    below: &EtherInterface,
    vid: u16,
) -> Result<(), String> {
    let Some(interface) = existing(all, below, vid) else {
        return Err(format!(
            "VLAN {vid} has no interface on {}: give -c too",
            below.name
        ));
    };
    said(&format!("Starting FCoE on interface {}", interface.name));
    let started = change::create(&SysfsDir::root(&args.sysfs), &interface.name, args.mode);
    started.map_err(|cause| cause.to_string())
}

/// A line of what is being done; that it cannot be written stops nothing.
fn said(line: &str) {
    let _ = documents::print(format!("{line}\n").as_bytes());
}
