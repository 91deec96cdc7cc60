//! A server: cores that serve an inventory, which can be changed while they do.
//!
//! A change is prepared here, by the thread that asks for it: volumes are opened, reservations
//! loaded and locked, portals bound. What fails then has changed nothing. [`crate::change`] tells
//! how the cores make the rest.

mod absent;
mod cores;
mod fc_ports;
mod luns;
mod portals;
mod prepare;
mod questions;
mod rdma_source;
mod unit_states;
mod units;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::io::cpu::CpuList;
use ::io::ring::RingKind;
use block::file::UndoLog;
use block::volume::Volume;
use block::volumes::tell_gathered;
use client::open::OpenOptions;
use iscsi::target::TargetLimits;
use runtime::journal::Journal;
use runtime::polling::PollMode;
use scsi::unit::{CoreId, UnitId};

use crate::change::ChangeError;
use crate::core::{ControlCore, ControlCoreParts, NearCore};
use crate::flushes::FinalFlushes;
use crate::inventory::Inventory;
use crate::mailbox::{CoreMessage, Mailboxes};
use crate::serve::options::{MOST_THREADS, MachineMisuse, ServeError, ServeMisuse};
use crate::state::StateDir;
use crate::views::Views;
use absent::Notice;
use fc_ports::FcPortName;
use prepare::{Prepared, Preparing};
pub use questions::UnitReport;
pub use rdma_source::RdmaSource;
pub use unit_states::{
    LongOperationReport, NexusReport, RegistrationReport, ReservationKind, ReservationReport,
};
use units::ServedUnit;
pub use units::VolumeGauge;

/// What stays the same for as long as a server runs.
#[derive(Clone)]
pub struct ServerConfig {
    /// How volumes are opened; what a row says comes before it.
    pub open: OpenOptions,
    /// Bounds on what a peer can cost.
    pub limits: TargetLimits,
    /// How many reactors; `None`: as many as the process may use cores.
    pub threads: Option<NonZeroUsize>,
    /// The CPUs that they are pinned to, one each, in place of `threads`; `None`: none is.
    pub pin: Option<CpuList>,
    /// Which ring drives them.
    pub ring: RingKind,
    /// When they spin.
    pub poll: PollMode,
    /// How long the kernel polls network cards before they sleep; `None`: not at all.
    pub busy_poll: Option<Duration>,
    /// Where acknowledged state is kept (APTPL reservations); `None`: nowhere.
    pub state_dir: Option<PathBuf>,
    /// How long volumes that cannot be opened are tried again at the start.
    pub wait: Duration,
    /// A portal that cannot be bound at the start is tried again, and all else is served.
    pub portals_may_be_missing: bool,
    /// Where RDMA devices come from.
    pub rdma: RdmaSource,
    /// Told when a core has ended, by order or not.
    pub ended: Arc<dyn Fn(CoreId) + Send + Sync>,
}

impl ServerConfig {
    /// All by default: a core for each processor, nothing kept over a restart, volumes opened as
    /// for [`OpenOptions::new`] by this initiator.
    ///
    /// # Errors
    ///
    /// When the kernel does not say how much memory there is.
    pub fn new(initiator: String) -> io::Result<Self> {
        Ok(Self {
            open: OpenOptions {
                keep_identity: true,
                ..OpenOptions::new(initiator)?
            },
            limits: TargetLimits::default(),
            threads: None,
            pin: None,
            ring: RingKind::default(),
            poll: PollMode::default(),
            busy_poll: None,
            state_dir: None,
            wait: Duration::ZERO,
            portals_may_be_missing: false,
            rdma: RdmaSource::default(),
            ended: Arc::new(|_| ()),
        })
    }
}

/// A server that runs, for all who use it. It is stopped by [`Server::stop`], not by being dropped.
pub type ServerHandle = Arc<Server>;

/// See [`ServerHandle`].
pub struct Server {
    config: ServerConfig,
    cores: u16,
    start: Instant,
    mailboxes: Mailboxes,
    flushes: Arc<FinalFlushes>,
    journal: Arc<Journal>,
    store: Arc<StateDir>,
    threads: Mutex<Vec<JoinHandle<io::Result<()>>>>,
    /// Held by the change that is being made, however long that takes.
    changing: Mutex<()>,
    /// Held for no longer than a look.
    served: Mutex<Served>,
    notices: Mutex<Sender<Notice>>,
}

/// What is served now.
#[derive(Clone, Default)]
struct Served {
    inventory: Arc<Inventory>,
    units: BTreeMap<String, Arc<ServedUnit>>,
    /// Numbers for units in slots that were used before.
    free: Vec<UnitId>,
    /// Slots that were used.
    slots: u32,
    portals: Vec<Portal>,
    /// Portals that were ever listened to.
    portal_count: u32,
    fc_ports: Vec<FcPortName>,
    /// Fibre Channel ports that were ever opened.
    fc_count: u16,
    views: Arc<Views>,
}

