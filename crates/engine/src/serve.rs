//! `lunar serve`: exports volumes over iSCSI until it is told to stop.

mod cores;
mod fc_ports;
pub mod options;
mod orders;
mod plan;
mod portals;
mod secrets;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::io::limits::processor_quota;
use ::io::memory::MemoryLimit;
use ::io::tcp;
use block::file::UndoLog;
use block::identity::hex;
use block::volume::Volume;
use rustix::io::Errno;
use scsi::owner::UnitOwner;
use scsi::reserve::Reservations;
use scsi::unit::{CoreId, UnitId, UnitState};

use crate::core::{ControlCore, ControlCoreParts};
use crate::flushes::FinalFlushes;
use crate::identity::Designation;
use crate::mailbox::{CoreMessage, Mailboxes};
use crate::state::StateDir;
use address::{Address, FcoeAddress, FcoeOptions};
use block::volumes::tell_gathered;
use client::open::{OpenOptions, REPLACEMENT, secret};
use cores::{Common, EntryPoints};
use fc_ports::FcPortName;
use options::{ReadyLun, ServeError, ServeOptions};
use orders::ServerOrder;
pub use orders::{Orders, Stopper};
use plan::UnitPlan;
use runtime::journal::Journal;
use runtime::lockfile::LockFile;
use runtime::n_port::IdlePorts;

/// Serves what `options` say. Opens every volume and binds every portal first, then calls `ready`
/// once with the LUNs in their order, then serves until told to stop.
///
/// The first order to stop is a graceful shutdown: peers get an asynchronous message and 5 s,
/// volumes are flushed. The second ends it at once with
/// [`ServeError::NotFlushed`], or [`ServeError::CutShort`] where nothing was to be flushed.
pub fn run(
    options: &ServeOptions,
    orders: &Orders,
    ready: impl FnOnce(&[ReadyLun]),
) -> Result<(), ServeError> {
    options.validate()?;
    // Fewer descriptors only mean fewer sessions.
    let _ = ::io::limits::raise_open_files();
    let undo = &orders.undo;
    let server = start(options, orders, undo.clone()).inspect_err(|_| drop(undo.undo()))?;
    // From here on initiators write to the files.
    undo.forget();
    ready(&server.luns);
    let volumes = &server.volumes;
    let ended = wait(
        orders,
        &server.office,
        volumes,
        server.threads,
        &server.flushes,
    );
    tell_gathered(volumes);
    ended
}

/// A server whose cores serve.
struct Server {
    luns: Vec<ReadyLun>,
    volumes: Vec<Arc<dyn Volume>>,
    flushes: Arc<FinalFlushes>,
    office: Mailboxes,
    threads: Vec<JoinHandle<io::Result<()>>>,
    #[expect(dead_code, reason = "held")]
    locks: Vec<LockFile>,
}

fn start(options: &ServeOptions, orders: &Orders, undo: UndoLog) -> Result<Server, ServeError> {
    let start = Instant::now();
    let units = plan::units(options)?;
    let mut config = plan::config(options, &units)?;
    let open_options = open_options(options, undo)?;
    secrets::check(options, &units, &open_options)?;
    let volumes = plan::open(&units, &open_options)?;
    let called = plan::designations(&units, &volumes)?;
    let (listeners, portals) = bind(options)?;
    let (ports, berths) = fc_ports::open(options, &units)?;
    let store = Arc::new(state_dir(options, &called));
    let (states, locks) = states(options, &units, &volumes, &called, &store)?;
    let luns = ready_luns(&units, &volumes, &portals::reachable(&portals), &ports);
    config.portals = portals;
    let names = units.iter().map(|unit| unit.written.clone());
    let flushes = Arc::new(FinalFlushes::new(names.collect()));
    let count = core_count(options);

    let owners = states
        .iter()
        .map(|state| UnitOwner::new(state.clone(), count))
        .collect();
    let front = ControlCore::new(ControlCoreParts {
        config: Arc::new(config),
        devices: plan::devices(&units),
        owners,
        store,
        flushes: Arc::clone(&flushes),
        volumes: volumes.clone(),
        cores: count,
        random: Box::new(random),
        local_address: |socket| tcp::local_address(socket),
    });
    let common = Common {
        ring: options.ring,
        polling: options.poll.within(processor_quota(), count),
        units: states.into_iter().map(Arc::new).collect(),
        volumes: volumes.clone(),
        journal: Arc::new(Journal::default()),
        pool: cores::pool_bytes(::io::limits::address_space(), count),
        start,
    };
    let entrance = EntryPoints {
        front: Box::new(front),
        listeners,
        berths,
    };
    let (office, threads) =
        cores::start(count, &common, entrance, orders).map_err(|cause| ServeError::Machine {
            what: cannot_start(count, &cause),
            cause,
        })?;
    Ok(Server {
        luns,
        volumes,
        flushes,
        office,
        threads,
        locks,
    })
}

