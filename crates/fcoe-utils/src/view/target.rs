//! `fcoeadm -t` and `-l`: remote ports that are FCP targets, with their logical units.

use super::{field, text};
use crate::instance::{Disk, HostPort, Instance, RemotePort};

/// Labels of a target, and of a logical unit, with the columns of their values.
const TARGET: (usize, usize) = (4, 18);
const UNIT: (usize, usize) = (8, 20);

/// How logical units are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitStyle {
    /// As a table, a row each.
    Table,
    /// With all that is known of each.
    Full,
}

/// The targets of instances, and the logical units of those whose local port is online.
#[must_use]
pub fn targets(instances: &[Instance], style: UnitStyle) -> String {
    let mut out = String::new();
    for instance in instances {
        let Some(host) = &instance.host else {
            continue;
        };
        for port in host.remote_ports().iter().filter(|port| port.is_target()) {
            target(&mut out, &instance.interface, port);
            if host.is_online() {
                units(&mut out, host, port, style);
            }
        }
    }
    out
}

fn target(out: &mut String, interface: &str, port: &RemotePort) {
    let attributes = port.attributes();
    let told = |attribute| text(&attributes, attribute);
    let mut field = |label, value: &str| field(out, TARGET, label, value);
    field("Interface:", interface);
    field("Roles:", &told("roles"));
    field("Node Name:", &told("node_name"));
    field("Port Name:", &told("port_name"));
    field("Target ID:", &told("scsi_target_id"));
    field("MaxFrameSize:", &told("maxframe_size"));
    field("OS Device Name:", &port.name());
    field("FC-ID (Port ID):", &told("port_id"));
    field("State:", &told("port_state"));
    out.push('\n');
}

fn units(out: &mut String, host: &HostPort, port: &RemotePort, style: UnitStyle) {
    match style {
        UnitStyle::Table => table(out, &port.disks()),
        UnitStyle::Full => {
            let local = text(&host.attributes(), "port_id");
            let remote = text(&port.attributes(), "port_id");
            for disk in port.disks() {
                full(out, &disk, [&local, &remote]);
            }
        }
    }
}

fn table(out: &mut String, disks: &[Disk]) {
    out.push_str("    LUN ID  Device Name   Capacity   Block Size  Description\n");
    let dashes = [
        "-".repeat(6),
        "-".repeat(11),
        "-".repeat(10),
        "-".repeat(10),
        "-".repeat(28),
    ];
    out.push_str(&format!("    {}\n", dashes.join("  ")));
    for disk in disks {
        let row = format!(
            "{:>10}  {:<11}  {:>10}  {:>7}     {}",
            disk.lun,
            disk.device,
            capacity(disk),
            disk.block_size,
            disk.description
        );
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out.push('\n');
}

fn full(out: &mut String, disk: &Disk, [local, remote]: [&str; 2]) {
    out.push_str(&format!("    LUN #{} Information:\n", disk.lun));
    let blocks = (disk.sectors * SECTOR).checked_div(disk.block_size);
    let mut field = |label, value: &str| field(out, UNIT, label, value);
    field("OS Device Name:", &disk.device);
    field("Description:", &disk.description);
    field("Ethernet Port FCID:", local);
    field("Target FCID:", remote);
    field("Target ID:", &disk.target.to_string());
    field("LUN ID:", &disk.lun.to_string());
    field("Capacity:", &capacity(disk));
    field("Capacity in Blocks:", &blocks.unwrap_or(0).to_string());
    field("Block Size:", &format!("{} bytes", disk.block_size));
    field("Status:", "Attached");
    out.push('\n');
}

/// Bytes of what sysfs counts in, whatever the size of a block.
const SECTOR: u64 = 512;

/// `8.00 GiB`.
fn capacity(disk: &Disk) -> String {
    let mut units = ["MiB", "GiB", "TiB", "PiB"].into_iter().peekable();
    let mut size = disk.sectors as f64 * SECTOR as f64 / f64::from(1 << 20);
    let mut unit = units.next().unwrap_or_default();
    while size >= 1024.0 && units.peek().is_some() {
        size /= 1024.0;
        unit = units.next().unwrap_or_default();
    }
    format!("{size:.2} {unit}")
}