/// A portal that is listened to.
#[derive(Clone, Debug)]
struct Portal {
    number: u32,
    /// As it was asked for.
    asked: SocketAddr,
    /// With the port that was picked.
    bound: SocketAddr,
    /// Why nothing listens there yet.
    missing: Option<String>,
    by_devices: DeviceListening,
}

/// Whether RDMA devices listen on a portal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DeviceListening {
    /// They are not to, or not before the portal itself is there.
    No,
    /// They do.
    Yes,
    /// They are to, and why they cannot yet.
    Missing(String),
}

impl Server {
    /// Starts cores that serve this. Every volume is opened and every portal bound before; where
    /// one cannot be, nothing is started. What opening did to files is noted in `undo`.
    ///
    /// # Errors
    ///
    /// What cannot be served, and why.
    pub fn start(
        config: ServerConfig,
        inventory: Inventory,
        undo: &UndoLog,
    ) -> Result<ServerHandle, ServeError> {
        let cores = core_count(&config)?;
        let store = Arc::new(StateDir::new(config.state_dir.as_deref()));
        let mut served = Served::default();
        let until = Instant::now() + config.wait;
        let preparation = Preparing {
            config: &config,
            store: &store,
            cores,
            until,
            required: &NONE,
            may_miss_portals: config.portals_may_be_missing,
        };
        let prepared = preparation.run(&mut served, inventory, undo)?;
        let (notices, noticed) = channel();
        let vanished = {
            let notices = notices.clone();
            move |what| {
                // At the end of the server nobody listens.
                let _ = notices.send(Notice::Vanished(what));
            }
        };
        let (start, flushes) = (Instant::now(), Arc::new(FinalFlushes::default()));
        let control = ControlCore::new(ControlCoreParts {
            config: Arc::clone(&prepared.change.config),
            views: Arc::default(),
            units: Vec::new(),
            vanished: Box::new(vanished),
            device_came: Box::new(tell_of_device(notices.clone())),
            store: Arc::clone(&store) as _,
            flushes: Arc::clone(&flushes),
            cores,
            near_core: near_core(config.pin.clone()),
            random: Box::new(random),
            local_address: |socket| ::io::tcp::local_address(socket),
            segment_size: |socket| ::io::tcp::segment_size(socket),
        });
        let common = cores::Common::new(&config, cores, start);
        let started = cores::start(cores, &common, Box::new(control), &config.ended);
        let (mailboxes, threads) = started.map_err(|cause| cores::cannot_start(cores, cause))?;
        let handle = Self {
            config,
            cores,
            start,
            mailboxes,
            flushes,
            journal: common.journal,
            store,
            threads: Mutex::new(threads),
            changing: Mutex::default(),
            served: Mutex::default(),
            notices: Mutex::new(notices),
        };
        let served = handle.commit(served, prepared)?;
        *handle.served() = served;
        let handle = Arc::new(handle);
        absent::look_after(&handle, noticed);
        handle.notice(Notice::Absent);
        Ok(handle)
    }

    /// Serves this from now on, in place of what was served. It is how a control plane adds,
    /// resizes and removes LUNs at run time. Hosts see all of the change or none of it. I/O on what
    /// stays the same goes on.
    ///
    /// # Errors
    ///
    /// What cannot be served, and why; nothing has changed then.
    pub fn apply(&self, inventory: Inventory) -> Result<(), ServeError> {
        self.apply_after(inventory, &BTreeSet::new(), &mut || Ok(()))
    }

    /// The same. The volumes of the units in `required` have to be there, though their rows let
    /// them be absent. `persist` is called when all has been prepared and nothing is visible yet.
    ///
    /// # Errors
    ///
    /// What cannot be served, and why, or that it could not be kept; nothing has changed then.
    pub fn apply_after(
        &self,
        inventory: Inventory,
        required: &BTreeSet<String>,
        persist: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), ServeError> {
        let _turn = self.turn();
        let undo = UndoLog::default();
        let preparation = Preparing {
            required,
            ..self.preparing(Instant::now())
        };
        let mut next = self.served().clone();
        let prepared = preparation.run(&mut next, inventory, &undo);
        let made = prepared.and_then(|prepared| self.make(next, prepared, persist));
        let next = made.inspect_err(|_| drop(undo.undo()))?;
        *self.served() = next;
        undo.forget();
        self.notice(Notice::Absent);
        Ok(())
    }

    /// Makes a change that was prepared, once it is kept.
    fn make(
        &self,
        next: Served,
        prepared: Prepared,
        persist: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<Served, ServeError> {
        let growth = prepared.growth.clone();
        let kept = persist().map_err(ServeError::NotKept);
        let grown = kept.and_then(|()| {
            let grown = growth.make();
            grown.map_err(|error| prepare::cannot_extend(&error))
        });
        let made = grown.and_then(|()| self.commit(next, prepared));
        made.inspect_err(|_| growth.release())
    }

    /// One change is made at a time. Nobody else waits for it.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notice(&self, notice: Notice) {
        let notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a thread that looks after them, volumes that are absent stay so.
        let _ = notices.send(notice);
    }

