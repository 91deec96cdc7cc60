//! What N_Ports are called.
//!
//! An Ethernet port can have several: a server's, and one for each core of each program that uses
//! units behind it. Each needs names and an address of its own, the same ones each time, so they
//! are numbered. Number 0 is a server's, so that initiators and access lists find it under the same
//! name whatever else runs: it has the interface's own address, and 20:00 before that as WWPN.
//! Initiators take the lowest number from 1 on that is free, 20:01 and an address made of that, and
//! so on.

use std::io;
use std::sync::Arc;

use ::io::ether::{Mac, Place};
use fc::wire::ethernet;
use fc::wire::names::Wwn;

use super::claim::{self, Claim, Other, Taken};

/// The right to names that nobody else has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Names {
    /// Of the Fibre Channel port.
    pub(crate) wwpn: Wwn,
    /// Of this machine.
    pub(crate) wwnn: Wwn,
    /// What FIP is sent from.
    pub(crate) mac: ethernet::Mac,
    _claims: Vec<Claim>,
}

/// Whose port it is, on which its names depend.
#[derive(Clone, Debug)]
pub(crate) enum Owner {
    /// A server, whose initiators know it by its number.
    Server,
    /// A server that has this WWPN, so that any number will do.
    NamedServer(Wwn),
    /// An initiator.
    Initiator,
    /// Whoever had these names before.
    Again(Arc<Names>),
}

/// Fibre Channel ports that an interface has at the most.
const PORTS_MAX: u16 = 256;

impl Names {
    /// Names at this Ethernet port, whose own address that is.
    ///
    /// # Errors
    ///
    /// When those that the owner may have are in use.
    pub(super) fn claim(place: &Place, own: Mac, owner: &Owner) -> io::Result<Arc<Self>> {
        match (place, owner) {
            (_, Owner::Again(names)) => Ok(Arc::clone(names)),
            // Whoever has an end of a cable is alone there.
            (Place::Cable(_), _) => Ok(Arc::new(Self::numbered(own, 0))),
            (Place::Interface(name) | Place::Xdp(name), _) => {
                Self::first_free(name, own, owner).map(Arc::new)
            }
        }
    }

    fn numbered(own: Mac, number: u16) -> Self {
        Self {
            wwpn: wwpn(own, number),
            wwnn: Wwn(0x1000 << 48 | low_48(own)),
            mac: ethernet::Mac(numbered(own, number)),
            _claims: Vec::new(),
        }
    }

    fn first_free(interface: &str, own: Mac, owner: &Owner) -> io::Result<Self> {
        let take = |wwpn: Wwn| claim::take(&format!("{interface}/{wwpn}"));
        let mut claims = Vec::new();
        if let Owner::NamedServer(wwpn) = owner {
            match take(*wwpn)? {
                Taken::ByUs(claim) => claims.push(claim),
                Taken::By(other) => return Err(io::Error::other(in_use(&other, *wwpn))),
            }
        }
        let numbers = match owner {
            Owner::Server => 0..1,
            Owner::NamedServer(_) => 0..PORTS_MAX,
            Owner::Initiator | Owner::Again(_) => 1..PORTS_MAX,
        };
        let mut last = None;
        for number in numbers {
            match take(wwpn(own, number))? {
                Taken::ByUs(claim) => {
                    claims.push(claim);
                    return Ok(Self {
                        _claims: claims,
                        ..Self::numbered(own, number)
                    });
                }
                Taken::By(other) => last = Some(other),
            }
        }
        Err(io::Error::other(match (owner, last) {
            (Owner::Server, Some(other)) => format!(
                "{other} already serves there: stop it, or give this port its own name (--fcoe \
                 {interface},wwpn=WWPN)"
            ),
            _ => format!("{PORTS_MAX} Fibre Channel ports are in use there: stop some of them"),
        }))
    }
}

fn in_use(other: &Other, wwpn: Wwn) -> String {
    format!("{other} already has the WWPN {wwpn} there: stop it, or give this port another one")
}

fn wwpn(own: Mac, number: u16) -> Wwn {
    Wwn(0x2000 << 48 | u64::from(number) << 48 | low_48(own))
}

/// A locally administered address for all but the first, by a hash: the next address after one's
/// own may be that of another virtual machine. Those of one interface differ in their low 16 bits,
/// of which VN2VN makes N_Port_IDs.
fn numbered(own: Mac, number: u16) -> Mac {
    if number == 0 {
        return own;
    }
    let [a, b, c, d, ..] = mixed(low_48(own) | u64::from(number) << 48).to_be_bytes();
    let odd = mixed(low_48(own)) as u16 | 1;
    let [.., high, low] = own;
    let low_16 = u16::from_be_bytes([high, low]).wrapping_add(number.wrapping_mul(odd));
    let [e, f] = low_16.to_be_bytes();
    [a & 0xf0 | LOCAL, b, c, d, e, f]
}

/// The low bits of the first octet of an address that its administrator assigned (IEEE 802c, AAI).
const LOCAL: u8 = 0x02;

/// SplitMix64's last step: each bit of the result depends on each of the argument.
const fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn low_48([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests;
