//! The ports that are known, by N_Port_ID and by name.

use std::collections::BTreeMap;

use crate::wire::names::{FcId, Wwn};

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPort {
    pub(super) wwpn: Wwn,
    /// Whether the name server has listed it among the ports of FCP. Otherwise it has logged in to
    /// us.
    pub(super) is_listed: bool,
    /// Whether the name server has told that it is a target; `None` if it has told nothing of FCP.
    pub(super) is_target: Option<bool>,
}

/// Those that were found and not lost.
#[derive(Debug, Default)]
pub(super) struct KnownPorts {
    by_id: BTreeMap<FcId, KnownPort>,
    by_name: BTreeMap<Wwn, FcId>,
}

impl KnownPorts {
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_id.len() >= MAX_PORTS
    }

    pub(super) fn has(&self, fc_id: FcId) -> bool {
        self.by_id.contains_key(&fc_id)
    }

    pub(super) fn name(&self, fc_id: FcId) -> Option<Wwn> {
        self.by_id.get(&fc_id).map(|port| port.wwpn)
    }

    /// Under which N_Port_ID a name is known.
    pub(super) fn id(&self, wwpn: Wwn) -> Option<FcId> {
        self.by_name.get(&wwpn).copied()
    }

    pub(super) fn insert(&mut self, fc_id: FcId, port: KnownPort) {
        self.by_id.insert(fc_id, port);
        self.by_name.insert(port.wwpn, fc_id);
    }

    /// Whether it was known.
    pub(super) fn remove(&mut self, fc_id: FcId) -> bool {
        let Some(port) = self.by_id.remove(&fc_id) else {
            return false;
        };
        self.by_name.remove(&port.wwpn);
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FcId, KnownPort)> {
        self.by_id.iter().map(|(fc_id, port)| (*fc_id, *port))
    }

    /// Whether it is known as something else than a target.
    pub(super) fn is_no_target(&self, fc_id: FcId) -> bool {
        let port = self.by_id.get(&fc_id);
        port.is_some_and(|port| port.is_target == Some(false))
    }

    /// What the name server tells of a port that is known.
    pub(super) fn learn(&mut self, fc_id: FcId, is_target: Option<bool>) {
        if let Some(port) = self.by_id.get_mut(&fc_id) {
            (port.is_listed, port.is_target) = (true, is_target);
        }
    }

    pub(super) fn list(&mut self, fc_id: FcId) {
        if let Some(port) = self.by_id.get_mut(&fc_id) {
            port.is_listed = true;
        }
    }
}

/// How many ports of a fabric are known at most.
pub(super) const MAX_PORTS: usize = 4096;
