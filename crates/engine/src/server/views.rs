//! What each target shows, out of an inventory whose units are there.

use std::net::SocketAddr;

use iscsi::target::PortalGroup;

use super::{Served, fc_ports};
use crate::inventory::{FcPortRow, Inventory, LunRow, PlacedInventory, TargetRow};
use crate::views::{TargetViews, Views};

/// What everybody sees of an inventory whose units are there.
pub(super) fn views(served: &Served, inventory: &Inventory) -> Views {
    served.placed(inventory, |placed| {
        let mut views = placed.views();
        for name in &served.fc_ports {
            let mut rows = inventory.fc_ports.iter();
            let row = rows.find(|row: &&FcPortRow| name.is_of(row));
            let device = |luns: &[LunRow]| fc_ports::device(name, placed.lun_map(luns));
            let (luns, groups) = row.map_or((&[][..], &[][..]), |row| (&row.luns, &row.groups));
            let groups = groups.iter().map(|(who, luns)| (who.clone(), device(luns)));
            let target = TargetViews::fibre_channel(device(luns), groups.collect());
            views.insert(name.wwpn.to_string(), target);
        }
        views
    })
}

impl Served {
    /// What `look` makes of an inventory whose units and portals are those that are served.
    pub(super) fn placed<T>(
        &self,
        inventory: &Inventory,
        look: impl FnOnce(&PlacedInventory<'_>) -> T,
    ) -> T {
        let unit = |name: &str| Some(self.units.get(name)?.id);
        let bound = |asked: SocketAddr| {
            let found = self.portals.iter().filter(|portal| portal.asked == asked);
            found.map(|portal| portal.bound).collect()
        };
        look(&PlacedInventory {
            inventory,
            unit: &unit,
            bound: &bound,
        })
    }

    /// The portal groups of a target, with the ports that were picked.
    pub(super) fn portal_groups(&self, row: &TargetRow) -> Vec<PortalGroup> {
        self.placed(&self.inventory, |placed| placed.portal_groups(row))
    }
}
