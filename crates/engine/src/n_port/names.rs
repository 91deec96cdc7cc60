//! What N_Ports are called.
//!
//! An Ethernet port can have several: a server's, and one for each core of each program that uses
//! units behind it. Each needs names and an address of its own, the same ones each time, so they
//! are numbered, and the lowest number that nobody has is taken. The first has the interface's own
//! address and 20:00 before it as WWPN, the second 20:01 and an address made of that, and so on.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use ::io::ether::{Mac, Place};
use fc::wire::ethernet;
use fc::wire::names::Wwn;

/// The right to names that nobody else has, until it is dropped.
#[derive(Debug)]
pub(crate) struct Names {
    /// Of the Fibre Channel port.
    pub(crate) wwpn: Wwn,
    /// Of this machine.
    pub(crate) wwnn: Wwn,
    /// What FIP is sent from.
    pub(crate) mac: ethernet::Mac,
    _claim: Option<UnixDatagram>,
}

/// Fibre Channel ports that an interface has at the most: what VN2VN has room for in a small
/// network, and what NAA 2h names have, is more.
const PORTS_MAX: u16 = 256;

impl Names {
    /// The first that are free at this Ethernet port, whose own address that is.
    ///
    /// # Errors
    ///
    /// When all are in use.
    pub(super) fn claim(place: &Place, own: Mac) -> io::Result<Self> {
        let (number, claim) = match place {
            // Whoever has an end of a cable is alone there.
            Place::Cable(_) => (0, None),
            Place::Interface(name) | Place::Xdp(name) => free(name)?,
        };
        Ok(Self {
            wwpn: Wwn(0x2000 << 48 | u64::from(number) << 48 | low_48(own)),
            wwnn: Wwn(0x1000 << 48 | low_48(own)),
            mac: ethernet::Mac(numbered(own, number)),
            _claim: claim,
        })
    }
}

/// A number is in use as long as an abstract socket has its name, which the kernel gives back
/// however its owner ends; its names hold within a network namespace, as those of interfaces do.
fn free(interface: &str) -> io::Result<(u16, Option<UnixDatagram>)> {
    for number in 0..PORTS_MAX {
        let name = format!("lunar/fcoe/{interface}/{number}");
        let address = SocketAddr::from_abstract_name(name)?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => return Ok((number, Some(socket))),
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse => {}
            Err(cause) => return Err(cause),
        }
    }
    Err(io::Error::other(format!(
        "{interface} has {PORTS_MAX} Fibre Channel ports already: end some of them"
    )))
}

/// A locally administered address for all but the first. They differ in their low 16 bits, of which
/// VN2VN makes address identifiers.
fn numbered(mac: Mac, number: u16) -> Mac {
    if number == 0 {
        return mac;
    }
    let [a, b, c, d, e, f] = mac;
    [a | 0x02, b, c, d, e.wrapping_add(number as u8), f]
}

fn low_48([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests;
