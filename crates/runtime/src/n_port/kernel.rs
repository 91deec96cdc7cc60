//! FCoE ports of the kernel's own on an interface.
//!
//! Linux gives its port the same names, MAC address and N_Port_ID as a server's here. Neither hears
//! the other, as both leave frames of their own machine alone, and each answers what is meant for
//! the other: a command would be carried out by two targets.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel shows its devices.
pub(super) const SYSFS: &str = "/sys";

/// The interface on which the kernel has an FCoE port that is in the way of one at `interface`:
/// there, or on a VLAN of it, as Linux hears FIP without a tag there too.
pub(super) fn fcoe_port(sysfs: &Path, interface: &str) -> Option<String> {
    let controllers = fs::read_dir(sysfs.join("bus/fcoe/devices")).ok()?;
    // One of another network namespace does not resolve.
    let ports = controllers
        .flatten()
        .filter_map(|controller| fs::canonicalize(controller.path()).ok())
        .filter_map(|controller| controller.parent().map(Path::to_owned));
    let own = fs::canonicalize(sysfs.join("class/net").join(interface)).ok()?;
    let mut in_the_way = ports.filter(|port| *port == own || is_vlan_of(port, interface));
    let port: PathBuf = in_the_way.next()?;
    Some(port.file_name()?.to_string_lossy().into_owned())
}

fn is_vlan_of(port: &Path, interface: &str) -> bool {
    let kind = fs::read_to_string(port.join("uevent")).unwrap_or_default();
    kind.lines().any(|line| line == "DEVTYPE=vlan")
        && port.join(format!("lower_{interface}")).exists()
}

#[cfg(test)]
mod tests;
