//! From options to what will be served: targets, LUNs, their volumes and their identities.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use block::volume::Volume;
use iscsi::names;
use iscsi::target::{Access, Config, Node, PROTOCOL_LEVEL};
use scsi::nexus::TargetDevice;
use scsi::statistics::{Gauge, Usage};
use scsi::unit::{UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

use super::options::{Error, Options};
use crate::address::{Address, OpenError, OpenOptions};
use crate::identity::{Designation, Origin};

/// A logical unit to be.
#[derive(Debug)]
pub(super) struct Unit {
    /// The address of its volume, as it was given.
    pub(super) written: String,
    pub(super) address: Address,
    /// The name of its target.
    pub(super) target: String,
    pub(super) lun: u16,
}

impl Unit {
    /// Names it over restarts, in the state directory.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.target, self.lun, self.written)
    }

    /// Its state at power on.
    pub(super) fn state(&self, options: &Options, volume: &Arc<dyn Volume>) -> UnitState {
        let Designation { serial, naa } = self.designation(options, &**volume);
        let text = |given: &Option<String>, default: &str| {
            given.clone().unwrap_or_else(|| default.to_owned())
        };
        let identity = UnitIdentity {
            vendor: text(&options.units.vendor, "LUNAR"),
            product: text(&options.units.product, "VOLUME"),
            revision: revision(env!("CARGO_PKG_VERSION")),
            serial,
            naa: naa.to_vec(),
            removable: options.units.removable,
        };
        let state = UnitState::new(identity, volume.traits());
        state.statistics.set_gauge(VolumeGauge(Arc::clone(volume)));
        state
    }

    fn designation(&self, options: &Options, volume: &dyn Volume) -> Designation {
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let random = volume.is_empty_at_start().then(super::random);
        let origin = Origin {
            machine: machine.trim(),
            target: &self.target,
            lun: self.lun,
            volume: &self.written,
            random,
            serial: options.units.serial.as_deref(),
        };
        origin.designation()
    }
}

/// Asks a volume what LOG SENSE is asked.
#[derive(Debug)]
struct VolumeGauge(Arc<dyn Volume>);

impl Gauge for VolumeGauge {
    fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }
}

/// What INQUIRY has room for.
fn revision(version: &str) -> String {
    let cut: String = version.chars().take(4).collect();
    cut.trim_end_matches('.').to_owned()
}

/// Parses every address and name: nothing is tried before all of them are right.
pub(super) fn units(options: &Options) -> Result<Vec<Unit>, Error> {
    let volumes = options.volumes.iter().enumerate();
    volumes
        .map(|(number, written)| unit(options, number as u16, written))
        .collect()
}

fn unit(options: &Options, number: u16, written: &str) -> Result<Unit, Error> {
    let address = written.parse()?;
    let (target, lun) = match options.target_per_volume {
        true => (format!("{}:{number}", options.iqn), 0),
        false => (options.iqn.clone(), number),
    };
    let target = name(&target)?;
    Ok(Unit {
        written: written.to_owned(),
        address,
        target,
        lun,
    })
}

fn name(given: &str) -> Result<String, Error> {
    names::normalise(given).map_err(|cause| Error::Name {
        name: given.to_owned(),
        cause: cause.to_string(),
    })
}

/// Opens the volume of every unit, or none.
pub(super) fn open(units: &[Unit], options: &OpenOptions) -> Result<Vec<Arc<dyn Volume>>, Error> {
    let open = |unit: &Unit| {
        let opened = unit.address.open(options);
        opened.map_err(|error| cannot_open(unit, &error))
    };
    units.iter().map(open).collect()
}

fn cannot_open(unit: &Unit, error: &OpenError) -> Error {
    let cause = match error.address == unit.address.to_string() {
        true => error.cause.to_string(),
        // It is about a volume within.
        false => error.to_string(),
    };
    Error::Open {
        address: unit.written.clone(),
        cause,
    }
}

/// The target nodes as iSCSI knows them.
pub(super) fn config(options: &Options, units: &[Unit]) -> Result<Config, Error> {
    let allow = options.allowed_names().into_iter().map(name);
    let allow = allow.collect::<Result<BTreeSet<_>, _>>()?;
    let access = Access {
        allow: (!allow.is_empty()).then_some(allow),
        chap: options.chap.clone(),
    };
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    for unit in units {
        if nodes.last().is_none_or(|node| node.name != unit.target) {
            let name = unit.target.clone();
            nodes.push(Arc::new(Node {
                name,
                alias: None,
                access: access.clone(),
            }));
        }
    }
    Ok(Config {
        nodes,
        advertise: options.advertise.clone(),
        limits: options.limits,
    })
}

/// The target devices as SCSI knows them, by node name and iSCSIProtocolLevel.
pub(super) fn devices(units: &[Unit]) -> BTreeMap<(String, u8), Arc<TargetDevice>> {
    let mut luns: BTreeMap<&str, Vec<(Lun, UnitId)>> = BTreeMap::new();
    for (id, unit) in units.iter().enumerate() {
        let entry = (Lun::from_index(unit.lun), UnitId(id as u32));
        luns.entry(&unit.target).or_default().push(entry);
    }
    let mut devices = BTreeMap::new();
    for (name, luns) in luns {
        for level in 0..=PROTOCOL_LEVEL {
            let device = names::target_device(name, luns.clone(), level);
            devices.insert((name.to_owned(), level), Arc::new(device));
        }
    }
    devices
}
