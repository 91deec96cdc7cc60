//! What can fail of a change is done here, before anybody sees anything of it.

mod ports;

use std::collections::btree_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use ::io::rdma::RdmaListener;
use block::absent::Absent;
use block::file::UndoLog;
use block::volume::Volume;
use client::open::{self, Growth, LeafReuse, OpenError, OpenLeaves, OpenOptions};
use fc::remote::Partners;
use fc::wire::names::Wwn;
use iscsi::target::TargetConfig;
use runtime::n_port::Attachment;
use scsi::statistics::UnitStatistics;
use scsi::unit::UnitId;

use super::units::{
    self, Absence, Designation, LocksOfDepartures, ReservationSource, ServedUnit, VolumeGauge,
};
use super::views::views;
use super::{Served, ServerConfig, portals};
use crate::change::{Change, NewUnit, NewVolume};
use crate::inventory::{Inventory, LocalNode, Step, UnitRow, diff};
use crate::serve::options::ServeError;
use crate::state::StateDir;

/// A change of which nothing is visible yet.
pub(super) struct Prepared {
    pub(super) change: Change,
    pub(super) open_fc: Vec<Attachment>,
    pub(super) close_fc: Vec<Wwn>,
    /// Statistics that are to tell of the space of another volume.
    pub(super) measured: Vec<(Arc<UnitStatistics>, Arc<dyn Volume>)>,
    /// Statistics of units that go: they must not keep a volume open.
    pub(super) gone: Vec<Arc<UnitStatistics>>,
    /// Files that are to be longer.
    pub(super) growth: Growth,
}

/// What preparing goes by.
pub(super) struct Preparing<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) store: &'a StateDir,
    pub(super) cores: u16,
    /// Until when volumes are tried again that cannot be opened.
    pub(super) until: Instant,
    /// Units whose volumes have to be there, whatever their rows say.
    pub(super) required: &'a BTreeSet<String>,
    /// Portals that cannot be bound are tried again later.
    pub(super) may_miss_portals: bool,
}

/// What the steps of a change come to.
#[derive(Default)]
struct Steps {
    arrivals: Vec<NewUnit>,
    swaps: Vec<NewVolume>,
    departures: Vec<UnitId>,
    inherited: BTreeSet<UnitId>,
    gone: Vec<Arc<UnitStatistics>>,
    locks: LocksOfDepartures,
    growth: Growth,
    listen: Vec<(u32, OwnedFd)>,
    close: Vec<u32>,
    /// Where those listen that are closed.
    closing: Vec<SocketAddr>,
    listen_by_devices: Vec<(u32, RdmaListener)>,
    close_devices: Vec<u32>,
    open_fc: Vec<Attachment>,
    close_fc: Vec<Wwn>,
    partners: Vec<(Wwn, Partners)>,
}

