//! Which ports have which names.

use std::collections::{BTreeMap, BTreeSet};

use crate::fabric::servers::PortLogin;
use crate::wire::ct::name_server::SymbolicName;
use crate::wire::names::{FcId, Wwn};

/// Ports by their names.
#[derive(Debug, Default)]
pub(in crate::fabric::servers) struct Nodes {
    /// The last of two that have the same WWPN.
    ports: BTreeMap<Wwn, FcId>,
    nodes: BTreeMap<Wwn, Node>,
}

#[derive(Debug, Default)]
struct Node {
    ports: BTreeSet<FcId>,
    symbolic: SymbolicName,
}

impl Nodes {
    pub(in crate::fabric::servers) fn add(&mut self, login: &PortLogin) {
        self.ports.insert(login.wwpn, login.fc_id);
        let node = self.nodes.entry(login.wwnn).or_default();
        node.ports.insert(login.fc_id);
    }

    /// A node is gone with its last port, and with it its symbolic name.
    ///
    /// Tells whether it was the only port of its WWPN.
    pub(in crate::fabric::servers) fn remove(&mut self, login: &PortLogin) -> bool {
        let is_last = self.port(login.wwpn) == Some(login.fc_id);
        if is_last {
            self.ports.remove(&login.wwpn);
        }
        if let Some(node) = self.nodes.get_mut(&login.wwnn) {
            node.ports.remove(&login.fc_id);
            if node.ports.is_empty() {
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
        self.nodes.get(&wwnn).map_or(0, |node| node.ports.len())
    }

    /// The ports of a WWNN, by address.
    pub(super) fn ports(&self, wwnn: Wwn) -> impl Iterator<Item = FcId> {
        let node = self.nodes.get(&wwnn).into_iter();
        node.flat_map(|node| node.ports.iter().copied())
    }

    /// The symbolic name of a node; an empty one if none is registered.
    pub(in crate::fabric::servers) fn symbolic(&self, wwnn: Wwn) -> SymbolicName {
        let node = self.nodes.get(&wwnn);
        node.map_or_else(SymbolicName::default, |node| node.symbolic.clone())
    }

    /// Sets it; `false` if it is the same, or there is no such node.
    pub(super) fn set_symbolic(&mut self, wwnn: Wwn, name: SymbolicName) -> bool {
        let node = self.nodes.get_mut(&wwnn);
        let other = node.filter(|node| node.symbolic != name);
        other.map(|node| node.symbolic = name).is_some()
    }
}
