//! Interfaces for VLANs, named as fcoe-utils names them.

use io::ether::interfaces::{EtherInterface, add_vlan};

/// Why there is no interface for a VLAN.
#[derive(Debug, thiserror::Error)]
pub enum VlanError {
    /// Linux allows 15 bytes.
    #[error("Failed to create VLAN device (name {0} is too long): give a shorter suffix (-f)")]
    LongName(String),
    /// The kernel refuses.
    #[error("Failed to create VLAN device {0}: {1}{way_out}", way_out = way_out(.1))]
    Refused(String, #[source] std::io::Error),
}

/// The command for a kernel that has VLANs as a module, which nothing loads by itself.
fn way_out(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        std::io::ErrorKind::Unsupported => ": modprobe 8021q",
        std::io::ErrorKind::PermissionDenied => ": fipvlan -c needs CAP_NET_ADMIN: run as root",
        _ => "",
    }
}

/// What `fipvlan -c` has done for a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanInterface {
    /// It was there, or the VLAN is 0, whose frames have no tag.
    Found(String),
    /// It was made.
    Made(String),
}

/// The most bytes of the name of an interface.
const NAME_MAX: usize = 15;

/// The interface of a VLAN that is there already, among all of the machine. That of VLAN 0 is the
/// interface below.
#[must_use]
pub fn existing<'a>(
    all: &'a [EtherInterface],
    below: &'a EtherInterface,
    vid: u16,
) -> Option<&'a EtherInterface> {
    if vid == 0 {
        return Some(below);
    }
    all.iter().find(|one| one.vlan == Some((below.index, vid)))
}

/// `eth0.152-fcoe`.
///
/// # Errors
/// [`VlanError::LongName`].
pub fn name(below: &str, vid: u16, suffix: &str) -> Result<String, VlanError> {
    let name = format!("{below}.{vid}{suffix}");
    if name.len() > NAME_MAX {
        return Err(VlanError::LongName(name));
    }
    Ok(name)
}

/// The interface of a VLAN, made if it is not there.
///
/// # Errors
/// See [`VlanError`].
pub fn make(
    all: &[EtherInterface],
    below: &EtherInterface,
    vid: u16,
    suffix: &str,
) -> Result<VlanInterface, VlanError> {
    if let Some(found) = existing(all, below, vid) {
        return Ok(VlanInterface::Found(found.name.clone()));
    }
    let name = name(&below.name, vid, suffix)?;
    match add_vlan(below.index, vid, &name) {
        Ok(()) => Ok(VlanInterface::Made(name)),
        Err(cause) => Err(VlanError::Refused(name, cause)),
    }
}
