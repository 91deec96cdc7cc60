//! SendTargets (RFC 7143 §13.3 and Appendix C): which targets there are, and where.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::keys::KeyMisuse;
use crate::names::{self, PORTAL_GROUP};
use crate::parameters::{Parameters, SessionPurpose};
use crate::target::{TargetConfig, TargetNode};
use crate::text::Text;

#[cfg(test)]
mod tests;

/// Writes the answer to `SendTargets=value`: a record for each target that this session may be
/// told of, with every portal that its initiator can use, so that it finds all paths by one
/// discovery. Addresses to advertise take the place of the portals.
///
/// A normal session is told of its own target only, also when it asks for all: Appendix C would
/// have `All` refused there, but open-source initiators send it and expect an answer.
///
/// # Errors
/// [`KeyMisuse::Inadmissible`]: the value is neither `All`, nor empty, nor an iSCSI name.
pub fn send_targets(
    value: &str,
    parameters: &Parameters,
    config: &TargetConfig,
    out: &mut Text,
) -> Result<(), KeyMisuse> {
    let addresses = addresses(parameters.endpoints.local, config);
    for node in asked_for(value, parameters)? {
        out.put("TargetName", &node.name);
        for address in &addresses {
            out.put("TargetAddress", address);
        }
    }
    Ok(())
}

/// The nodes that a value asks for, among those that may be told.
fn asked_for<'a>(
    value: &str,
    parameters: &'a Parameters,
) -> Result<Vec<&'a Arc<TargetNode>>, KeyMisuse> {
    let known: Vec<&Arc<TargetNode>> = match &parameters.purpose {
        SessionPurpose::Normal(node) => vec![node],
        SessionPurpose::Discovery(nodes) => nodes.iter().collect(),
    };
    match value {
        "All" => Ok(known),
        // The target that the session is with; a discovery session is with none.
        "" => Ok(known
            .into_iter()
            .filter(|_| parameters.node().is_some())
            .collect()),
        _ => {
            let name = names::normalise(value).map_err(|_| KeyMisuse::Inadmissible)?;
            Ok(known.into_iter().filter(|node| node.name == name).collect())
        }
    }
}

/// The values of TargetAddress, with the portal group tag that Appendix C asks for.
fn addresses(local: SocketAddr, config: &TargetConfig) -> Vec<String> {
    let tagged = |address: String| format!("{address},{PORTAL_GROUP}");
    if !config.advertise.is_empty() {
        return config.advertise.iter().cloned().map(tagged).collect();
    }
    let plain = portals(local, &config.portals).into_iter();
    plain.map(|portal| tagged(portal.to_string())).collect()
}

/// The portals that an initiator connected to `local` can use, that one first. Empty if it is a
/// wildcard: the initiator then keeps the address that it used.
fn portals(local: SocketAddr, bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let own = plain(local);
    let mut portals = Vec::new();
    let others = bound
        .iter()
        .filter_map(|portal| usable(own, plain(*portal)));
    for portal in std::iter::once(own).chain(others) {
        if !portal.ip().is_unspecified() && !portals.contains(&portal) {
            portals.push(portal);
        }
    }
    portals
}

/// A portal as the initiator can use it. Only this host reaches loopback addresses, and it uses
/// them only if it came to one. A link-local address is of use on its own link alone, which need
/// not be the initiator's. A wildcard listens where the initiator came to.
fn usable(own: SocketAddr, portal: SocketAddr) -> Option<SocketAddr> {
    let link_local = match portal.ip() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if portal.ip().is_unspecified() {
        let same_family = portal.is_ipv4() == own.is_ipv4();
        return same_family.then(|| SocketAddr::new(own.ip(), portal.port()));
    }
    let reachable = !link_local && portal.ip().is_loopback() <= own.ip().is_loopback();
    reachable.then_some(portal)
}

/// Without the zone of a link-local address, which is ours and means nothing elsewhere; and an IPv4
/// address that came through an IPv6 socket is an IPv4 address.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
