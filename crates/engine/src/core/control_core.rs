//! What core 0 alone has: logins, the registry of sessions, and the owners of units.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use block::volume::Volume;
use iscsi::names;
use iscsi::parameters::Parameters;
use iscsi::target::{AdmissionWish, Registry, TargetConfig};
use scsi::medium::Now;
use scsi::nexus::{Nexus, NexusIdentity, TargetDevice};
use scsi::owner::{OwnerOutput, UnitOwner};
use scsi::unit::{CoreId, UnitId};

use super::departed::DepartedInitiators;
use super::event_key::SlotKey;
use super::logins::Logins;
use super::units::Store;
use super::watch::VolumeWatch;
use crate::flushes::FinalFlushes;
use runtime::journal::UnsavedReservations;

/// What each node shows to a session, by the node's name and the session's iSCSIProtocolLevel.
pub type Devices = BTreeMap<(String, u8), Arc<TargetDevice>>;

/// What core 0 alone has.
pub struct ControlCore {
    pub(super) config: Arc<TargetConfig>,
    /// What each node shows, by its name.
    pub(super) devices: Devices,
    pub(super) registry: Registry,
    pub(super) ports: DepartedInitiators<iscsi::target::SessionIdentity>,
    /// Sessions on each core.
    pub(super) loads: Vec<u32>,
    /// On which core each session lives.
    pub(super) places: BTreeMap<u16, CoreId>,
    /// Logins that wait for the session with that TSIH to end.
    pub(super) waiting: Vec<(u16, SlotKey, AdmissionWish)>,
    /// Connections that have not logged in.
    pub(super) logins: Logins,
    /// When it was told last that no connection could be accepted.
    pub(super) not_accepted: Option<Now>,
    pub(super) owners: Vec<UnitOwner>,
    pub(super) store: Arc<dyn Store>,
    pub(super) unsaved: UnsavedReservations,
    pub(super) flushes: Arc<FinalFlushes>,
    pub(super) volumes: Vec<Arc<dyn Volume>>,
    pub(super) looks: VolumeWatch,
    pub(super) random: Box<dyn FnMut() -> [u8; 64] + Send>,
    pub(super) local_address: fn(&OwnedFd) -> io::Result<SocketAddr>,
}

/// What a front is made of.
pub struct ControlCoreParts {
    /// What logins go by.
    pub config: Arc<TargetConfig>,
    /// What each node shows.
    pub devices: Devices,
    /// The owners of the units, by `UnitId`.
    pub owners: Vec<UnitOwner>,
    /// Where they keep their state.
    pub store: Arc<dyn Store>,
    /// Where flushes at the end are told.
    pub flushes: Arc<FinalFlushes>,
    /// The volumes, by `UnitId`; those that can grow are looked after.
    pub volumes: Vec<Arc<dyn Volume>>,
    /// How many cores there are.
    pub cores: u16,
    /// Gives fresh random bytes.
    pub random: Box<dyn FnMut() -> [u8; 64] + Send>,
    /// Tells the address that a connection came to.
    pub local_address: fn(&OwnedFd) -> io::Result<SocketAddr>,
}

impl ControlCore {
    /// A front of these parts.
    #[must_use]
    pub fn new(parts: ControlCoreParts) -> Self {
        Self {
            registry: Registry::new(parts.config.limits.sessions),
            ports: DepartedInitiators::default(),
            config: parts.config,
            devices: parts.devices,
            loads: vec![0; usize::from(parts.cores)],
            places: BTreeMap::new(),
            waiting: Vec::new(),
            logins: Logins::default(),
            not_accepted: None,
            owners: parts.owners,
            store: parts.store,
            unsaved: UnsavedReservations::default(),
            flushes: parts.flushes,
            volumes: parts.volumes,
            looks: VolumeWatch::default(),
            random: parts.random,
            local_address: parts.local_address,
        }
    }

    pub(super) fn poll_owner(&mut self, unit: UnitId) -> Option<OwnerOutput> {
        self.owners.get_mut(unit.index())?.poll()
    }

    /// The core with the fewest sessions has the next one.
    pub(super) fn place(&mut self, tsih: u16) {
        let loads = self.loads.iter_mut().enumerate();
        let Some((core, load)) = loads.min_by_key(|(_, load)| **load) else {
            return;
        };
        *load += 1;
        self.places.insert(tsih, CoreId(core as u16));
    }

    pub(super) fn leave(&mut self, tsih: u16) {
        if let Some(core) = self.places.remove(&tsih) {
            self.loads[usize::from(core.0)] -= 1;
        }
    }

    /// The other sessions with the target of this one.
    pub(super) fn sessions_beside(&self, tsih: u16) -> Vec<u16> {
        let scope = self.registry.identity(tsih).map(|(_, scope)| scope);
        let sessions = self
            .registry
            .sessions()
            .filter(|session| Some(session.2) == scope);
        sessions
            .map(|session| session.0)
            .filter(|other| *other != tsih)
            .collect()
    }

    /// The I_T nexus of a session; none for discovery.
    pub(super) fn nexus(&self, session: &Parameters) -> Option<Nexus> {
        let name = session.node()?.name.clone();
        let target = self.devices.get(&(name, session.keys.protocol_level))?;
        // All portals are one portal group, so one SCSI target port (RFC 7143 §4.4.1).
        let initiator = names::transport_id(&session.initiator).into();
        let identity = Arc::new(NexusIdentity {
            initiator,
            port: names::PORTAL_GROUP,
        });
        Some(Nexus {
            identity,
            target: Arc::clone(target),
        })
    }
}
