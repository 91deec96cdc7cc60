//! What each target shows, out of an inventory whose units are there.

use std::collections::{BTreeMap, BTreeSet};

use iscsi::target::PortalGroup;
use scsi::wire::lun::Lun;

use super::units::ServedUnit;
use super::{Served, fc_ports};
use crate::inventory::{FcPortRow, Inventory, LunRow, TargetRow};
use crate::views::{LunMap, TargetViews, Views};

/// What everybody sees of an inventory whose units are there.
pub(super) fn views(served: &Served, inventory: &Inventory) -> Views {
    let mut views = Views::default();
    for (name, row) in &inventory.targets {
        let map = |luns: &[LunRow]| lun_map(&served.units, luns);
        let groups: Vec<(BTreeSet<String>, LunMap)> = row
            .groups
            .iter()
            .map(|(who, luns)| (who.clone(), map(luns)))
            .collect();
        let ports = served.portal_groups(row);
        let target = TargetViews::iscsi(name, &ports, &map(&row.luns), &groups);
        views.insert(name.clone(), target);
    }
    for name in &served.fc_ports {
        let mut rows = inventory.fc_ports.iter();
        let row = rows.find(|row: &&FcPortRow| row.port.place == name.place);
        let device = |luns: &[LunRow]| fc_ports::device(name, lun_map(&served.units, luns));
        let (luns, groups) = row.map_or((&[][..], &[][..]), |row| (&row.luns, &row.groups));
        let groups = groups.iter().map(|(who, luns)| (who.clone(), device(luns)));
        let target = TargetViews::fibre_channel(device(luns), groups.collect());
        views.insert(name.wwpn.to_string(), target);
    }
    views
}

fn lun_map(units: &BTreeMap<String, ServedUnit>, luns: &[LunRow]) -> LunMap {
    let unit = |row: &LunRow| {
        let unit = units.get(&row.unit)?.id;
        Some((Lun::from_index(row.lun), unit, row.read_only))
    };
    luns.iter().filter_map(unit).collect()
}

impl Served {
    /// The portal groups of a target, with the ports that were picked.
    pub(super) fn portal_groups(&self, row: &TargetRow) -> Vec<PortalGroup> {
        let portals = |tag| {
            let own = row.portals.iter().filter(move |portal| portal.0 == tag);
            let bound = own.flat_map(|(_, asked)| {
                let found = self.portals.iter().filter(|portal| portal.asked == *asked);
                found.map(|portal| portal.bound)
            });
            bound.collect()
        };
        let group = |(tag, port)| PortalGroup {
            tag,
            port,
            portals: portals(tag),
        };
        row.ports().into_iter().map(group).collect()
    }
}
