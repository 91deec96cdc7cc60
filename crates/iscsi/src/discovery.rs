//! SendTargets (RFC 7143 §13.3 and Appendix C): which targets there are, and where.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::keys::Misuse;
use crate::names::{self, PORTAL_GROUP};
use crate::parameters::{Parameters, Purpose};
use crate::target::Node;
use crate::text::Text;

#[cfg(test)]
mod tests;

/// Writes the answer to `SendTargets=value`: a record for each target that this session may be
/// told of. `advertise` are the addresses to tell in place of the one that the connection came
/// to; if that is a wildcard, none is told, and the initiator takes the one that it used.
///
/// A normal session is told of its own target only, also when it asks for all: Appendix C would
/// have `All` refused there, but open-source initiators send it and expect an answer.
///
/// # Errors
/// [`Misuse::Inadmissible`]: the value is neither `All`, nor empty, nor an iSCSI name.
pub fn send_targets(
    value: &str,
    parameters: &Parameters,
    advertise: &[String],
    out: &mut Text,
) -> Result<(), Misuse> {
    let addresses = addresses(parameters.endpoints.local, advertise);
    for node in asked_for(value, parameters)? {
        out.put("TargetName", &node.name);
        for address in &addresses {
            out.put("TargetAddress", address);
        }
    }
    Ok(())
}

/// The nodes that a value asks for, among those that may be told.
fn asked_for<'a>(value: &str, parameters: &'a Parameters) -> Result<Vec<&'a Arc<Node>>, Misuse> {
    let known: Vec<&Arc<Node>> = match &parameters.purpose {
        Purpose::Normal(node) => vec![node],
        Purpose::Discovery(nodes) => nodes.iter().collect(),
    };
    match value {
        "All" => Ok(known),
        // The target that the session is with; a discovery session is with none.
        "" => Ok(known
            .into_iter()
            .filter(|_| parameters.node().is_some())
            .collect()),
        _ => {
            let name = names::normalise(value).map_err(|_| Misuse::Inadmissible)?;
            Ok(known.into_iter().filter(|node| node.name == name).collect())
        }
    }
}

/// The values of TargetAddress, with the portal group tag that Appendix C asks for.
fn addresses(local: SocketAddr, advertise: &[String]) -> Vec<String> {
    let tagged = |address: &str| format!("{address},{PORTAL_GROUP}");
    if !advertise.is_empty() {
        return advertise.iter().map(|address| tagged(address)).collect();
    }
    if local.ip().is_unspecified() {
        return Vec::new();
    }
    // Without the zone of a link-local address, which is ours and means nothing elsewhere; and an
    // IPv4 address that came through an IPv6 socket is an IPv4 address.
    let plain = SocketAddr::new(local.ip().to_canonical(), local.port());
    vec![tagged(&plain.to_string())]
}
