//! Which addresses an initiator can be given: those that portals are bound to, and those of this
//! machine's interfaces in place of a wildcard.

use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// The portals, each wildcard replaced by the addresses that it listens on. Loopback and link-local
/// addresses are left out of those, as they lead nowhere from another machine, unless there are no
/// others.
pub(super) fn reachable(bound: &[SocketAddr]) -> Vec<SocketAddr> {
    // Where the system does not tell, the wildcard itself is shown.
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own: Vec<_> = interfaces.iter().map(if_addrs::Interface::ip).collect();
    expand(bound, &own)
}

fn expand(bound: &[SocketAddr], own: &[IpAddr]) -> Vec<SocketAddr> {
    let mut portals = Vec::new();
    for portal in bound {
        let found = if portal.ip().is_unspecified() {
            behind(portal, own)
        } else {
            vec![*portal]
        };
        for portal in found {
            if !portals.contains(&portal) {
                portals.push(portal);
            }
        }
    }
    portals
}

/// What a wildcard stands for.
fn behind(wildcard: &SocketAddr, own: &[IpAddr]) -> Vec<SocketAddr> {
    let family = |ip: &&IpAddr| ip.is_ipv4() == wildcard.is_ipv4();
    let choose = |wanted: fn(&IpAddr) -> bool| {
        let chosen = own.iter().filter(family).filter(|ip| wanted(ip));
        let portals = chosen.map(|ip| SocketAddr::new(*ip, wildcard.port()));
        portals.collect::<Vec<_>>()
    };
    let choices = [
        choose(leads_here),
        choose(IpAddr::is_loopback),
        vec![*wildcard],
    ];
    let mut found = choices.into_iter().filter(|portals| !portals.is_empty());
    found.next().unwrap_or_default()
}

/// Whether another machine can connect to it.
fn leads_here(ip: &IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_loopback() && !is_link_local
}