fn cannot_start(count: u16, cause: &io::Error) -> String {
    match Errno::from_io_error(cause) {
        Some(Errno::NOMEM | Errno::AGAIN) if ::io::limits::address_space().is_some() => format!(
            "cannot start {count} cores within the limit of address space: raise it (ulimit -v), \
             or give a smaller --threads"
        ),
        Some(_) => format!("cannot start {count} cores: give a smaller --threads"),
        None => format!("cannot start {count} cores"),
    }
}

/// Fresh random bytes; the kernel always has some after boot.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}

fn open_options(options: &ServeOptions, undo: UndoLog) -> Result<OpenOptions, ServeError> {
    let limit = match options.memory_limit {
        Some(limit) => limit,
        None => ::io::limits::available_memory().map_err(|cause| ServeError::Machine {
            what: "cannot determine the available memory: give --memory-limit".into(),
            cause,
        })?,
    };
    Ok(OpenOptions {
        block_size: options
            .units
            .block_size
            .map(options::BlockSizeOption::bytes),
        read_only: options.units.readonly,
        as_is: false,
        keep_identity: true,
        undo: Some(undo),
        memory: Arc::new(MemoryLimit::new(limit)),
        initiator: format!("{}:initiator", options.iqn),
        secret: secret("LUNAR_SECRET"),
        mutual_secret: secret("LUNAR_MUTUAL_SECRET"),
        ports: IdlePorts::default(),
        replacement: REPLACEMENT,
        wait_until: Some(Instant::now() + options.wait),
    })
}

fn bind(options: &ServeOptions) -> Result<(Vec<OwnedFd>, Vec<SocketAddr>), ServeError> {
    let sockets = tcp::TcpOptions {
        // Idle sessions are asked by NOP-In more seldom (`iscsi/src/session/nop.rs`).
        keepalive: Some(options.limits.nop_interval),
        ..tcp::TcpOptions::default()
    };
    let mut bound = (Vec::new(), Vec::new());
    for &portal in &options.listen {
        let failed = |cause: io::Error| ServeError::Listen {
            portal,
            cause: cannot_listen(&cause),
        };
        let listener = tcp::listen(portal, &sockets).map_err(failed)?;
        bound.1.push(tcp::local_address(&listener).map_err(failed)?);
        bound.0.push(listener);
    }
    Ok(bound)
}

fn cannot_listen(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
        io::ErrorKind::AddrNotAvailable => "no interface here has this address".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "a port below 1024 needs a privilege (CAP_NET_BIND_SERVICE)".to_owned()
        }
        _ => cause.to_string(),
    }
}

/// Reservations are kept by what the unit calls itself: they hold for what initiators take for the
/// same disk, and for nothing else.
fn state_dir(options: &ServeOptions, called: &[Designation]) -> StateDir {
    let key = |called: &Designation| hex(&called.naa);
    let keys = called.iter().map(key).collect();
    StateDir::new(options.state_dir.as_deref(), keys)
}

/// The units at power on, with the reservations that outlived the last run, and what keeps other
/// servers from writing others in their place. A unit that is another one after a restart has none.
fn states(
    options: &ServeOptions,
    units: &[UnitPlan],
    volumes: &[Arc<dyn Volume>],
    called: &[Designation],
    store: &StateDir,
) -> Result<(Vec<UnitState>, Vec<LockFile>), ServeError> {
    let persistence = called.iter().any(|called| called.lasts) && is_writable(store);
    let (mut states, mut locks) = (Vec::new(), Vec::new());
    let until = Instant::now() + PATIENCE;
    for (id, (unit, called)) in units.iter().zip(called).enumerate() {
        let mut state = unit.state(options, &volumes[id], called);
        let id = UnitId::first(id as u32);
        state.persistence = persistence && called.lasts;
        if state.persistence {
            locks.push(lock(unit, &called.serial, store, id, until)?);
        }
        // A gateway without reservations must not be bound by earlier ones: no host could end them.
        if called.lasts && !state.traits.shared {
            let reservations = load(store, id)?;
            state.reservations = Arc::new(reservations.unwrap_or_default());
        }
        states.push(state);
    }
    Ok((states, locks))
}

fn load(store: &StateDir, id: UnitId) -> Result<Option<Reservations>, ServeError> {
    let unusable = |cause| ServeError::Machine {
        what: format!(
            "the reservations in {} cannot be read (if the file is removed, there are none)",
            store.path(id).display()
        ),
        cause,
    };
    let Some(bytes) = store.load(id).map_err(unusable)? else {
        return Ok(None);
    };
    let kept = Reservations::from_bytes(&bytes);
    let kept = kept.map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause));
    kept.map(Some).map_err(unusable)
}

fn lock(
    unit: &UnitPlan,
    serial: &str,
    store: &StateDir,
    id: UnitId,
    until: Instant,
) -> Result<LockFile, ServeError> {
    let (written, path) = (&unit.written, store.path(id));
    let (what, cause) = match lock_in_time(store, id, until) {
        Ok(Some(lock)) => return Ok(lock),
        Ok(None) => (
            format!(
                "another server serves {written}, or a disk with the same serial number {serial}, \
                 and keeps its reservations in {}: stop that server; serve a snapshot or clone \
                 with --serial {}=TEXT",
                path.display(),
                unit.number
            ),
            io::ErrorKind::ResourceBusy.into(),
        ),
        Err(cause) => (
            format!("cannot lock the reservations in {}", path.display()),
            cause,
        ),
    };
    Err(ServeError::Machine { what, cause })
}

