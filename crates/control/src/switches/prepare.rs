//! What can be done for switches before a change is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::switch::OpenSwitch;
use engine::switch::options::place;
use fc::fabric::zones::Zones;

use super::{HeldRow, Switches, at};
use crate::check::{Portal, portal};
use crate::tree::{SwitchRow, Tree};

/// The switches of a tree, of which some are open.
pub(crate) struct PreparedSwitches(pub(super) BTreeMap<String, PreparedSwitch>);

pub(super) struct PreparedSwitch {
    pub(super) row: SwitchRow,
    pub(super) zones: Arc<Zones>,
    /// Why these are not those that the row names, if they could not be read.
    pub(super) unread: Option<String>,
    /// It does not run, or with other options.
    pub(super) restarts: bool,
    pub(super) open: Option<OpenSwitch>,
}

impl Switches {
    /// Reads the zones of a tree, and opens the ports of switches that nothing of this daemon has
    /// yet, where `served` is the tree before.
    ///
    /// Zones of a row that stays as it is are told of by an alarm where they cannot be read, so
    /// that other changes can be made, unless nothing is to be done but to read again.
    ///
    /// # Errors
    ///
    /// All that cannot be had. No port stays open.
    pub(crate) fn prepare(
        &self,
        tree: &Tree,
        served: &Tree,
    ) -> Result<PreparedSwitches, Vec<String>> {
        let (mut prepared, mut problems) = (BTreeMap::new(), Vec::new());
        let in_use: BTreeSet<_> = places(served).collect();
        for (name, zones) in self.zone_files.read(tree) {
            let row = (name.as_str(), &tree.switch[name]);
            match self.prepare_one(row, zones, (tree == served, &in_use)) {
                Ok(one) => drop(prepared.insert(name.clone(), one)),
                Err(cause) => problems.push(format!("{}: {cause}", at(name))),
            }
        }
        if problems.is_empty() {
            Ok(PreparedSwitches(prepared))
        } else {
            Err(problems)
        }
    }

    fn prepare_one(
        &self,
        (name, row): (&str, &SwitchRow),
        zones: Result<Arc<Zones>, String>,
        (is_read_again, in_use): (bool, &BTreeSet<String>),
    ) -> Result<PreparedSwitch, String> {
        let held = self.rows().get(name).cloned();
        let (zones, unread) = match (zones, &held) {
            (Ok(zones), _) => (zones, None),
            (Err(cause), Some(held)) if held.row == *row && !is_read_again => {
                let detail = format!("{cause}; the zones of switch {name} stay as they were");
                (Arc::clone(&held.zones), Some(detail))
            }
            (Err(cause), _) => return Err(cause),
        };
        let same = |held: &HeldRow| held.row.without_zones() == row.without_zones();
        let restarts = !held.as_ref().is_some_and(same);
        let is_free = restarts && row.places.iter().all(|place| !in_use.contains(place));
        let options = self.options(name, row, &zones);
        let open = is_free.then(|| OpenSwitch::open(&options)).transpose();
        Ok(PreparedSwitch {
            row: row.clone(),
            zones,
            unread,
            restarts,
            open: open.map_err(|cause| cause.to_string())?,
        })
    }
}

/// The places of switches and targets, in all spellings.
fn places(tree: &Tree) -> impl Iterator<Item = String> {
    let switches = tree
        .switch
        .values()
        .flat_map(|row| row.places.iter().cloned());
    let portals = tree.target.values().flat_map(|row| row.portals.iter());
    let of_target = portals.filter_map(|(_, row)| match portal(&row.address) {
        Ok(Portal::Fcoe(port)) => Some(port.place.to_string()),
        _ => None,
    });
    let with_xdp = |written: String| {
        let interface = place(&written).ok();
        let interface = interface.and_then(|place| place.interface().map(ToOwned::to_owned));
        let spellings = interface.map(|name| [format!("xdp:{name}"), name]);
        spellings.into_iter().flatten().chain([written])
    };
    switches.chain(of_target).flat_map(with_xdp)
}
