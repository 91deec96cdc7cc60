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

use ::io::ether::{EtherMac, Place};
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;

use super::claim;
use crate::lockfile::{Attempt, LockFile};

/// The right to names that no other port has, until it is dropped.
#[derive(Debug)]
pub struct PortNames {
    /// Of the Fibre Channel port.
    pub wwpn: Wwn,
    /// Of this machine.
    pub wwnn: Wwn,
    /// What FIP is sent from.
    pub mac: Mac,
    _claim: Option<LockFile>,
}

/// Whose port it is, on which its names depend.
#[derive(Clone, Debug)]
pub enum PortOwner {
    /// A server, whose initiators know it by its number.
    Server,
    /// A server that has another WWPN, so that any number will do.
    NamedServer,
    /// A port of a switch, which has the interface's own address as a server has.
    Switch,
    /// An initiator.
    Initiator,
    /// The previous owner of these names.
    Again(Arc<PortNames>),
}

/// Fibre Channel ports of a user that an interface has at the most.
const PORTS_MAX: u16 = 256;

impl PortNames {
    /// Names at this Ethernet port, whose own address that is.
    ///
    /// # Errors
    ///
    /// When those that the owner may have are in use.
    pub(super) fn claim(place: &Place, own: EtherMac, owner: &PortOwner) -> io::Result<Arc<Self>> {
        let (number, claim) = match (place, owner) {
            (_, PortOwner::Again(names)) => return Ok(Arc::clone(names)),
            // An end of a cable has one port only.
            (Place::Cable(_), _) => (0, None),
            (Place::Interface(name) | Place::Xdp(name), _) => {
                let (number, claim) = PortNumbers::here()?.first_free(name, owner)?;
                (number, Some(claim))
            }
        };
        Ok(Arc::new(Self {
            wwpn: Wwn(0x2000 << 48 | u64::from(number) << 48 | Mac(own).number()),
            wwnn: Wwn(0x1000 << 48 | Mac(own).number()),
            mac: Mac(numbered(own, number)),
            _claim: claim,
        }))
    }
}

/// Where numbers are given out.
struct PortNumbers {
    folder: claim::ClaimDir,
    /// The first number of an initiator of this user.
    first: u16,
}

impl PortNumbers {
    /// A user who is not root does not see which numbers root has, nor those of other users. Such a
    /// user has other ones: 12 bits of a WWPN are free for them (NAA 2h).
    fn here() -> io::Result<Self> {
        let folder = claim::ClaimDir::of_this_user()?;
        let block = match folder.user() {
            0 => 0,
            user => 1 + user % 15,
        };
        let first = PORTS_MAX * block as u16 + 1;
        Ok(Self { folder, first })
    }

    fn first_free(&self, interface: &str, owner: &PortOwner) -> io::Result<(u16, LockFile)> {
        let has_first = !matches!(owner, PortOwner::Initiator | PortOwner::Again(_));
        let server = has_first.then_some(0);
        let others = self.first..self.first + PORTS_MAX - 1;
        let others = others.filter(|_| !matches!(owner, PortOwner::Server | PortOwner::Switch));
        let mut last = None;
        for number in server.into_iter().chain(others) {
            match self.folder.take(&format!("{interface}-{number}"))? {
                Attempt::Locked(claim) => return Ok((number, claim)),
                Attempt::HeldBy(other) => last = Some(other),
            }
        }
        Err(io::Error::other(match (owner, last) {
            (PortOwner::Server, Some(other)) => format!(
                "{other} already serves there: stop it, or give this port its own name (--fcoe \
                 {interface},wwpn=WWPN)"
            ),
            (PortOwner::Switch, Some(other)) => format!(
                "{other} already has a Fibre Channel port there: stop it{}, or give the switch \
                 another interface",
                other.stop_command()
            ),
            _ => format!("{PORTS_MAX} Fibre Channel ports are in use there: stop some of them"),
        }))
    }
}

/// A locally administered address for all but the first, by a hash: the next address after one's
/// own may be that of another virtual machine. Those of one interface differ in their low 16 bits,
/// of which VN2VN makes N_Port_IDs.
fn numbered(own: EtherMac, number: u16) -> EtherMac {
    if number == 0 {
        return own;
    }
    let [a, b, c, d, ..] = mixed(Mac(own).number() | u64::from(number) << 48).to_be_bytes();
    let odd = mixed(Mac(own).number()) as u16 | 1;
    let [.., high, low] = own;
    let low_16 = u16::from_be_bytes([high, low]).wrapping_add(number.wrapping_mul(odd));
    let [e, f] = low_16.to_be_bytes();
    [a & 0xf0 | LOCAL, b, c, d, e, f]
}

/// The low bits of the first byte of an address that its administrator assigned (IEEE 802c, AAI).
const LOCAL: u8 = 0x02;

/// SplitMix64's last step: each bit of the result depends on each of the argument.
const fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests;
