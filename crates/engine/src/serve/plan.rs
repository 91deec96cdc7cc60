//! From options to what will be served: targets, LUNs, their volumes and their identities.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use block::volume::Volume;
use iscsi::names;
use iscsi::target::{NodeAccess, PROTOCOL_LEVEL, TargetConfig, TargetNode};
use scsi::nexus::TargetDevice;
use scsi::statistics::{SpaceUsage, UsageGauge};
use scsi::unit::{UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

use super::options::{BlockSizeOption, ServeError, ServeMisuse, ServeOptions, TargetChap};
use crate::identity::Designation;
use address::{Address, Size};
use client::open::{self, OpenError, OpenOptions};

/// A logical unit to be.
#[derive(Debug)]
pub(super) struct UnitPlan {
    /// Its number among the volumes of the command.
    pub(super) number: u16,
    /// The address of its volume, as it was given.
    pub(super) written: String,
    pub(super) address: Address,
    /// The name of its target.
    pub(super) target: String,
    pub(super) lun: u16,
    /// The serial number that it was told to have.
    pub(super) serial: Option<String>,
}

impl UnitPlan {
    /// Its state at power on.
    pub(super) fn state(
        &self,
        options: &ServeOptions,
        volume: &Arc<dyn Volume>,
        Designation { serial, naa, .. }: &Designation,
    ) -> UnitState {
        let text = |given: &Option<String>, default: &str| {
            given.clone().unwrap_or_else(|| default.to_owned())
        };
        let identity = UnitIdentity {
            vendor: text(&options.units.vendor, "LUNAR"),
            product: text(&options.units.product, "VOLUME"),
            revision: revision(env!("CARGO_PKG_VERSION")),
            serial: serial.clone(),
            naa: naa.to_vec(),
            removable: options.units.removable,
        };
        let mut traits = volume.traits();
        traits.shared &= !options.units.sole_gateway;
        let state = UnitState::new(identity, traits);
        state.statistics.set_gauge(VolumeGauge::new(volume));
        state
    }

    /// What it calls itself: as it was told, else as its volume is known.
    fn designation(&self, volume: &dyn Volume) -> Designation {
        if let Some(serial) = &self.serial {
            return Designation::of_serial(serial.clone());
        }
        let is_empty = volume.is_empty_at_start();
        let identity = volume.particulars().identity;
        match identity.filter(|_| !is_empty) {
            Some(identity) => Designation::of_volume(&identity),
            None => {
                if !is_empty {
                    tracing::warn!(
                        "{} has no identity of its own: LUN {} is a new disk at each start \
                         (--serial {}=TEXT keeps it the same)",
                        self.written,
                        self.lun,
                        self.number
                    );
                }
                Designation::passing(super::random())
            }
        }
    }
}

/// What each unit calls itself, all differently.
pub(super) fn designations(
    units: &[UnitPlan],
    volumes: &[Arc<dyn Volume>],
) -> Result<Vec<Designation>, ServeError> {
    let pairs = units.iter().zip(volumes);
    let all: Vec<_> = pairs
        .map(|(unit, volume)| unit.designation(&**volume))
        .collect();
    let mut known = HashMap::new();
    for (unit, Designation { serial, .. }) in units.iter().zip(&all) {
        if let Some(other) = known.insert(serial, unit) {
            return Err(ServeError::SameVolume {
                one: other.written.clone(),
                other: unit.written.clone(),
                serial: serial.clone(),
                number: unit.number,
            });
        }
    }
    Ok(all)
}

/// Asks a volume what LOG SENSE is asked. A file system can take any time for its answer, as one of
/// a server that is away does: the last answer is kept, and a core has another thread ask.
#[derive(Debug)]
pub(super) struct VolumeGauge {
    volume: Arc<dyn Volume>,
    last: Mutex<Option<SpaceUsage>>,
}

impl VolumeGauge {
    /// Of a volume that has just been opened; may block.
    pub(super) fn new(volume: &Arc<dyn Volume>) -> Self {
        Self {
            last: Mutex::new(volume.usage()),
            volume: Arc::clone(volume),
        }
    }
}

impl UsageGauge for VolumeGauge {
    fn usage(&self) -> Option<SpaceUsage> {
        if self.volume.can_grow() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            self.volume.usage()
        }
    }

    fn look(&self) {
        let usage = self.volume.usage();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }
}

