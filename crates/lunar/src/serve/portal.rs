//! Portals as they are typed, `HOST[:PORT]`, and the addresses that they stand for.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use address::{Host, HostPort};

use crate::VerbError;

/// A place on the network, by the name or the address that was typed.
#[derive(Clone, Debug)]
pub(crate) struct ListenAddress(HostPort);

impl ListenAddress {
    /// Every address that it stands for.
    ///
    /// # Errors
    ///
    /// The message for a name that does not resolve.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let HostPort { host, port } = &self.0;
        let name = match host {
            Host::V4(address) => return Ok(vec![(*address, *port).into()]),
            Host::V6(address, None) => return Ok(vec![(*address, *port).into()]),
            Host::V6(address, Some(interface)) => format!("{address}%{interface}"),
            Host::Name(name) => name.clone(),
        };
        let found = (name.as_str(), *port).to_socket_addrs().map_err(|cause| {
            format!("{name} cannot be resolved ({cause}): check its spelling, or give an address")
        })?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort();
        addresses.dedup();
        Ok(addresses)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Self)
    }
}

/// Every address to listen on.
pub(crate) fn listen(places: &[ListenAddress]) -> Result<Vec<SocketAddr>, VerbError> {
    let addresses: Result<Vec<_>, _> = places.iter().map(ListenAddress::addresses).collect();
    let failed = |cause| VerbError::failed(format!("--listen: {cause}"));
    addresses.map(|all| all.concat()).map_err(failed)
}

/// A portal for SendTargets, where the initiator does the resolving (RFC 7143 §13.8): checked for
/// its form, with the port filled in.
pub(crate) fn advertised(text: &str) -> Result<String, String> {
    let portal = parse(text)?;
    let nowhere = match portal.host {
        Host::V4(ip) => ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast(),
        Host::V6(ip, _) => ip.is_unspecified() || ip.is_multicast(),
        Host::Name(_) => false,
    };
    if nowhere {
        let way_out = "give one that initiators can reach";
        return Err(format!(
            "{} is not the address of a machine: {way_out}",
            portal.host
        ));
    }
    if portal.port == 0 {
        return Err("port 0 cannot be connected to: give another port".to_owned());
    }
    Ok(portal.to_string())
}

fn parse(text: &str) -> Result<HostPort, String> {
    text.parse()
        .map_err(|error: address::ParseError| error.one_line())
}
