//! Whether the interface of a port can carry the VLAN of the fabric.

use std::fs;

use ::io::ether::Place;

/// An interface that is that of another VLAN than the fabric's: the kernel puts its own VLAN into
/// all frames there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place}: this interface is that of VLAN {own}, and frames of VLAN {wanted} do not pass it: \
     give --vlan {own}, or use {lower}, which carries both"
)]
pub struct OtherVlan {
    place: String,
    own: u16,
    wanted: u16,
    lower: String,
}

/// Checks a port for the VLAN of the fabric. Without one, any VLAN of the kernel's is as good as
/// none.
pub(super) fn check(place: &Place, vlan: Option<u16>) -> Result<(), OtherVlan> {
    // Without VLAN interfaces there is no such file.
    let list = fs::read_to_string(LIST).unwrap_or_default();
    check_by(&list, place, vlan)
}

/// Where the kernel lists VLAN interfaces of the network namespace.
const LIST: &str = "/proc/net/vlan/config";

/// The same, by such a list.
pub(super) fn check_by(list: &str, place: &Place, vlan: Option<u16>) -> Result<(), OtherVlan> {
    let (Some(name), Some(wanted)) = (place.interface(), vlan) else {
        return Ok(());
    };
    match vlan_of(list, name) {
        Some((own, lower)) if own != wanted => Err(OtherVlan {
            place: place.to_string(),
            own,
            wanted,
            lower: lower.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The VLAN that an interface is of, and the interface that this is on. Two lines of titles come
/// first, in which no number stands.
fn vlan_of<'a>(list: &'a str, interface: &str) -> Option<(u16, &'a str)> {
    list.lines().find_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let (name, vid, lower) = (columns.next()?, columns.next()?, columns.next()?);
        (name == interface).then_some((vid.parse().ok()?, lower))
    })
}