/// What INQUIRY has room for.
fn revision(version: &str) -> String {
    let cut: String = version.chars().take(4).collect();
    cut.trim_end_matches('.').to_owned()
}

/// Parses every address and name: nothing is tried before all of them are right.
pub(super) fn units(options: &ServeOptions) -> Result<Vec<UnitPlan>, ServeError> {
    let (volumes, serials) = (options.numbered()?, options.serials()?);
    let unit = |(number, written)| {
        let serial = serials.get(&number).map(|serial| (*serial).to_owned());
        unit(options, number, written, serial)
    };
    volumes.into_iter().map(unit).collect()
}

fn unit(
    options: &ServeOptions,
    number: u16,
    written: &str,
    serial: Option<String>,
) -> Result<UnitPlan, ServeError> {
    let address: Address = written.parse()?;
    if let Some(block_size) = options.units.block_size.map(BlockSizeOption::bytes) {
        has_block(&address, block_size)?;
    }
    let (target, lun) = if options.target_per_volume {
        (format!("{}:{number}", options.iqn), 0)
    } else {
        (options.iqn.clone(), number)
    };
    let target = name(&target)?;
    Ok(UnitPlan {
        number,
        written: written.to_owned(),
        address,
        target,
        lun,
        serial,
    })
}

/// Whether every volume in memory has a block.
fn has_block(address: &Address, block_size: u32) -> Result<(), ServeMisuse> {
    address.leaves().try_for_each(|leaf| match leaf {
        Address::Ram(Size(size)) | Address::Null(Size(size)) if *size < block_size.into() => {
            Err(ServeMisuse::NoBlock {
                address: leaf.to_string(),
                block_size,
            })
        }
        _ => Ok(()),
    })
}

fn name(given: &str) -> Result<String, ServeError> {
    names::normalise(given).map_err(|cause| ServeError::Name {
        name: given.to_owned(),
        cause: cause.to_string(),
    })
}

/// Opens the volume of every unit, or none.
pub(super) fn open(
    units: &[UnitPlan],
    options: &OpenOptions,
) -> Result<Vec<Arc<dyn Volume>>, ServeError> {
    let open = |unit: &UnitPlan| {
        let opened = open::volume(&unit.address, options);
        opened.map_err(|error| cannot_open(unit, &error))
    };
    units.iter().map(open).collect()
}

fn cannot_open(unit: &UnitPlan, error: &OpenError) -> ServeError {
    let is_whole = error.address == unit.address.to_string();
    let cause = if is_whole {
        error.cause.to_string()
    } else {
        // It names a volume inside of it.
        error.to_string()
    };
    ServeError::Open {
        address: unit.written.clone(),
        cause,
    }
}

/// The target nodes as iSCSI knows them. Their portals are known once they are bound.
pub(super) fn config(
    options: &ServeOptions,
    units: &[UnitPlan],
) -> Result<TargetConfig, ServeError> {
    let allow = options.allowed_names().into_iter().map(name);
    let allow = allow.collect::<Result<BTreeSet<_>, _>>()?;
    let access = NodeAccess {
        allow: (!allow.is_empty()).then_some(allow),
        chap: options.chap.as_ref().map(bound_users).transpose()?,
    };
    let mut nodes: Vec<Arc<TargetNode>> = Vec::new();
    for unit in units {
        if nodes.last().is_none_or(|node| node.name != unit.target) {
            let name = unit.target.clone();
            nodes.push(Arc::new(TargetNode {
                name,
                alias: None,
                access: access.clone(),
            }));
        }
    }
    Ok(TargetConfig {
        nodes,
        portals: Vec::new(),
        advertise: options.advertise.clone(),
        limits: options.limits,
    })
}

/// The credentials, with the names of initiators as logins compare them.
fn bound_users(chap: &TargetChap) -> Result<TargetChap, ServeError> {
    let mut chap = chap.clone();
    for user in &mut chap.users {
        user.initiator = user.initiator.as_deref().map(name).transpose()?;
    }
    Ok(chap)
}

/// The target devices as SCSI knows them, by node name and iSCSIProtocolLevel.
pub(super) fn devices(units: &[UnitPlan]) -> BTreeMap<(String, u8), Arc<TargetDevice>> {
    let mut luns: BTreeMap<&str, Vec<(Lun, UnitId)>> = BTreeMap::new();
    for (id, unit) in units.iter().enumerate() {
        let entry = (Lun::from_index(unit.lun), UnitId::first(id as u32));
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
