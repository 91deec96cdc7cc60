//! What stands behind the gate here: an inventory that is lowered from a tree as always, whose
//! volumes are simulated disks and whose cores are simulated too; and a store that forgets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use address::Address;
use block::limit::{Limit, LimitRates};
use block::null::Null;
use block::readonly::Readonly;
use block::stats::Stats;
use block::volume::Volume;
use control::gate::{Engine, Generation, Persist, Store};
use control::lower::{Machine, inventory, portal_groups};
use control::plan::{FabricLogins, SessionFact};
use control::tree::Tree;
use engine::change::{Change, NewUnit, NewVolume};
use engine::inventory::{Inventory, LocalNode, PlacedInventory, Step, UnitRow, diff};
use iscsi::target::{IserPortals, NodeAccess};
use scsi::unit::{UnitId, UnitIdentity, UnitState};

use super::Site;
use super::trees::number;
use crate::lab;
use crate::watch::Watch;

/// What tells this machine from others.
pub(super) const MACHINE: &str = "a simulated machine";

/// Something that a server must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// Lowering a tree forgets the views of groups.
    ForgetsViews,
    /// Lowering forgets which LUNs can only be read.
    ForgetsReadOnly,
    /// Lowering lets everybody in.
    ForgetsNames,
    /// A volume is not exchanged.
    ForgetsSwaps,
    /// A switch starts again to have other zones.
    RestartsSwitches,
    /// The plan calls it quiet when LUNs change.
    QuietRemap,
    /// The plan calls it quiet when sessions end.
    QuietCuts,
    /// The plan names one host too many.
    NamesOthers,
}

/// What is served.
#[derive(Clone, Default)]
pub(super) struct Served {
    inventory: Inventory,
    units: BTreeMap<String, UnitId>,
    free: Vec<UnitId>,
    slots: u32,
    /// Portals that are listened to, by number.
    pub(super) portals: BTreeMap<u32, SocketAddr>,
    /// Portals that there ever were. The first one is what a simulated process begins with.
    portal_count: u32,
    /// Relative target port identifiers.
    ports: BTreeMap<(String, u16), u16>,
}

/// What a change needs of those who prepare it.
pub(super) struct Workshop<'a> {
    pub(super) watch: &'a Watch,
    /// A disk that cannot be opened.
    pub(super) broken: Option<usize>,
    pub(super) defect: Option<Defect>,
}

impl Served {
    /// Prepares to serve a tree in place of what is served. Nothing of it is visible yet.
    pub(super) fn prepare(
        &mut self,
        tree: &Tree,
        workshop: &Workshop<'_>,
    ) -> Result<Change, Vec<String>> {
        for group in portal_groups(tree) {
            let next = 0x100 + self.ports.len() as u16;
            self.ports.entry(group).or_insert(next);
        }
        let machine = Machine {
            id: MACHINE.to_owned(),
            ports: self.ports.clone(),
            ..Machine::default()
        };
        let mut next = inventory(tree, &machine, &Inventory::default(), |_, _| true)?;
        workshop.spoil(&mut next);
        let here = LocalNode {
            addresses: &[],
            initiator: "",
        };
        next.check(here).map_err(|error| vec![error.to_string()])?;
        let mut change = empty_change();
        for step in diff(&self.inventory, &next) {
            let made = self.make(step, workshop, &mut change);
            made.map_err(|cause| vec![cause])?;
        }
        let gone = change.departures.iter().map(|unit| unit.successor());
        self.free.extend(gone);
        self.inventory = next;
        self.place(&mut change);
        Ok(change)
    }

    fn make(
        &mut self,
        step: Step,
        workshop: &Workshop<'_>,
        change: &mut Change,
    ) -> Result<(), String> {
        match step {
            Step::AddUnit(name, row) => {
                let volume = workshop.open(&row)?;
                let id = self.new_id();
                change.arrivals.push(unit(id, &row, volume));
                self.units.insert(name, id);
            }
            Step::SwapVolume(name, row) => {
                let volume = workshop.open(&row)?;
                if workshop.defect != Some(Defect::ForgetsSwaps) {
                    change.swaps.push(NewVolume {
                        unit: self.units[&name],
                        volume,
                        name: row.written.clone(),
                        is_absent: false,
                    });
                }
            }
            Step::RemoveUnit(name) => change.departures.extend(self.units.remove(&name)),
            Step::OpenPortal(address) => {
                self.portal_count += 1;
                self.portals.insert(self.portal_count, address);
                let listener = File::open("/dev/null").map_err(|cause| cause.to_string())?;
                change.listen.push((self.portal_count, listener.into()));
            }
            Step::ClosePortal(address) => {
                let portals = self.portals.extract_if(.., |_, portal| *portal == address);
                change.close.extend(portals.map(|(number, _)| number));
            }
            _ => {}
        }
        Ok(())
    }

    fn new_id(&mut self) -> UnitId {
        self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            UnitId::first(self.slots - 1)
        })
    }

    /// What everybody sees and what logins go by.
    fn place(&self, change: &mut Change) {
        let unit = |name: &str| self.units.get(name).copied();
        let placed = PlacedInventory {
            inventory: &self.inventory,
            unit: &unit,
            bound: &|asked| vec![asked],
        };
        let portals = self.portals.values().copied().collect();
        change.views = Arc::new(placed.views());
        let iser = IserPortals {
            portals: self.portals.values().copied().collect(),
            devices: Vec::new(),
            without_crc: true,
        };
        change.config = Arc::new(placed.config(portals, iser, lab::short_limits()));
    }
}

