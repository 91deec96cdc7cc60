//! Where iSER is taken. The first byte of a connection tells it from iSCSI, when no target has been
//! named yet: so it holds for a portal with all targets that are reached there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::Findings;
use super::target::tcp_portals;
use crate::tree::{PortalIser, Tree};

/// The portals that take iSER, each with a target whose row says so.
fn iser_portals(tree: &Tree) -> BTreeMap<SocketAddr, &str> {
    iser_portals_by(tree, PortalIser::is_taken)
}

/// Those where it is carried by something of a kind.
pub(crate) fn iser_portals_by(
    tree: &Tree,
    is_so: fn(PortalIser) -> bool,
) -> BTreeMap<SocketAddr, &str> {
    tcp_portals(tree, |row| is_so(row.iser)).collect()
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let taken = iser_portals(tree);
    if tree.daemon.iser_crc.is_some() && taken.is_empty() {
        findings.warning(
            "daemon.iser-crc",
            "no portal takes iSER",
            "leave it out, or write { address = \"192.0.2.1\", iser = true } among portals",
        );
    }
    if taken.is_empty() {
        return;
    }
    let others = tcp_portals(tree, |row| !row.iser.is_taken());
    // One a portal, however many targets are there.
    let others: BTreeMap<_, _> = others.filter(|(at, _)| taken.contains_key(at)).collect();
    for (address, name) in others {
        let other = taken[&address];
        findings.warning(
            format_args!("target.{name:?}.portals"),
            format_args!("{address} takes iSER for this target too, as target {other} wants it"),
            "write iser = true in both, or give one of them another address",
        );
    }
}

#[cfg(test)]
mod tests;
