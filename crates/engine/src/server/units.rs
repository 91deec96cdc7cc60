//! Units as a server opens them: their volumes, what they call themselves, and the reservations
//! that outlived the last server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

use block::identity::{digest, hex, serial};
use block::volume::Volume;
use client::open::OpenLeaves;
use runtime::lockfile::LockFile;
use scsi::reserve::Reservations;
use scsi::statistics::{SpaceUsage, UnitStatistics, UsageGauge};
use scsi::unit::{UnitId, UnitIdentity, UnitState};

use crate::flushes::FinalFlushes;
use crate::inventory::UnitRow;
use crate::serve::options::ServeError;
use crate::state::StateDir;

/// A unit that is served.
#[derive(Clone)]
pub(super) struct ServedUnit {
    pub(super) id: UnitId,
    pub(super) volume: Arc<dyn Volume>,
    pub(super) called: Designation,
    /// Its volume cannot be used now, and `volume` stands for it.
    pub(super) absence: Option<Absence>,
    pub(super) statistics: Arc<UnitStatistics>,
    /// What its volume was made of.
    pub(super) leaves: OpenLeaves,
    /// What keeps other servers from its reservations, for as long as core 0 has the unit.
    pub(super) lock: Weak<LockFile>,
}

/// Why a unit is without its volume, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// It could not be opened yet, so that nobody knows what it is.
    Unknown(Instant),
    /// It went while it was served.
    Vanished(Instant),
}

impl Absence {
    pub(super) const fn since(self) -> Instant {
        match self {
            Self::Unknown(since) | Self::Vanished(since) => since,
        }
    }
}

/// What a unit calls itself: as it was told, else as its volume is known.
pub(super) fn designation(name: &str, row: &UnitRow, volume: &dyn Volume) -> Designation {
    let called = by_serial(name, row, volume);
    Designation {
        naa: row.naa.clone().unwrap_or(called.naa),
        ..called
    }
}

fn by_serial(name: &str, row: &UnitRow, volume: &dyn Volume) -> Designation {
    if let Some(serial) = &row.serial {
        return Designation::of_serial(serial.clone());
    }
    let is_empty = volume.is_empty_at_start();
    let identity = volume.particulars().identity;
    match identity.filter(|_| !is_empty) {
        Some(identity) => Designation::of_volume(&identity),
        None => {
            if !is_empty {
                tracing::warn!(
                    "{} has no identity of its own: it is a new disk at each start \
                     (--serial {name}=TEXT keeps it the same)",
                    row.written
                );
            }
            Designation::passing(super::random())
        }
    }
}

/// A unit's state at power on.
pub(super) fn state(row: &UnitRow, volume: &Arc<dyn Volume>, called: &Designation) -> UnitState {
    let text =
        |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
    let identity = UnitIdentity {
        vendor: text(&row.vendor, "LUNAR"),
        product: text(&row.product, "VOLUME"),
        revision: revision(env!("CARGO_PKG_VERSION")),
        serial: called.serial.clone(),
        naa: called.naa.clone(),
        removable: row.removable,
    };
    let mut traits = volume.traits();
    traits.shared &= !row.sole_gateway;
    UnitState::new(identity, traits)
}

/// What INQUIRY has room for.
fn revision(version: &str) -> String {
    let cut: String = version.chars().take(4).collect();
    cut.trim_end_matches('.').to_owned()
}

/// Asks a volume what LOG SENSE is asked. A file system can take any time for its answer, as one of
/// a server that is away does: the last answer is kept, and a core has another thread ask.
#[derive(Debug)]
pub struct VolumeGauge {
    volume: Arc<dyn Volume>,
    last: Mutex<Option<SpaceUsage>>,
}