impl Preparing<'_> {
    /// Prepares to serve `inventory` in place of what is served, and makes `served` tell so.
    pub(super) fn run(
        &self,
        served: &mut Served,
        inventory: Inventory,
        undo: &UndoLog,
    ) -> Result<Prepared, ServeError> {
        inventory.check(LocalNode {
            addresses: &portals::own_addresses(),
            initiator: &self.config.open.initiator,
        })?;
        let open = self.open_options(undo);
        let mut steps = Steps::default();
        let all = diff(&served.inventory, &inventory);
        let (units, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_of_unit);
        self.units(served, units, &open, &mut steps)?;
        for step in others {
            self.port(served, step, &mut steps)?;
        }
        self.devices(served, &inventory.iser, &mut steps)?;
        let reserved = steps.growth.reserve();
        reserved.map_err(|error| {
            steps.growth.release();
            cannot_extend(&error)
        })?;
        served.views = Arc::new(views(served, &inventory));
        served.inventory = Arc::new(inventory);
        Ok(self.prepared(served, steps))
    }

    fn prepared(&self, served: &Served, steps: Steps) -> Prepared {
        let units = served.units.values();
        let swapped = units.filter(|unit| steps.swaps.iter().any(|swap| swap.unit == unit.id));
        let measured = swapped.map(|unit| (Arc::clone(&unit.statistics), Arc::clone(&unit.volume)));
        Prepared {
            measured: measured.collect(),
            gone: steps.gone,
            growth: steps.growth,
            change: Change {
                arrivals: steps.arrivals,
                swaps: steps.swaps,
                departures: steps.departures,
                inherited: steps.inherited.into_iter().collect(),
                views: Arc::clone(&served.views),
                config: Arc::new(self.target_config(served)),
                partners: steps.partners,
                listen: steps.listen,
                close: steps.close,
                listen_by_devices: steps.listen_by_devices,
                close_devices: steps.close_devices,
                done: Box::new(|_| ()),
            },
            open_fc: steps.open_fc,
            close_fc: steps.close_fc,
        }
    }

    /// A unit's volume is now the one that `served` tells.
    pub(super) fn exchange(&self, served: &Served, name: &str) -> Result<Prepared, ServeError> {
        let unit = served.units.get(name).ok_or_else(|| no_unit(name))?;
        let row = served.inventory.units.get(name);
        let swap = NewVolume {
            unit: unit.id,
            volume: Arc::clone(&unit.volume),
            name: row.map_or(name, |row| &row.written).to_owned(),
            is_absent: unit.absence.is_some(),
        };
        let steps = Steps {
            swaps: vec![swap],
            ..Steps::default()
        };
        Ok(self.prepared(served, steps))
    }

    /// A unit that nobody could know gives way to one that is known by its volume.
    pub(super) fn replace(
        &self,
        served: &mut Served,
        name: &str,
        (volume, leaves): OpenedVolume,
    ) -> Result<Prepared, ServeError> {
        let old = served.units.remove(name).ok_or_else(|| no_unit(name))?;
        let row = served.inventory.units.get(name).cloned();
        let row = row.ok_or_else(|| no_unit(name))?;
        let id = old.id;
        let mut steps = Steps::default();
        steps.leave(&old);
        self.admit(
            served,
            vec![(name.to_owned(), row, (volume, None, leaves))],
            &mut steps,
        )?;
        served.free.push(id.successor());
        served.views = Arc::new(views(served, &served.inventory));
        Ok(self.prepared(served, steps))
    }

    /// Whether a volume is the one that a unit had.
    pub(super) fn is_same(
        &self,
        unit: &ServedUnit,
        row: &UnitRow,
        volume: &dyn Volume,
        name: &str,
    ) -> bool {
        let (was, is) = (unit.volume.traits(), volume.traits());
        let called = units::designation(name, row, volume);
        was.block_size == is.block_size && called == unit.called
    }

    /// Opens the volume of a unit that is absent.
    pub(super) fn open_now(
        &self,
        row: &UnitRow,
        undo: &UndoLog,
    ) -> Result<OpenedVolume, ServeError> {
        let reuse = LeafReuse::default();
        let volume = self.open_volume(row, &self.open_options(undo), &reuse)?;
        Ok((volume, reuse.opened()))
    }

    fn open_options(&self, undo: &UndoLog) -> OpenOptions {
        OpenOptions {
            undo: Some(undo.clone()),
            wait_until: Some(self.until),
            ..self.config.open.clone()
        }
    }

    /// Opens every volume before any is locked: what is wrong with an address is told first.
    fn units(
        &self,
        served: &mut Served,
        steps: Vec<Step>,
        open: &OpenOptions,
        made: &mut Steps,
    ) -> Result<(), ServeError> {
        let (mut arrivals, mut left) = (Vec::new(), OpenLeaves::default());
        let mut leaving = Vec::new();
        for step in steps {
            match step {
                Step::RemoveUnit(name) => {
                    if let Some(unit) = served.units.remove(&name) {
                        let files = unit.leaves.files();
                        leaving.push((unit.id, files.clone()));
                        left.add(files);
                        made.leave(&unit);
                    }
                }
                Step::SwapVolume(name, row) => {
                    arrivals.extend(self.swap(served, (name, row), open, made)?);
                }
                Step::AddUnit(name, row) => {
                    // A file that one row leaves is open, and may be that of another.
                    let reuse = LeafReuse::of(std::mem::take(&mut left));
                    let opened = self.open((&name, &row), open, &reuse, made)?;
                    left = reuse.left();
                    arrivals.push((name, row, opened));
                }
                _ => {}
            }
        }
        let is_taken = |(_, files): &(UnitId, OpenLeaves)| !left.has_all(files);
        let taken = leaving.into_iter().filter(is_taken);
        made.inherited.extend(taken.map(|(unit, _)| unit));
        self.admit(served, arrivals, made)?;
        // Their slots are free when the change has been made, so they are not for its arrivals.
        let gone = made.departures.iter().map(|unit| unit.successor());
        served.free.extend(gone);
        Ok(())
    }

    /// Gives units that come their numbers, names and reservations.
    fn admit(
        &self,
        served: &mut Served,
        arrivals: Vec<Arrival>,
        made: &mut Steps,
    ) -> Result<(), ServeError> {
        let called = designations(served, &arrivals)?;
        let lasting = called.iter().any(|called| called.lasts);
        let is_writable = lasting && units::is_writable(self.store);
        for ((name, row, (volume, absence, leaves)), called) in arrivals.into_iter().zip(called) {
            let mut state = units::state(&row, &volume, &called);
            state.is_absent = absence.is_some();
            state.statistics.set_gauge(VolumeGauge::new(&volume));
            let statistics = Arc::clone(&state.statistics);
            let places = (&*name, &*row);
            let keeping = ReservationSource {
                store: self.store,
                is_writable,
                left: &made.locks,
            };
            let lock = units::restore(places, &mut state, &called, keeping)?;
            let before = made.locks.get(&units::key(&called));
            made.inherited.extend(before.map(|(unit, _)| *unit));
            let id = served.new_id();
            let held = lock.as_ref().map(Arc::downgrade);
            made.arrivals.push(NewUnit {
                id,
                state,
                volume: Arc::clone(&volume),
                name: row.written.clone(),
                key: units::key(&called),
                lock,
            });
            let unit = ServedUnit {
                id,
                volume,
                called,
                absence,
                statistics,
                leaves,
                lock: held.unwrap_or_default(),
            };
            served.units.insert(name, Arc::new(unit));
        }
        Ok(())
    }

    /// The volume of a row, or what stands for it. Of one that cannot be opened as a whole nothing
    /// is kept open, so that it can be opened later.
    fn open(
        &self,
        (name, row): (&str, &UnitRow),
        open: &OpenOptions,
        reuse: &LeafReuse,
        made: &mut Steps,
    ) -> Result<ArrivedVolume, ServeError> {
        match self.open_volume(row, open, reuse) {
            Ok(volume) => {
                made.growth.extend(reuse.growth());
                Ok((volume, None, reuse.opened()))
            }
            Err(error) if row.may_be_absent && !self.required.contains(name) => {
                tracing::warn!("{error}: its LUN is not ready until the volume is there");
                let absent = Absent::new(row.block_size);
                let absence = Absence::Unknown(Instant::now());
                Ok((Arc::new(absent), Some(absence), OpenLeaves::default()))
            }
            Err(error) => Err(error),
        }
    }

    fn open_volume(
        &self,
        row: &UnitRow,
        open: &OpenOptions,
        reuse: &LeafReuse,
    ) -> Result<Arc<dyn Volume>, ServeError> {
        let options = OpenOptions {
            reuse: Some(reuse.clone()),
            read_only: open.read_only || row.read_only,
            block_size: row.block_size.or(open.block_size),
            ..open.clone()
        };
        let opened = open::volume(&row.address, &options);
        let volume = opened.map_err(|error| cannot_open(row, &error))?;
        let prepared = volume.prepare(self.cores);
        prepared.map_err(|cause| ServeError::Open {
            address: row.written.clone(),
            cause: cause.to_string(),
        })?;
        Ok(volume)
    }

    /// Puts another volume under a unit. Where its blocks have another size, what hosts know of
    /// blocks is wrong from then on: another unit takes its place, which is returned.
    fn swap(
        &self,
        served: &mut Served,
        (name, row): (String, Arc<UnitRow>),
        open: &OpenOptions,
        made: &mut Steps,
    ) -> Result<Option<Arrival>, ServeError> {
        let Entry::Occupied(mut entry) = served.units.entry(name.clone()) else {
            return Err(no_unit(&name));
        };
        let unit = Arc::make_mut(entry.get_mut());
        let reuse = LeafReuse::of(unit.leaves.clone());
        let was = unit.volume.traits().block_size;
        let (mut volume, mut absence, leaves) = self.open((&name, &row), open, &reuse, made)?;
        if let Some(now) = absence {
            // What is absent and is not told to have blocks may have those of before.
            volume = Arc::new(Absent::new(row.block_size.or(Some(was))));
            let since = unit.absence.unwrap_or(now).since();
            absence = Some(Absence::Unknown(since));
        }
        if was != volume.traits().block_size {
            made.inherited.insert(unit.id);
            made.leave(&entry.remove());
            return Ok(Some((name, row, (volume, absence, leaves))));
        }
        unit.leaves = leaves;
        unit.absence = absence;
        let before = std::mem::replace(&mut unit.volume, Arc::clone(&volume));
        // A file that has grown is the same volume, and is seen to be longer.
        let is_another = !Arc::ptr_eq(&before, &volume);
        made.swaps.extend(is_another.then(|| NewVolume {
            unit: unit.id,
            volume,
            name: row.written.clone(),
            is_absent: absence.is_some(),
        }));
        Ok(None)
    }

    fn target_config(&self, served: &Served) -> TargetConfig {
        let portals = served.portals.iter().map(|portal| portal.bound).collect();
        let (iser, limits) = (served.iser_portals(), self.config.limits);
        served.placed(&served.inventory, |placed| {
            placed.config(portals, iser, limits)
        })
    }
}

