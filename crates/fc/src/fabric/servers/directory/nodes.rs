//! Which ports have which names.

use std::collections::{BTreeMap, BTreeSet};

use crate::fabric::servers::PortLogin;
use crate::wire::names::{FcId, Wwn};

/// Ports by their names.
#[derive(Debug, Default)]
pub(in crate::fabric::servers) struct Nodes {
    /// The last of two that have the same WWPN.
    ports: BTreeMap<Wwn, FcId>,
    nodes: BTreeMap<Wwn, BTreeSet<FcId>>,
}

impl Nodes {
    pub(in crate::fabric::servers) fn add(&mut self, login: &PortLogin) {
        self.ports.insert(login.wwpn, login.fc_id);
        let ports = self.nodes.entry(login.wwnn).or_default();
        ports.insert(login.fc_id);
    }

    /// A node is gone with its last port. Tells whether it was the only port of its WWPN.
    pub(in crate::fabric::servers) fn remove(&mut self, login: &PortLogin) -> bool {
        let is_last = self.port(login.wwpn) == Some(login.fc_id);
        if is_last {
            self.ports.remove(&login.wwpn);
        }
        if let Some(ports) = self.nodes.get_mut(&login.wwnn) {
            ports.remove(&login.fc_id);
            if ports.is_empty() {
                self.nodes.remove(&login.wwnn);
            }
        }
        is_last
    }

    /// Names of ports and nodes.
    pub(in crate::fabric::servers) fn records(&self) -> usize {
        self.ports.len() + self.nodes.len()
    }

    /// The port of a WWPN.
    pub(super) fn port(&self, wwpn: Wwn) -> Option<FcId> {
        self.ports.get(&wwpn).copied()
    }

    /// Whether a port of this WWPN is logged in.
    pub(in crate::fabric::servers) fn has_port(&self, wwpn: Wwn) -> bool {
        self.ports.contains_key(&wwpn)
    }

    /// How many ports a WWNN has.
    pub(super) fn count(&self, wwnn: Wwn) -> usize {
        self.nodes.get(&wwnn).map_or(0, BTreeSet::len)
    }

    /// The ports of a WWNN, by address.
    pub(super) fn ports(&self, wwnn: Wwn) -> impl Iterator<Item = FcId> {
        let ports = self.nodes.get(&wwnn).into_iter();
        ports.flatten().copied()
    }
}
