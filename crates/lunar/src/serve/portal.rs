//! Portals as they are typed, `HOST[:PORT]`, and the addresses that they stand for.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use engine::address::{Host, HostPort};

/// Where to listen: every address that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen(Vec<SocketAddr>);

impl Listen {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().copied()
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let HostPort { host, port } = parse(text)?;
        let name = match &host {
            Host::V4(address) => return Ok(Self(vec![(*address, port).into()])),
            Host::V6(address, None) => return Ok(Self(vec![(*address, port).into()])),
            Host::V6(address, Some(interface)) => format!("{address}%{interface}"),
            Host::Name(name) => name.clone(),
        };
        let found = (name.as_str(), port)
            .to_socket_addrs()
            .map_err(|cause| format!("{name} cannot be resolved ({cause}): give an address"))?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort();
        addresses.dedup();
        Ok(Self(addresses))
    }
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
        let way_out = "give the one that initiators reach";
        return Err(format!(
            "{} is no machine's address: {way_out}",
            portal.host
        ));
    }
    if portal.port == 0 {
        return Err("port 0 is nowhere to connect to: give another".to_owned());
    }
    Ok(portal.to_string())
}

fn parse(text: &str) -> Result<HostPort, String> {
    text.parse()
        .map_err(|error: engine::address::ParseError| error.one_line())
}

#[cfg(test)]
mod tests;