/// A server that was told to stop may still be at it.
fn lock_in_time(store: &StateDir, id: UnitId, until: Instant) -> io::Result<Option<LockFile>> {
    loop {
        match store.lock(id) {
            Ok(None) if Instant::now() < until => thread::sleep(PAUSE),
            locked => return locked,
        }
    }
}

/// As long as a portal that is in use is tried again.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Whether reservations can be made to last. Serving does without where they cannot: initiators
/// that ask for it are told so.
fn is_writable(store: &StateDir) -> bool {
    let probed = store.probe();
    if let Err(cause) = &probed {
        tracing::warn!(
            "{store} cannot be written ({cause}): persistent reservations will not outlive this \
             server"
        );
    }
    probed.is_ok()
}

/// Each LUN by iSCSI, if there are portals, and by each Fibre Channel port.
fn ready_luns(
    units: &[UnitPlan],
    volumes: &[Arc<dyn Volume>],
    portals: &[SocketAddr],
    ports: &[FcPortName],
) -> Vec<ReadyLun> {
    let ready = |(unit, volume): (&UnitPlan, &Arc<dyn Volume>)| {
        let traits = volume.traits();
        let lun = |address: String, portals: Vec<String>, target: String| ReadyLun {
            address,
            portals,
            target,
            lun: unit.lun,
            size_bytes: traits.blocks * u64::from(traits.block_size),
            block_size: traits.block_size,
            volume: unit.written.clone(),
        };
        let iscsi = portals.first().map(|first| {
            let address = format!("iscsi://{first}/{}/{}", unit.target, unit.lun);
            let portals = portals.iter().map(SocketAddr::to_string).collect();
            lun(address, portals, unit.target.clone())
        });
        let fcoe = ports.iter().map(|FcPortName { place, wwpn }| {
            let address = Address::Fcoe(FcoeAddress {
                place: place.clone(),
                port_name: *wwpn,
                lun: unit.lun,
                options: FcoeOptions::default(),
            });
            lun(
                address.to_string(),
                vec![place.to_string()],
                wwpn.to_string(),
            )
        });
        iscsi.into_iter().chain(fcoe).collect::<Vec<_>>()
    };
    units.iter().zip(volumes).flat_map(ready).collect()
}

fn core_count(options: &ServeOptions) -> u16 {
    let available = || thread::available_parallelism().unwrap_or(std::num::NonZeroUsize::MIN);
    options
        .threads
        .unwrap_or_else(available)
        .get()
        .min(usize::from(options::MOST_THREADS)) as u16
}

/// Serves until told to stop, then until everything has ended, or told again. A core ends only when
/// told to, or when its ring fails.
fn wait(
    orders: &Orders,
    office: &Mailboxes,
    volumes: &[Arc<dyn Volume>],
    threads: Vec<JoinHandle<io::Result<()>>>,
    flushes: &FinalFlushes,
) -> Result<(), ServeError> {
    loop {
        match orders.next() {
            ServerOrder::Tell => tell_gathered(volumes),
            ServerOrder::Stop => break,
            ServerOrder::Ended(CoreId(core)) => {
                return join(threads.into_iter().skip(core.into()).take(1));
            }
        }
    }
    let mut left = threads.len();
    for core in 0..left {
        office.send(CoreId(core as u16), CoreMessage::Stop);
    }
    while left > 0 {
        match orders.next() {
            ServerOrder::Ended(_) => left -= 1,
            ServerOrder::Tell => tell_gathered(volumes),
            ServerOrder::Stop => {
                return not_flushed(flushes, volumes).and(Err(ServeError::CutShort));
            }
        }
    }
    join(threads.into_iter())?;
    not_flushed(flushes, volumes)
}

/// Only of volumes that have a cache now can something be lost. A remote one may have been opened
/// without.
fn not_flushed(flushes: &FinalFlushes, volumes: &[Arc<dyn Volume>]) -> Result<(), ServeError> {
    let has_cache = |volume: &dyn Volume| {
        let traits = volume.traits();
        traits.write_cache && !traits.read_only
    };
    let mut missing = flushes.missing();
    missing.retain(|(volume, _)| has_cache(&*volumes[*volume]));
    if missing.is_empty() {
        Ok(())
    } else {
        Err(ServeError::NotFlushed(
            missing.into_iter().map(|(_, name)| name).collect(),
        ))
    }
}

fn join(threads: impl Iterator<Item = JoinHandle<io::Result<()>>>) -> Result<(), ServeError> {
    for thread in threads {
        let ended = thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        ended.map_err(|cause| ServeError::Machine {
            what: "a core failed".into(),
            cause,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
