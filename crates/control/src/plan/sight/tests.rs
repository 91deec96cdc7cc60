//! What a plan takes initiators to see is what the cores show them: of the same trees, here by the
//! rules of this module, there by what the tree becomes for the engine.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use engine::inventory::{Inventory, LocalNode, LunRow, PlacedInventory};
use engine::views::Views;
use fc::wire::names::Wwn;
use iscsi::target::TargetLimits;
use proptest::prelude::*;
use scsi::unit::UnitId;

use super::{portal_group, view};
use crate::any;
use crate::lower::{Machine, inventory};
use crate::plan::SessionFact;
use crate::tree::{Access, Tree};

/// LUNs by their numbers: volumes, and whether they can only be read.
type Seen = BTreeMap<u16, (String, bool)>;

fn fact(target: &str, initiator: &str, portal: Option<SocketAddr>) -> SessionFact {
    SessionFact {
        target: target.to_owned(),
        initiator: initiator.to_owned(),
        portal,
    }
}

/// `None`: it may not log in.
fn planned(tree: &Tree, target: &str, initiator: &str) -> Option<Seen> {
    let fact = fact(target, initiator, None);
    let seen = view(tree, &fact)?.into_iter();
    let seen = seen.map(|(lun, (volume, access))| {
        let is_read_only = access == Access::ReadOnly;
        (lun, (volume.to_owned(), is_read_only))
    });
    Some(seen.collect())
}

/// An inventory as the cores have it: units have numbers, and portals are bound.
fn placed<T>(inventory: &Inventory, look: impl FnOnce(&PlacedInventory<'_>) -> T) -> T {
    let unit = |name: &str| {
        let at = inventory.units.keys().position(|one| one == name)?;
        Some(UnitId::first(u32::try_from(at).unwrap()))
    };
    look(&PlacedInventory {
        inventory,
        unit: &unit,
        bound: &|asked| vec![asked],
    })
}

fn shown(inventory: &Inventory, views: &Views, target: &str, initiator: &str) -> Option<Seen> {
    if let Ok(wwpn) = target.parse() {
        return shown_by_port(inventory, wwpn, initiator.parse().unwrap());
    }
    let device = views.device(target, initiator, 0)?;
    let names: Vec<_> = inventory.units.keys().collect();
    let seen = device.luns.iter().map(|(lun, unit)| {
        let is_read_only = device.read_only.contains(lun);
        let name = names[unit.index()].clone();
        (lun.index().unwrap(), (name, is_read_only))
    });
    let seen: Seen = seen.collect();
    let may_log_in = inventory.targets[target].access.admits(initiator);
    assert!(may_log_in || seen.is_empty(), "a stranger sees LUNs");
    may_log_in.then_some(seen)
}

fn shown_by_port(inventory: &Inventory, target: Wwn, initiator: Wwn) -> Option<Seen> {
    let mut ports = inventory.fc_ports.iter();
    let row = ports.find(|row| row.port.wwpn == Some(target))?;
    let mut groups = row.groups.iter();
    let own = groups.find(|(who, _)| who.contains(&initiator));
    let luns = own.map_or(&row.luns, |(_, luns)| luns);
    let lun = |lun: &LunRow| (lun.lun, (lun.unit.clone(), lun.read_only));
    let seen = luns.iter().map(lun).collect();
    row.partners.admit(initiator).then_some(seen)
}

/// The inventory of a tree that can be served.
fn served(tree: &Tree) -> Option<Inventory> {
    let inventory = inventory(tree, &Machine::default(), &Inventory::default(), |_, _| {
        true
    })
    .ok()?;
    let node = LocalNode {
        addresses: &[],
        initiator: "iqn.2026-11.org.example:us",
    };
    inventory.check(node).is_ok().then_some(inventory)
}

proptest! {
    /// Where an initiator is in two views, there is no inventory.
    #[test]
    fn the_cores_show_what_is_planned(tree in any::tree_of_views()) {
        let inventory = served(&tree);
        prop_assume!(inventory.is_some());
        let inventory = inventory.unwrap();
        let views = placed(&inventory, |placed: &PlacedInventory<'_>| placed.views());
        for target in tree.target.keys() {
            let is_port = target.parse::<Wwn>().is_ok();
            let initiators = if is_port { any::PORT_NAMES } else { any::ISCSI_NAMES };
            for initiator in initiators {
                let planned = planned(&tree, target, initiator);
                let shown = shown(&inventory, &views, target, initiator);
                prop_assert_eq!(planned, shown, "{} at {}", initiator, target);
            }
        }
    }

    #[test]
    fn a_session_is_with_the_portal_group_that_is_planned(tree in any::tree_of_views()) {
        let inventory = served(&tree);
        prop_assume!(inventory.is_some());
        let inventory = inventory.unwrap();
        let config = placed(&inventory, |placed| {
            placed.config(
                inventory.portals.clone(),
                inventory.iser.clone(),
                TargetLimits::default(),
            )
        });
        for node in &config.nodes {
            for local in ["127.0.0.1:3260", "127.0.0.3:3260", "[::1]:3261", "127.0.0.1:3261"] {
                let local: SocketAddr = local.parse().unwrap();
                let planned = portal_group(&tree, &fact(&node.name, "", Some(local)));
                let found = node.portal_group_at(local).map(|group| group.tag);
                prop_assert_eq!(planned, found, "{} at {}", local, &node.name);
            }
        }
    }
}
