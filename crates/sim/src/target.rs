//! What a simulated process serves.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use engine::change::NewUnit;
use engine::core::{ControlCore, ControlCoreParts, ControlUnit, Store};
use engine::flushes::FinalFlushes;
use engine::views::{TargetViews, Views};
use scsi::unit::{UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

use super::{Disk, Rng, WorldConfig};

pub(super) fn naa(number: u8) -> [u8; 8] {
    [0x30, 0, 0, 0, 0, 0, 0, number]
}

pub(super) fn states(setup: &WorldConfig) -> Vec<UnitState> {
    let states = setup.units.iter().enumerate();
    states.map(|(number, disk)| state(number, disk)).collect()
}

/// A unit at power on.
fn state(number: usize, disk: &Disk) -> UnitState {
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "SIMULATED".into(),
        revision: "0".into(),
        serial: format!("SIM{number}"),
        naa: naa(number as u8).to_vec(),
        removable: false,
    };
    UnitState::new(identity, disk.traits())
}

/// Every node shows all units, from LUN 0 on.
pub(super) fn views(setup: &WorldConfig) -> Views {
    let luns = (0..setup.units.len()).map(|n| (Lun::from_index(n as u16), UnitId::first(n as u32)));
    let (luns, mut views) = (luns.collect(), Views::default());
    for node in &setup.config.nodes {
        let target = TargetViews::iscsi(&node.name, &node.portal_groups, &luns, &[]);
        views.insert(node.name.clone(), target);
    }
    views
}

/// A unit, as core 0 is told of it.
#[must_use]
pub fn new_unit(id: UnitId, disk: &Disk) -> NewUnit {
    NewUnit {
        id,
        state: state(id.index(), disk),
        volume: disk.volume(),
        name: format!("disk {}", id.slot),
        key: id.slot.to_string(),
        lock: None,
    }
}

pub(super) fn control(
    setup: &WorldConfig,
    views: &Arc<Views>,
    flushes: &Arc<FinalFlushes>,
) -> ControlCore {
    let units = (0..).map(UnitId::first).zip(&setup.units);
    let units = units.map(|(id, disk)| new_unit(id, disk));
    let mut rng = Rng::new(setup.seed ^ 0x5eed);
    ControlCore::new(ControlCoreParts {
        config: Arc::new(setup.config.clone()),
        views: Arc::clone(views),
        units: units
            .map(|unit| ControlUnit::new(unit, setup.cores))
            .collect(),
        vanished: Box::new(|_| ()),
        device_came: Box::new(|| ()),
        store: Arc::new(VolatileStore::default()),
        flushes: Arc::clone(flushes),
        cores: setup.cores,
        near_core: Box::new(|_| None),
        random: Box::new(move || rng.bytes()),
        local_address: super::wire::local_address,
        segment_size: |_| 1460,
    })
}

/// A store that forgets with the world.
#[derive(Default)]
struct VolatileStore {
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Store for VolatileStore {
    fn save(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(key.to_owned(), bytes.to_vec());
        Ok(())
    }
}
