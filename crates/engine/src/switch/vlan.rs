//! Whether the interface of a port can carry the VLAN of the fabric.

use ::io::ether::Place;
use runtime::n_port::interface_below_vlan;

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
    check_by(interface_below_vlan, place, vlan)
}

/// The same, by what tells the interface below that of a VLAN, and which VLAN that is.
pub(super) fn check_by(
    below: impl FnOnce(&str) -> Option<(String, u16)>,
    place: &Place,
    vlan: Option<u16>,
) -> Result<(), OtherVlan> {
    let (Some(name), Some(wanted)) = (place.interface(), vlan) else {
        return Ok(());
    };
    match below(name) {
        Some((lower, own)) if own != wanted => Err(OtherVlan {
            place: place.to_string(),
            own,
            wanted,
            lower,
        }),
        _ => Ok(()),
    }
}
