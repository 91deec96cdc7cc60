//! Portals as they are typed, `HOST[:PORT]`, and the addresses that they stand for.

use std::net::{SocketAddr, ToSocketAddrs};

use address::{Host, HostPort};

use crate::VerbError;

/// Every address that a portal stands for.
///
/// # Errors
///
/// The message for a name that does not resolve.
pub(crate) fn addresses(HostPort { host, port }: &HostPort) -> Result<Vec<SocketAddr>, String> {
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

/// Every address to listen on.
pub(crate) fn listen(places: &[HostPort]) -> Result<Vec<SocketAddr>, VerbError> {
    let addresses: Result<Vec<_>, _> = places.iter().map(addresses).collect();
    let failed = |cause| VerbError::failed(format!("--listen: {cause}"));
    addresses.map(|all| all.concat()).map_err(failed)
}

/// A portal for SendTargets, where the initiator does the resolving (RFC 7143 §13.8): checked for
/// its form, with the port filled in.
pub(crate) fn advertised(text: &str) -> Result<String, String> {
    let portal = parse(text)?;
    portal.check_reachable()?;
    Ok(portal.to_string())
}

/// One as it was typed.
pub(crate) fn parse(text: &str) -> Result<HostPort, String> {
    text.parse()
        .map_err(|error: address::ParseError| error.one_line())
}
