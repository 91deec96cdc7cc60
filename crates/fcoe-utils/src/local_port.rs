//! Which Fibre Channel host is meant, of the kernel or of this program: fcping names one in several
//! ways.

use fc::wire::ethernet::Mac;
use fc::wire::names::{FcId, Wwn};

use crate::instance::Instance;
use crate::sysfs::SysfsDir;

/// A Fibre Channel host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPort {
    /// `hostN`, or `lunar-PID-N`.
    pub host: String,
    /// Its address; 0 while it has none.
    pub fc_id: FcId,
    /// The most bytes that its frames carry.
    pub max_frame: u32,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalPortError {
    /// The machine has no host at all.
    #[error(
        "No FCoE interfaces created: fcoeadm -c creates one, and lunar has one while it serves or \
         uses fcoe://"
    )]
    NoneAtAll,
    /// No host is meant by this.
    #[error(
        "FCoE interface {0} not found: name an interface, an OS device, a MAC address, WWPN or \
         FC-ID of those that fcoeadm -i shows"
    )]
    NotFound(String),
}

/// The host that is meant by the name of an interface, `hostN`, `lunar-PID-N`, a MAC address, of
/// which the WWPN 20:00:MAC is made, a WWPN, or an FC-ID in hexadecimal.
///
/// # Errors
/// See [`LocalPortError`].
pub fn find(sysfs: &SysfsDir, meant: &str) -> Result<LocalPort, LocalPortError> {
    let hosts = sysfs.child("class/fc_host").children("");
    if hosts.is_empty() {
        return Err(LocalPortError::NoneAtAll);
    }
    let by_interface = Instance::of(sysfs, meant).ok();
    let by_interface = by_interface.and_then(|instance| instance.host);
    let name = by_interface.map(|host| host.name());
    let found = hosts.iter().find(|host| match &name {
        Some(name) => host.name() == *name,
        None => is_meant(host, meant),
    });
    let found = found.ok_or_else(|| LocalPortError::NotFound(meant.to_owned()))?;
    Ok(local(found))
}

fn is_meant(host: &SysfsDir, meant: &str) -> bool {
    if host.name() == meant {
        return true;
    }
    let wwpn = meant
        .parse::<Mac>()
        .ok()
        .map(of_mac)
        .or_else(|| meant.parse().ok());
    match wwpn {
        Some(Wwn(name)) => host.number("port_name") == Some(name),
        None => fc_id(meant).is_some_and(|id| host.number("port_id") == Some(id.0.into())),
    }
}

fn local(host: &SysfsDir) -> LocalPort {
    LocalPort {
        host: host.name(),
        fc_id: FcId(host.number("port_id").unwrap_or(0) as u32),
        max_frame: max_frame(host),
    }
}

/// `2048 bytes`.
pub(crate) fn max_frame(attributes: &SysfsDir) -> u32 {
    let told = attributes.text("maxframe_size").unwrap_or_default();
    let number = told
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    number.unwrap_or(FRAME_MAX)
}

/// The most that Fibre Channel allows.
pub(crate) const FRAME_MAX: u32 = 2112;

/// The WWPN that Linux gives to the port of a MAC address.
#[must_use]
pub fn of_mac(mac: Mac) -> Wwn {
    let [a, b, c, d, e, f] = mac.0;
    Wwn(u64::from_be_bytes([0x20, 0, a, b, c, d, e, f]))
}

/// An address identifier in hexadecimal, with or without `0x`.
#[must_use]
pub fn fc_id(text: &str) -> Option<FcId> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_digits);
    number
        .filter(|number| *number <= FcId::BROADCAST.0)
        .map(FcId)
}