impl Steps {
    /// A unit goes. Its lock may be that of one that comes.
    fn leave(&mut self, unit: &ServedUnit) {
        let lock = unit.lock.upgrade();
        let key = units::key(&unit.called);
        self.locks.extend(lock.map(|lock| (key, (unit.id, lock))));
        self.departures.push(unit.id);
        self.gone.push(Arc::clone(&unit.statistics));
    }
}

fn is_of_unit(step: &Step) -> bool {
    matches!(
        step,
        Step::AddUnit(..) | Step::SwapVolume(..) | Step::RemoveUnit(_)
    )
}

fn no_unit(name: &str) -> ServeError {
    ServeError::Machine {
        what: format!("{name} is not served"),
        cause: io::ErrorKind::NotFound.into(),
    }
}

fn cannot_open(row: &UnitRow, error: &OpenError) -> ServeError {
    let is_whole = error.address == row.address.to_string();
    let cause = if is_whole {
        error.cause.to_string()
    } else {
        // It names a volume inside of it.
        error.to_string()
    };
    ServeError::Open {
        address: row.written.clone(),
        cause,
    }
}

pub(super) fn cannot_extend(error: &OpenError) -> ServeError {
    ServeError::Open {
        address: error.address.clone(),
        cause: error.cause.to_string(),
    }
}