    fn preparing(&self, until: Instant) -> Preparing<'_> {
        Preparing {
            config: &self.config,
            store: &self.store,
            cores: self.cores,
            until,
            required: &NONE,
            may_miss_portals: false,
        }
    }

    /// Has the cores make a change; returns what is served then.
    fn commit(&self, next: Served, prepared: Prepared) -> Result<Served, ServeError> {
        self.register_locked();
        let (done, made) = channel();
        let mut change = prepared.change;
        change.done = Box::new(move |result| drop(done.send(result)));
        self.to_control(CoreMessage::Change(Box::new(change)));
        // Without an answer the server has ended meanwhile.
        made.recv().unwrap_or(Err(ChangeError::Stopping))?;
        for (statistics, volume) in prepared.measured {
            statistics.set_gauge(VolumeGauge::new(&volume));
        }
        prepared.gone.iter().for_each(|gone| gone.clear_gauge());
        // No core is told of an address by which the volume is the same one.
        let units = next.units.iter();
        self.flushes.rename(units.filter_map(|(name, unit)| {
            let row = next.inventory.units.get(name)?;
            Some((unit.id.slot, &*row.written))
        }));
        for closed in prepared.close_fc {
            self.to_all(|| CoreMessage::CloseFcPort(closed));
        }
        let cores = (0..self.cores).rev().cycle();
        for (mut attachment, core) in prepared.open_fc.into_iter().zip(cores) {
            attachment.open_branches(self.cores - 1);
            let message = CoreMessage::OpenFcPort(Box::new(attachment));
            self.mailboxes.send(CoreId(core), message);
        }
        Ok(next)
    }

    /// Has RDMA devices know the memory of locked RAM disks.
    fn register_locked(&self) {
        self.config.rdma.register_locked(&self.config.open.memory);
    }

    /// What is served now.
    #[must_use]
    pub fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.served().inventory)
    }

    /// Logs what the volumes have gathered of what went through them.
    pub fn tell_gathered(&self) {
        tell_gathered(&self.volumes());
    }

    fn volumes(&self) -> Vec<Arc<dyn Volume>> {
        let served = self.served();
        let units = served.units.values();
        units.map(|unit| Arc::clone(&unit.volume)).collect()
    }

    /// Asks every initiator to log out, and ends the cores when they have, or had their time.
    pub fn stop(&self) {
        self.to_all(|| CoreMessage::Stop);
    }

    /// How many cores there are.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.cores
    }

    /// Waits for the end of this core, which was told.
    ///
    /// # Errors
    ///
    /// Why it failed, if it did.
    pub fn join(&self, core: CoreId) -> Result<(), ServeError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if usize::from(core.0) >= threads.len() {
            return Ok(());
        }
        cores::join(threads.swap_remove(core.0.into()))
    }

    /// Waits for the end of all cores, after [`Self::stop`], and tells what was not flushed.
    ///
    /// # Errors
    ///
    /// Why a core failed; else the volumes whose flush failed or has not ended.
    pub fn wait(&self) -> Result<(), ServeError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.drain(..).try_for_each(cores::join)?;
        self.not_flushed()
    }

    pub(crate) fn not_flushed(&self) -> Result<(), ServeError> {
        let served = self.served();
        let units = served.units.values();
        let volumes = units.map(|unit| (unit.id.slot, &*unit.volume));
        units::not_flushed(&self.flushes, &volumes.collect())
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_control(&self, message: CoreMessage) {
        self.mailboxes.send(CoreId(0), message);
    }

    fn to_all(&self, message: impl Fn() -> CoreMessage) {
        for core in 0..self.cores {
            self.mailboxes.send(CoreId(core), message());
        }
    }
}

/// Tells that an RDMA device is used. At the end of the server nobody listens.
fn tell_of_device(notices: Sender<Notice>) -> impl FnMut() + Send {
    move || {
        let _ = notices.send(Notice::DeviceCame);
    }
}

static NONE: BTreeSet<String> = BTreeSet::new();

/// Fresh random bytes; the kernel always has some after boot.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}

/// How many cores to start, all of which can be.
fn core_count(config: &ServerConfig) -> Result<u16, ServeMisuse> {
    let available = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let count = match &config.pin {
        Some(list) => {
            MachineMisuse::look_for(list)?;
            list.numbers().len()
        }
        None => config.threads.unwrap_or_else(available).get(),
    };
    Ok(count.min(MOST_THREADS.into()) as u16)
}

/// Tells the core on whose CPU the packets of a connection come in. The kernel moves that CPU along
/// with the thread that receives, if it steers flows (RFS): so it is asked before anything was
/// received.
fn near_core(pin: Option<CpuList>) -> NearCore {
    Box::new(move |socket| {
        let cpus = pin.as_ref()?.numbers();
        let cpu = ::io::tcp::incoming_cpu(socket)?;
        let core = cpus.iter().position(|one| *one == cpu)?;
        Some(CoreId(core as u16))
    })
}

#[cfg(test)]
mod tests;