impl Workshop<'_> {
    fn open(&self, row: &UnitRow) -> Result<Arc<dyn Volume>, String> {
        let volume = self.volume(&row.address)?;
        Ok(if row.read_only && !volume.traits().read_only {
            Arc::new(Readonly::new(volume))
        } else {
            volume
        })
    }

    fn volume(&self, address: &Address) -> Result<Arc<dyn Volume>, String> {
        Ok(match address {
            Address::Readonly(inner) => Arc::new(Readonly::new(self.volume(inner)?)),
            Address::Stats(inner) => Arc::new(Stats::new(self.volume(inner)?, String::new())),
            Address::Limit { iops, volume, .. } => {
                let rates = LimitRates {
                    iops: iops.map(|count| count.0),
                    ..LimitRates::default()
                };
                Arc::new(Limit::new(self.volume(volume)?, rates))
            }
            Address::Null(size) => {
                Arc::new(Null::new(size.0, 512).map_err(|error| error.to_string())?)
            }
            leaf => {
                let disk = number(leaf).ok_or_else(|| format!("{leaf} is not simulated"))?;
                if self.broken == Some(disk) {
                    return Err(format!("{leaf}: it does not answer"));
                }
                let volume = self.watch.disks[disk].disk.volume();
                match leaf {
                    Address::File(file) if file.read_only => Arc::new(Readonly::new(volume)),
                    _ => volume,
                }
            }
        })
    }

    fn spoil(&self, inventory: &mut Inventory) {
        for target in inventory.targets.values_mut() {
            match self.defect {
                Some(Defect::ForgetsViews) => target.groups.clear(),
                Some(Defect::ForgetsNames) => target.access = NodeAccess::default(),
                Some(Defect::ForgetsReadOnly) => {
                    let groups = target.groups.iter_mut().map(|(_, luns)| luns);
                    let luns = groups.chain([&mut target.luns]).flatten();
                    luns.for_each(|lun| lun.read_only = false);
                }
                _ => {}
            }
        }
    }
}

fn empty_change() -> Change {
    Change {
        arrivals: Vec::new(),
        swaps: Vec::new(),
        departures: Vec::new(),
        inherited: Vec::new(),
        views: Arc::default(),
        config: Arc::new(tests::target_config(
            "",
            NodeAccess::default(),
            lab::short_limits(),
        )),
        partners: Vec::new(),
        listen: Vec::new(),
        close: Vec::new(),
        listen_by_devices: Vec::new(),
        close_devices: Vec::new(),
        done: Box::new(|_| ()),
    }
}

fn unit(id: UnitId, row: &UnitRow, volume: Arc<dyn Volume>) -> NewUnit {
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "SIMULATED".into(),
        revision: "0".into(),
        serial: row.serial.clone().unwrap_or_default(),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, id.slot as u8],
        removable: row.removable,
    };
    NewUnit {
        id,
        state: UnitState::new(identity, volume.traits()),
        volume,
        name: row.written.clone(),
        key: id.slot.to_string(),
        lock: None,
    }
}

/// The site as the gate knows it.
pub(super) struct SimServer(pub(super) Rc<RefCell<Site>>);

impl Engine for SimServer {
    fn sessions(&self) -> Result<Vec<SessionFact>, String> {
        Ok(self.0.borrow_mut().facts())
    }

    fn fabric_logins(&self) -> FabricLogins {
        self.0.borrow().fabrics.logins()
    }

    fn refresh(&mut self, _: &Arc<Tree>) -> Result<(), Vec<String>> {
        Ok(())
    }

    fn keep_secret(&mut self, _: &str, _: &str) -> Result<(), String> {
        Err("there are no secrets here".to_owned())
    }

    fn apply(
        &mut self,
        tree: &Arc<Tree>,
        _: bool,
        persist: Persist<'_>,
    ) -> Result<(), Vec<String>> {
        self.0.borrow_mut().serve(tree, persist)
    }
}

/// The file and the history.
pub(super) struct Memory {
    file: String,
    kept: BTreeMap<u64, String>,
}

impl Memory {
    /// The file as it is at the beginning.
    pub(super) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            kept: BTreeMap::new(),
        }
    }

    /// The generations that are kept.
    pub(super) fn generations(&self) -> BTreeSet<u64> {
        self.kept.keys().copied().collect()
    }

    /// The document of one of them.
    pub(super) fn known(&self, generation: u64) -> String {
        self.kept[&generation].clone()
    }
}

impl Store for Memory {
    fn file(&self) -> Result<Option<String>, String> {
        Ok(Some(self.file.clone()))
    }

    fn commit(&mut self, generation: &Generation, text: &str) -> Result<(), String> {
        self.kept.insert(generation.number, text.to_owned());
        text.clone_into(&mut self.file);
        Ok(())
    }

    fn serves(&mut self, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn withdraw(&mut self, generation: u64, text: &str) -> Result<(), String> {
        self.kept.remove(&generation);
        text.clone_into(&mut self.file);
        Ok(())
    }

    fn text(&self, generation: u64) -> Option<String> {
        self.kept.get(&generation).cloned()
    }
}
