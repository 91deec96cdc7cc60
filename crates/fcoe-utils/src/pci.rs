//! A function of a PCI device: its configuration space (PCI Express Base Specification, clauses
//! Configuration Space and Device Serial Number), and the list of names that pciutils keeps.

use crate::sysfs::SysfsDir;

/// A PCI function.
#[derive(Debug)]
pub(crate) struct PciFunction {
    dir: SysfsDir,
    config: Vec<u8>,
}

impl PciFunction {
    /// The function that a device belongs to: the device itself, or the nearest directory above it
    /// that is named by an address of PCI.
    pub(crate) fn of(device: &SysfsDir) -> Option<Self> {
        let device = device.resolved()?;
        let mut above = device.path().ancestors().map(SysfsDir::root);
        let dir = above.find(|dir| is_address(&dir.name()))?;
        let config = dir.bytes("config").unwrap_or_default();
        Some(Self { dir, config })
    }

    /// What its vendor and it are called in a list in the format of `pci.ids`: a line a vendor,
    /// below it indented lines of its devices.
    pub(crate) fn names(&self, ids: &str) -> (Option<String>, Option<String>) {
        let id = |attribute| self.dir.number(attribute).map(|id| format!("{id:04x}  "));
        let (Some(vendor), Some(device)) = (id("vendor"), id("device")) else {
            return (None, None);
        };
        let mut lines = ids.lines();
        let vendor = lines.find_map(|line| line.strip_prefix(&vendor));
        let mut devices = lines.take_while(|line| line.starts_with(['\t', '#']));
        let device = devices.find_map(|line| line.strip_prefix('\t')?.strip_prefix(&device));
        (vendor.map(str::to_owned), device.map(str::to_owned))
    }

    /// Its revision.
    pub(crate) fn revision(&self) -> Option<u8> {
        self.config.get(REVISION).copied()
    }

    /// The serial number that PCI Express has, as an Ethernet card derives it from its MAC address:
    /// without the two bytes in the middle. Only root can read so much of the configuration space.
    pub(crate) fn serial(&self) -> Option<String> {
        let at = self.serial_capability()?;
        let (low, high) = (self.word(at + 4)?, self.word(at + 8)?);
        let [a, b, c, _] = high.to_be_bytes();
        let [_, d, e, f] = low.to_be_bytes();
        Some(format!("{a:02X}{b:02X}{c:02X}{d:02X}{e:02X}{f:02X}"))
    }

    /// Where the capability Device Serial Number is. Every capability takes a word at least, so
    /// there are no more than [`CAPABILITIES_MAX`], whatever the chain says.
    fn serial_capability(&self) -> Option<usize> {
        let mut at = EXTENDED;
        for _ in 0..CAPABILITIES_MAX {
            let header = self.word(at)?;
            if header & 0xffff == DEVICE_SERIAL_NUMBER {
                return Some(at);
            }
            at = (header >> 20) as usize;
            if at < EXTENDED {
                return None;
            }
        }
        None
    }

    /// Four bytes of the configuration space, which is little-endian.
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.config.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// The module of its driver, with the version that the module tells, if any.
    pub(crate) fn driver(&self) -> Option<(String, Option<String>)> {
        let module = self.dir.child("driver/module").resolved()?;
        Some((module.name(), module.text("version")))
    }
}

/// Whether a name is an address such as `0000:00:03.0`.
fn is_address(name: &str) -> bool {
    let digits = |len: usize, text: &str| {
        text.len() == len && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let parts: Vec<_> = name.split([':', '.']).collect();
    let [domain, bus, device, function] = parts[..] else {
        return false;
    };
    domain.len() >= 4 && digits(2, bus) && digits(2, device) && digits(1, function)
}

/// Where the configuration space has the revision, and where its extended capabilities begin.
const REVISION: usize = 0x08;
const EXTENDED: usize = 0x100;

const DEVICE_SERIAL_NUMBER: u32 = 0x0003;
const CAPABILITIES_MAX: usize = 1024;
