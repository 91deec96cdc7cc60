//! What can be done for switches before a change is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use engine::switch::options::place;
use engine::switch::{self, OpenSwitch};
use fc::fabric::zones::Zones;

use super::{Switches, at, zones_alarm};
use crate::alarm::AlarmKind;
use crate::check::{Portal, portal};
use crate::tree::{SwitchRow, Tree};

/// The switches of a tree, of which some are open.
pub(crate) struct PreparedSwitches(pub(super) BTreeMap<String, PreparedSwitch>);

pub(super) struct PreparedSwitch {
    pub(super) row: SwitchRow,
    pub(super) zones: Arc<Zones>,
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
        for (name, row) in &tree.switch {
            match self.prepare_one(name, row, (tree == served, &in_use)) {
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
        name: &str,
        row: &SwitchRow,
        (is_read_again, in_use): (bool, &BTreeSet<String>),
    ) -> Result<PreparedSwitch, String> {
        let held = self.rows().get(name).cloned();
        let zones = match (read_zones(row), &held) {
            (Ok(zones), _) => {
                self.alarms.clear_at(AlarmKind::Zones, &at(name));
                zones
            }
            (Err(cause), Some(held)) if held.row == *row && !is_read_again => {
                let detail = format!("{cause}; the zones of switch {name} stay as they were");
                self.alarms.raise(zones_alarm(name, detail));
                Arc::clone(&held.zones)
            }
            (Err(cause), _) => return Err(cause),
        };
        let same = |held: &super::HeldRow| held.row.without_zones() == row.without_zones();
        let restarts = !held.as_ref().is_some_and(same);
        let is_free = restarts && row.places.iter().all(|place| !in_use.contains(place));
        let options = self.options(name, row, &zones);
        let open = is_free.then(|| OpenSwitch::open(&options)).transpose();
        Ok(PreparedSwitch {
            row: row.clone(),
            zones,
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

/// The zones of a row.
pub(super) fn read_zones(row: &SwitchRow) -> Result<Arc<Zones>, String> {
    let Some(path) = &row.zone_file else {
        let text = row.zone_text();
        let zones = if row.open {
            Ok(Zones::open())
        } else {
            Zones::parse(&text)
        };
        return zones.map(Arc::new).map_err(|error| error.to_string());
    };
    check_readable(path)?;
    let zones = switch::read_zones(Path::new(path));
    zones.map_err(|error| error.to_string())
}

/// What is wrong in a zone file is told to whoever may change the tree, with its words. So it must
/// not be one that only root can read, such as a secret.
fn check_readable(path: &str) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|cause| format!("{path}: {cause}"))?;
    if metadata.permissions().mode() & OTHERS_READ == 0 {
        return Err(format!(
            "{path}: only its owner or group can read it, so its words must not be told: chmod o+r \
             {path}, or name a file of zones"
        ));
    }
    Ok(())
}

/// S_IROTH.
const OTHERS_READ: u32 = 0o4;
