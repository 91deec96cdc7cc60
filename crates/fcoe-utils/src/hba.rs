//! What carries an FCoE instance: an Ethernet card, as far as the machine tells of one.

use crate::pci::PciFunction;
use crate::sysfs::SysfsDir;

/// An adapter, in words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Adapter {
    pub(crate) description: String,
    pub(crate) revision: String,
    pub(crate) manufacturer: String,
    pub(crate) serial_number: String,
    /// Name and version of the driver.
    pub(crate) driver: String,
}

impl Adapter {
    /// The adapter of an interface, or of the one that it is a VLAN of. What is not known, or has
    /// no card, such as veth, is `Unknown`.
    pub(crate) fn of(interface: &SysfsDir, pci_ids: &str) -> Self {
        let below = interface.children("lower_").into_iter().next();
        let devices = [Some(interface.child("device")), below];
        let function = devices.iter().flatten().find_map(PciFunction::of);
        let function = function.as_ref();
        let (vendor, device) = function.map_or((None, None), |function| function.names(pci_ids));
        let revision = function.and_then(PciFunction::revision);
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        let driver = function.and_then(PciFunction::driver);
        let (module, version) =
            driver.map_or((None, None), |(name, version)| (Some(name), version));
        Self {
            description: or_unknown(device),
            revision: or_unknown(revision.map(|revision| format!("{revision:02x}"))),
            manufacturer: or_unknown(vendor),
            serial_number: or_unknown(function.and_then(PciFunction::serial)),
            driver: format!("{} {}", or_unknown(module), or_unknown(version)),
        }
    }
}

/// What the machine does not tell.
pub(crate) const UNKNOWN: &str = "Unknown";
