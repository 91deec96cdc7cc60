//! A target node and its portal groups (RFC 7143 §4.1.1).

use std::net::SocketAddr;
use std::sync::Arc;

use super::{NodeAccess, NodeLogin};
use crate::names::PORTAL_GROUP;

#[cfg(test)]
mod tests;

/// A target node: one SCSI target device, with a SCSI target port for each portal group.
#[derive(Clone, Debug)]
pub struct TargetNode {
    /// iSCSI name, normalised.
    pub name: String,
    /// TargetAlias, if any.
    pub alias: Option<String>,
    /// Which initiators may log in.
    pub access: NodeAccess,
    /// What it negotiates with them.
    pub login: NodeLogin,
    /// Where they may, by portal group tag.
    pub portal_groups: Arc<[PortalGroup]>,
}

/// A portal group of a node: a SCSI target port (RFC 7143 §4.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortalGroup {
    /// TargetPortalGroupTag.
    pub tag: u16,
    /// RELATIVE TARGET PORT IDENTIFIER; 1 and up.
    pub port: u16,
    /// Where it is reached; if empty, at every portal of the server.
    pub portals: Vec<SocketAddr>,
}

impl TargetNode {
    /// A node with one portal group that has every portal of the server.
    #[must_use]
    pub fn new(name: String, access: NodeAccess) -> Self {
        Self {
            name,
            alias: None,
            access,
            login: NodeLogin::default(),
            portal_groups: [PortalGroup::everywhere()].into(),
        }
    }

    /// The portal group that a connection to this address of ours is with; `None` where the node
    /// has no portal there.
    #[must_use]
    pub fn portal_group_at(&self, local: SocketAddr) -> Option<&PortalGroup> {
        self.portal_groups.iter().find(|group| group.has(local))
    }

    /// RELATIVE TARGET PORT IDENTIFIER of the portal group with this tag.
    #[must_use]
    pub fn port(&self, tag: u16) -> Option<u16> {
        let mut groups = self.portal_groups.iter();
        groups
            .find(|group| group.tag == tag)
            .map(|group| group.port)
    }
}

impl PortalGroup {
    /// The one of a node that is reached at every portal of the server.
    #[must_use]
    pub const fn everywhere() -> Self {
        Self {
            tag: PORTAL_GROUP,
            port: PORTAL_GROUP,
            portals: Vec::new(),
        }
    }

    fn has(&self, local: SocketAddr) -> bool {
        self.portals.is_empty() || listens(&self.portals, local)
    }
}

/// Whether one of these portals takes connections to an address of ours.
#[must_use]
pub fn listens(portals: &[SocketAddr], local: SocketAddr) -> bool {
    let local = plain(local);
    portals.iter().any(|portal| takes(plain(*portal), local))
}

/// A wildcard takes connections to all addresses; `[::]` those to IPv4 addresses, too.
fn takes(portal: SocketAddr, local: SocketAddr) -> bool {
    let is_wildcard = portal.ip().is_unspecified() && (portal.is_ipv6() || local.is_ipv4());
    portal.port() == local.port() && (is_wildcard || portal.ip() == local.ip())
}

/// Without the zone of a link-local address, which is ours and means nothing elsewhere; and an IPv4
/// address that came through an IPv6 socket is an IPv4 address.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
