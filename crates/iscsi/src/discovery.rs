//! SendTargets (RFC 7143 §13.3 and Appendix C): which targets there are, and where.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::keys::KeyMisuse;
use crate::names::{self, PORTAL_GROUP};
use crate::parameters::{Parameters, SessionPurpose};
use crate::target::{PortalGroup, TargetConfig, TargetNode, plain};
use crate::text::Text;

#[cfg(test)]
mod tests;

/// Writes the answer to `SendTargets=value`: a record for each target that this session may be
/// told of, with every portal of that target that the initiator can use, so that it finds all paths
/// by one discovery. A target that it cannot reach at all is left out, as one without an address
/// would be taken to be here (Appendix C). Addresses to advertise take the place of the portals.
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
    let local = parameters.endpoints.local;
    let everywhere = portals(Some(local), plain(local), &config.portals);
    for node in asked_for(value, parameters)? {
        let addresses = addresses(node, local, config, &everywhere);
        if !addresses.is_empty() || node.portal_group_at(local).is_some() {
            out.put("TargetName", &node.name);
        }
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

/// The values of TargetAddress, with the portal group tags that Appendix C asks for; the portal
/// group that the initiator is connected to comes first. `everywhere` are the portals of a node
/// that is reached at all of them.
fn addresses(
    node: &TargetNode,
    local: SocketAddr,
    config: &TargetConfig,
    everywhere: &[SocketAddr],
) -> Vec<String> {
    let here = node.portal_group_at(local);
    let is_here = |group: &&PortalGroup| here.is_some_and(|here| std::ptr::eq(here, *group));
    let others = node.portal_groups.iter().filter(|group| !is_here(group));
    let mut groups = here.into_iter().chain(others);
    if !config.advertise.is_empty() {
        let tag = groups.next().map_or(PORTAL_GROUP, |group| group.tag);
        let advertised = config.advertise.iter();
        return advertised
            .map(|address| format!("{address},{tag}"))
            .collect();
    }
    let told = groups.flat_map(|group| {
        let first = Some(local).filter(|_| is_here(&group));
        let portals = match &group.portals[..] {
            [] => everywhere.to_vec(),
            own => portals(first, plain(local), own),
        };
        let tagged = |portal| format!("{portal},{}", group.tag);
        portals.into_iter().map(tagged).collect::<Vec<_>>()
    });
    told.collect()
}

/// The portals that an initiator connected to `own` can use, after the `first`. Empty if that is a
/// wildcard: the initiator then keeps the address that it used.
fn portals(first: Option<SocketAddr>, own: SocketAddr, bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut portals = Vec::new();
    let others = bound
        .iter()
        .filter_map(|portal| usable(own, plain(*portal)));
    for portal in first.map(plain).into_iter().chain(others) {
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