impl VolumeGauge {
    /// Of a volume that has just been opened; may block.
    #[must_use]
    pub fn new(volume: &Arc<dyn Volume>) -> Self {
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

/// Where a unit's reservations are kept: by what it calls itself, as they hold for what initiators
/// take for the same disk, and for nothing else.
pub(super) fn key(called: &Designation) -> String {
    hex(&called.naa)
}

/// Units that go with their locks, by the keys of their reservations: a unit that comes in the same
/// change, and is known by the same designator, goes on with both.
pub(super) type LocksOfDepartures = BTreeMap<String, (UnitId, Arc<LockFile>)>;

/// Where units that come find their reservations.
#[derive(Clone, Copy)]
pub(super) struct ReservationSource<'a> {
    pub(super) store: &'a StateDir,
    pub(super) is_writable: bool,
    pub(super) left: &'a LocksOfDepartures,
}

/// Gives a unit the reservations that outlived the last server, or the unit before it. What keeps
/// other servers from writing others in their place is returned. A unit that is another one after a
/// restart has none.
pub(super) fn restore(
    (name, row): (&str, &UnitRow),
    state: &mut UnitState,
    called: &Designation,
    keeping: ReservationSource<'_>,
) -> Result<Option<Arc<LockFile>>, ServeError> {
    let (key, store) = (key(called), keeping.store);
    state.persistence = keeping.is_writable && called.lasts;
    let mut held = None;
    if state.persistence {
        held = Some(match keeping.left.get(&key) {
            Some((_, lock)) => Arc::clone(lock),
            None => Arc::new(lock((name, row), called, store, &key)?),
        });
    }
    // A gateway without reservations must not be bound by earlier ones: no host could end them.
    if called.lasts && !state.traits.shared {
        let reservations = load(store, &key)?;
        state.reservations = Arc::new(reservations.unwrap_or_default());
    }
    Ok(held)
}

fn load(store: &StateDir, key: &str) -> Result<Option<Reservations>, ServeError> {
    let unusable = |cause: io::Error| {
        let spoilt = cause.kind() == io::ErrorKind::InvalidData;
        let way_out = if spoilt {
            " (if the file is removed, there are none)"
        } else {
            ""
        };
        let path = store.path(key);
        ServeError::Machine {
            what: format!(
                "the reservations in {} cannot be read{way_out}",
                path.display()
            ),
            cause,
        }
    };
    let Some(bytes) = store.load(key).map_err(unusable)? else {
        return Ok(None);
    };
    let kept = Reservations::from_bytes(&bytes);
    let kept = kept.map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause));
    kept.map(Some).map_err(unusable)
}

fn lock(
    (name, row): (&str, &UnitRow),
    called: &Designation,
    store: &StateDir,
    key: &str,
) -> Result<LockFile, ServeError> {
    let (written, path) = (&row.written, store.path(key));
    let (what, cause) = match lock_in_time(store, key) {
        Ok(Some(lock)) => return Ok(lock),
        Ok(None) => (
            format!(
                "another server serves {written}, or a disk with the same serial number {}, and \
                 keeps its reservations in {}: stop that server; serve a snapshot or clone with \
                 --serial {name}=TEXT",
                called.serial,
                path.display(),
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
fn lock_in_time(store: &StateDir, key: &str) -> io::Result<Option<LockFile>> {
    let until = Instant::now() + PATIENCE;
    loop {
        match store.lock(key) {
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
pub(super) fn is_writable(store: &StateDir) -> bool {
    let probed = store.probe();
    if let Err(cause) = &probed {
        tracing::warn!(
            "{store} cannot be written ({cause}): persistent reservations will not outlive this \
             server"
        );
    }
    probed.is_ok()
}

/// The volumes that were not flushed, where something can be lost by that. Only those that have a
/// cache now can lose something: a remote one may have been opened without.
pub(super) fn not_flushed(
    flushes: &FinalFlushes,
    volumes: &BTreeMap<u32, &dyn Volume>,
) -> Result<(), ServeError> {
    let has_cache = |slot: &u32| {
        let traits = volumes.get(slot).map(|volume| volume.traits());
        traits.is_none_or(|traits| traits.write_cache && !traits.read_only)
    };
    let mut missing = flushes.missing();
    missing.retain(|(slot, _)| has_cache(slot));
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.into_iter().map(|(_, name)| name);
    Err(ServeError::NotFlushed(names.collect()))
}

/// Serial number and NAA designator of a unit.
///
/// Both follow from the identity of the volume ([`block::identity::Details::identity`]) and
/// from nothing else: not from its address, its LUN, its target or the machine's state directory.
/// The designator follows from the serial number, so `--serial` with the serial number of before
/// gives back both. A volume that comes back empty, and one that nothing tells from others, gets a
/// new serial number each time it is opened: initiators must not go on with stale caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Designation {
    /// For VPD 80h.
    pub(crate) serial: String,
    /// Big-endian. Unless the unit was told to have another one, it is locally assigned, NAA 3h
    /// (SPC-5 §7.7.6.6.3), and has 8 bytes: a registered one would take an OUI, which this project
    /// does not have.
    pub(crate) naa: Vec<u8>,
    /// Whether the unit is known by it again when it is served the next time.
    pub(crate) lasts: bool,
}

impl Designation {
    /// Of a volume with this identity.
    #[must_use]
    pub(crate) fn of_volume(identity: &str) -> Self {
        Self::of_serial(serial(identity))
    }

    /// Of a unit with this serial number.
    #[must_use]
    pub(crate) fn of_serial(serial: String) -> Self {
        let mut naa = digest(&[b"designator of", serial.as_bytes()])[..8].to_vec();
        naa[0] = 0x30 | naa[0] & 0x0f;
        Self {
            serial,
            naa,
            lasts: true,
        }
    }

    /// Of a volume that is another one each time; `random` bytes make its serial number.
    #[must_use]
    pub(crate) fn passing(random: [u8; 8]) -> Self {
        Self {
            lasts: false,
            ..Self::of_serial(hex(&random))
        }
    }
}

#[cfg(test)]
mod tests;
