//! `lunar fcoeadm`: FCoE instances of the kernel and ports of this program, in the words and
//! columns of Open-FCoE's fcoeadm.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args};
use fcoe_utils::change::{self, FcoeMode};
use fcoe_utils::instance::Instance;
use fcoe_utils::sysfs::{ROOT, SysfsDir};
use fcoe_utils::view::adapter::adapters;
use fcoe_utils::view::fcf::fcfs;
use fcoe_utils::view::statistics::{ROWS, RowTable};
use fcoe_utils::view::target::{UnitStyle, targets};

use super::own_ports;
use crate::units::{Choices, choice, number};
use crate::{VerbError, documents};

/// Show, create and destroy FCoE instances of the kernel, as fcoeadm of Open-FCoE does
///
/// One operation is given. Running ports of lunar are shown with the instances. They are not
/// created nor destroyed here: they begin and end with the command that serves or uses them.
#[derive(Debug, Args)]
#[command(version, disable_version_flag = true)]
#[command(group = ArgGroup::new("operation").required(true))]
pub(crate) struct FcoeadmArgs {
    /// The interface; required but for -i, -f, -t and -l, which show all
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Seconds between rows of -s and -b, 1 without
    #[arg(value_name = "SECONDS", value_parser = number(1..=86_400_u32))]
    interval: Option<u32>,

    /// Create an instance on IFACE, and start it
    #[arg(short, long, group = "operation")]
    create: bool,

    /// Destroy the instance on IFACE
    #[arg(short, long, group = "operation")]
    destroy: bool,

    /// Have the instance on IFACE log out and in again
    #[arg(short, long, group = "operation")]
    reset: bool,

    /// Have the instance on IFACE look for new targets and units
    #[arg(short = 'S', long = "Scan", group = "operation")]
    scan: bool,

    /// Show adapters and their ports
    #[arg(short, long = "interface", group = "operation")]
    interfaces: bool,

    /// Show the Fibre Channel Forwarders (FCFs) that were discovered
    #[arg(short, long = "fcf", group = "operation")]
    fcfs: bool,

    /// Show targets, with a table of their disks
    #[arg(short, long = "target", group = "operation")]
    targets: bool,

    /// Show targets, with all that is known of their disks
    #[arg(short, long = "lun", group = "operation")]
    luns: bool,

    /// Show statistics of the port on IFACE, a row each second, until interrupted
    #[arg(short, long, group = "operation")]
    stats: bool,

    /// Show the Link Error Status Block of the port on IFACE, a row each second, until interrupted
    #[arg(short = 'b', long, group = "operation")]
    lesb: bool,

    /// What the instance that -c creates speaks
    #[arg(short, long, default_value = "fabric", value_parser = choice(MODES))]
    mode: FcoeMode,

    /// Another root than /sys, such as a copy of that of another machine
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    sysfs: PathBuf,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// With or without an FCF.
pub(super) const MODES: &Choices<FcoeMode> = &[
    ("fabric", Some("With an FCF"), FcoeMode::Fabric),
    ("vn2vn", Some("Directly with other ports"), FcoeMode::Vn2vn),
];

/// Where distributions have the names of PCI vendors and devices.
const PCI_IDS: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];

pub(crate) fn run(args: &FcoeadmArgs) -> Result<ExitCode, VerbError> {
    if args.interval.is_some() && !args.stats && !args.lesb {
        return Err(VerbError::usage(
            "SECONDS is for rows: give it with -s or -b (see lunar fcoeadm --help)",
        ));
    }
    if args.interfaces || args.fcfs || args.targets || args.luns {
        return show(args);
    }
    let interface = args.interface.as_deref().ok_or_else(|| {
        VerbError::usage(
            "no interface given: this operation needs IFACE (see lunar fcoeadm --help)",
        )
    })?;
    if args.stats || args.lesb {
        rows(args, interface)
    } else {
        change(args, interface)
    }
}

fn show(args: &FcoeadmArgs) -> Result<ExitCode, VerbError> {
    let sysfs = own_ports::laid_over(&args.sysfs);
    let chosen = Instance::chosen(&sysfs, args.interface.as_deref());
    let instances = chosen.map_err(VerbError::failed)?;
    let view = if args.interfaces {
        adapters(&sysfs, &instances, &pci_ids())
    } else if args.fcfs {
        fcfs(&instances)
    } else if args.targets {
        targets(&instances, UnitStyle::Table)
    } else {
        targets(&instances, UnitStyle::Full)
    };
    documents::print(view.as_bytes())
}

/// Names of PCI vendors and devices, none where the machine has no list of them.
fn pci_ids() -> String {
    let mut lists = PCI_IDS.iter().map(fs::read);
    let list = lists.find_map(Result::ok).unwrap_or_default();
    String::from_utf8_lossy(&list).into_owned()
}

fn rows(args: &FcoeadmArgs, interface: &str) -> Result<ExitCode, VerbError> {
    let interval = args.interval.unwrap_or(1);
    let table = if args.stats {
        RowTable::Port
    } else {
        RowTable::LinkErrors
    };
    let mut since = None;
    for row in 0.. {
        let sysfs = own_ports::laid_over(&args.sysfs);
        let chosen = Instance::chosen(&sysfs, Some(interface));
        let instances = chosen.map_err(VerbError::failed)?;
        let mut lines = table.row(&instances, &mut since);
        if row % ROWS == 0 {
            lines.insert_str(0, &table.header(interface, interval));
        }
        documents::print(lines.as_bytes())?;
        thread::sleep(Duration::from_secs(interval.into()));
    }
    Ok(ExitCode::SUCCESS)
}

fn change(args: &FcoeadmArgs, interface: &str) -> Result<ExitCode, VerbError> {
    let sysfs = SysfsDir::root(&args.sysfs);
    if args.create || Instance::of(&sysfs, interface).is_err() {
        own_ports::refuse_change(&args.sysfs, interface)?;
    }
    let changed = if args.create {
        change::create(&sysfs, interface, args.mode)
    } else if args.destroy {
        change::destroy(&sysfs, interface)
    } else if args.reset {
        change::reset(&sysfs, interface)
    } else {
        change::scan(&sysfs, interface)
    };
    changed.map_err(VerbError::failed)?;
    Ok(ExitCode::SUCCESS)
}
