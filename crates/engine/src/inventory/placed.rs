//! What an inventory comes to for the cores, once its units have numbers and its portals are bound:
//! what targets show, and what logins go by. Nothing is opened here and nothing fails.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::target::{IserPortals, NodeAccess, PortalGroup, TargetConfig, TargetLimits, TargetNode};
use scsi::unit::UnitId;
use scsi::wire::lun::Lun;

use super::{Inventory, LunRow, TargetRow};
use crate::views::{LunMap, TargetViews, Views};

/// An inventory whose units have numbers and whose portals are bound.
pub struct PlacedInventory<'a> {
    /// What is served.
    pub inventory: &'a Inventory,
    /// The number of a unit; one that has none is not shown.
    pub unit: &'a dyn Fn(&str) -> Option<UnitId>,
    /// Where a portal of the inventory is bound: another port where that was 0.
    pub bound: &'a dyn Fn(SocketAddr) -> Vec<SocketAddr>,
}

impl PlacedInventory<'_> {
    /// What everybody sees of iSCSI targets. An initiator that may not log in sees nothing: where a
    /// change has revoked it, its sessions end after the views have been switched, and must not
    /// meet what is new meanwhile.
    #[must_use]
    pub fn views(&self) -> Views {
        let mut views = Views::default();
        for (name, row) in &self.inventory.targets {
            let mut groups: Vec<(BTreeSet<String>, LunMap)> = row
                .groups
                .iter()
                .map(|(who, luns)| (admitted(who, &row.access), self.lun_map(luns)))
                .collect();
            let mut usual = self.lun_map(&row.luns);
            if let Some(names) = row.access.admitted() {
                groups.push((names, std::mem::take(&mut usual)));
            }
            let ports = self.portal_groups(row);
            let target = TargetViews::iscsi(name, &ports, &usual, &groups);
            views.insert(name.clone(), target);
        }
        views
    }

    /// What logins go by, at a server that listens to these portals.
    #[must_use]
    pub fn config(
        &self,
        portals: Vec<SocketAddr>,
        iser: IserPortals,
        limits: TargetLimits,
    ) -> TargetConfig {
        let node = |(name, row): (&String, &TargetRow)| {
            Arc::new(TargetNode {
                name: name.clone(),
                alias: row.alias.clone(),
                access: row.access.clone(),
                login: row.login,
                portal_groups: self.portal_groups(row).into(),
            })
        };
        TargetConfig {
            nodes: self.inventory.targets.iter().map(node).collect(),
            portals,
            iser,
            advertise: self.inventory.advertise.clone(),
            limits,
        }
    }

    /// LUNs whose units are there.
    #[must_use]
    pub fn lun_map(&self, luns: &[LunRow]) -> LunMap {
        let lun = |row: &LunRow| {
            let unit = (self.unit)(&row.unit)?;
            Some((Lun::from_index(row.lun), unit, row.read_only))
        };
        luns.iter().filter_map(lun).collect()
    }

    /// The portal groups of a target.
    #[must_use]
    pub fn portal_groups(&self, row: &TargetRow) -> Vec<PortalGroup> {
        let portals = |tag| {
            let own = row.portals.iter().filter(move |portal| portal.0 == tag);
            own.flat_map(|(_, asked)| (self.bound)(*asked)).collect()
        };
        let group = |(tag, port)| PortalGroup {
            tag,
            port,
            portals: portals(tag),
        };
        row.ports().into_iter().map(group).collect()
    }
}

fn admitted(names: &BTreeSet<String>, access: &NodeAccess) -> BTreeSet<String> {
    let names = names.iter().filter(|name| access.admits(name));
    names.cloned().collect()
}

#[cfg(test)]
mod tests;
