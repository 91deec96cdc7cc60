//! Where iSCSI listens, and which addresses an initiator can be given: those that portals are bound
//! to, and those of this machine's interfaces in place of a wildcard.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use ::io::tcp;
use iscsi::target::TargetLimits;

use crate::serve::options::ServeError;

#[cfg(test)]
mod tests;

/// The portals, each wildcard replaced by the addresses that it listens on. Loopback and link-local
/// addresses are left out of those, as they lead nowhere from another machine, unless there are no
/// others.
pub(super) fn reachable(bound: &[SocketAddr]) -> Vec<SocketAddr> {
    // Where the system does not tell, the wildcard itself is shown.
    expand(bound, &own_addresses())
}

/// The addresses of this machine's interfaces; none where the system does not tell.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().map(if_addrs::Interface::ip).collect()
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

/// Whether one of these is the wildcard among whose addresses the other one is: one socket alone
/// can have the port, unless both share it.
pub(super) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_wildcard = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.is_ipv4() == other.is_ipv4() && is_wildcard
}

/// The portals of this server while one is bound.
#[derive(Clone, Copy, Default)]
pub(super) struct OtherPortals<'a> {
    /// Those that are closed when the new one is served: it may overlap them, and both listen until
    /// then. Who connects to it before is let in when it is served, or cut off if it never is.
    pub(super) closing: &'a [SocketAddr],
    /// Those that stay.
    pub(super) staying: &'a [SocketAddr],
}

/// Binds a portal; also tells the port that was picked.
pub(super) fn bind(
    portal: SocketAddr,
    others: OtherPortals<'_>,
    limits: &TargetLimits,
) -> Result<(OwnedFd, SocketAddr), ServeError> {
    let sockets = tcp::TcpOptions {
        // NOP-In to an idle session becomes rarer with time (`iscsi/src/session/nop.rs`); this does
        // not.
        keepalive: Some(limits.nop_interval),
        ..tcp::TcpOptions::default()
    };
    let failed = |cause: io::Error| ServeError::Listen {
        portal,
        cause: cannot_listen(&cause),
    };
    let overlaps = |other: &&SocketAddr| overlap(**other, portal);
    if let Some(other) = others.staying.iter().find(overlaps) {
        return Err(ServeError::Listen {
            portal,
            cause: format!("the portal {other} listens there already"),
        });
    }
    let listener = if others.closing.iter().any(|old| overlap(*old, portal)) {
        tcp::listen_beside(portal, &sockets)
    } else {
        tcp::listen(portal, &sockets)
    };
    let listener = listener.map_err(failed)?;
    let bound = tcp::local_address(&listener).map_err(failed)?;
    Ok((listener, bound))
}

fn cannot_listen(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::AddrInUse => tcp::port_taken("program", "ss -ltnp"),
        io::ErrorKind::AddrNotAvailable => "no interface here has this address".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "a port below 1024 needs a privilege (CAP_NET_BIND_SERVICE)".to_owned()
        }
        _ => cause.to_string(),
    }
}