/// A volume, and what it is made of.
pub(super) type OpenedVolume = (Arc<dyn Volume>, OpenLeaves);

/// A volume or what stands for it, and why, and what it is made of.
type ArrivedVolume = (Arc<dyn Volume>, Option<Absence>, OpenLeaves);

/// A unit that comes: its name, its row, and its volume.
type Arrival = (String, Arc<UnitRow>, ArrivedVolume);

/// What each unit that comes calls itself: differently from each other, and from those that are
/// there.
fn designations(served: &Served, arrivals: &[Arrival]) -> Result<Vec<Designation>, ServeError> {
    let call = |(name, row, (volume, ..)): &Arrival| units::designation(name, row, &**volume);
    let all: Vec<_> = arrivals.iter().map(call).collect();
    if all.is_empty() {
        return Ok(all);
    }
    let come: HashSet<&str> = all.iter().map(|called| &*called.serial).collect();
    let mut known: HashMap<&str, &str> = HashMap::new();
    for (name, unit) in &served.units {
        let serial = &*unit.called.serial;
        if come.contains(serial) {
            let row = served.inventory.units.get(name);
            known.insert(serial, row.map_or(name, |row| &row.written));
        }
    }
    for ((name, row, _), called) in arrivals.iter().zip(&all) {
        if let Some(one) = known.insert(&called.serial, &row.written) {
            return Err(ServeError::SameVolume {
                one: one.to_owned(),
                other: row.written.clone(),
                serial: called.serial.clone(),
                name: name.clone(),
            });
        }
    }
    Ok(all)
}

impl Served {
    fn new_id(&mut self) -> UnitId {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.slots;
            self.slots += 1;
            UnitId::first(slot)
        })
    }
}
