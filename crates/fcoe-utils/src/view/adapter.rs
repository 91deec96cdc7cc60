//! `fcoeadm -i`: adapters, each with its port and the ports that it has by NPIV.

use super::{field, text};
use crate::hba::Adapter;
use crate::instance::{HostPort, Instance, interface_dir};
use crate::sysfs::SysfsDir;

/// Labels of the adapter, and of a port, with the columns of their values.
const ADAPTER: (usize, usize) = (4, 18);
const PORT: (usize, usize) = (8, 19);

/// What a port tells: label and attribute of `fc_host`.
const PORT_FIELDS: [(&str, &str); 8] = [
    ("Node Name:", "node_name"),
    ("Port Name:", "port_name"),
    ("Fabric Name:", "fabric_name"),
    ("Speed:", "speed"),
    ("Supported Speed:", "supported_speeds"),
    ("MaxFrameSize:", "maxframe_size"),
    ("FC-ID (Port ID):", "port_id"),
    ("State:", "port_state"),
];

/// The adapters of instances. `pci_ids` is the list of PCI vendors and devices, in the format of
/// pciutils; without one, names are unknown.
#[must_use]
pub fn adapters(sysfs: &SysfsDir, instances: &[Instance], pci_ids: &str) -> String {
    let mut out = String::new();
    for instance in instances {
        let Ok(interface) = interface_dir(sysfs, &instance.interface) else {
            continue;
        };
        adapter(&mut out, &Adapter::of(&interface, pci_ids));
        let Some(host) = &instance.host else {
            continue;
        };
        port(&mut out, host);
        for host in host.virtual_ports() {
            out.push('\n');
            port(&mut out, &host);
        }
    }
    out
}

fn adapter(out: &mut String, adapter: &Adapter) {
    let mut field = |label, value: &str| field(out, ADAPTER, label, value);
    field("Description:", &adapter.description);
    field("Revision:", &adapter.revision);
    field("Manufacturer:", &adapter.manufacturer);
    field("Serial Number:", &adapter.serial_number);
    field("Driver:", &adapter.driver);
    field("Number of Ports:", "1");
    out.push('\n');
}

fn port(out: &mut String, host: &HostPort) {
    let attributes = host.attributes();
    field(
        out,
        PORT,
        "Symbolic Name:",
        text(&attributes, "symbolic_name"),
    );
    field(out, PORT, "OS Device Name:", host.name());
    for (label, attribute) in PORT_FIELDS {
        field(out, PORT, label, text(&attributes, attribute));
    }
}
