//! What core 0 alone has: logins, the registry of sessions, and the owners of units.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use block::volume::Volume;
use iscsi::names;
use iscsi::parameters::Parameters;
use iscsi::target::{
    AdmissionWish, Registry, SessionIdentity, SessionScope, TargetConfig, listens,
};
use scsi::medium::Now;
use scsi::nexus::{Nexus, NexusIdentity};
use scsi::owner::{OwnerOutput, UnitOwner};
use scsi::unit::{CoreId, UnitId};

use super::change_steps::Changes;
use super::event_key::SlotKey;
use super::iwarp::IwarpOffer;
use super::logins::Logins;
use super::nexus_table::DepartedInitiators;
use super::session_balancer::SessionBalancer;
use super::units::Store;
use super::volumes::VolumeWatch;
use crate::change::NewUnit;
use crate::flushes::FinalFlushes;
use crate::mailbox::SessionInfo;
use crate::views::Views;
use runtime::journal::UnsavedReservations;
use runtime::lockfile::LockFile;

/// A unit, as core 0 alone has it.
pub struct ControlUnit {
    pub(super) id: UnitId,
    pub(super) owner: UnitOwner,
    /// Looked after where it can grow.
    pub(super) volume: Arc<dyn Volume>,
    /// The address of the volume.
    pub(super) name: String,
    /// Where its reservations are kept.
    pub(super) key: String,
    #[expect(dead_code, reason = "held")]
    lock: Option<Arc<LockFile>>,
}

impl ControlUnit {
    /// A unit of a server with this many cores.
    #[must_use]
    pub fn new(new: NewUnit, cores: u16) -> Self {
        Self {
            id: new.id,
            owner: UnitOwner::new(new.state, cores),
            volume: new.volume,
            name: new.name,
            key: new.key,
            lock: new.lock,
        }
    }
}

/// Marks the requests of core 0 itself to owners. Device servers have no such numbers.
pub(super) const RESERVED: u64 = 1 << 63;

/// What core 0 alone has.
pub struct ControlCore {
    pub(super) config: Arc<TargetConfig>,
    /// What everybody sees.
    pub(super) views: Arc<Views>,
    pub(super) changes: Changes,
    /// Units that the change in progress brings.
    pub(super) arriving: Vec<UnitId>,
    /// Locks of all blocks that it holds: units, requests, and whether they were granted.
    pub(super) locks: Vec<(UnitId, u64, bool)>,
    /// Sessions that have a core.
    pub(super) sessions: BTreeMap<u16, SessionInfo>,
    /// Whom to tell when a session has ended.
    pub(super) dropping: Vec<(u16, Sender<()>)>,
    pub(super) registry: Registry,
    pub(super) ports: DepartedInitiators<SessionIdentity>,
    /// On which core each session lives.
    pub(super) balancer: SessionBalancer,
    /// Where the packets of a connection come in.
    pub(super) near_core: NearCore,
    /// Logins that wait for the session with that TSIH to end.
    pub(super) waiting: Vec<(u16, SlotKey, AdmissionWish)>,
    /// Connections that have not logged in, by TCP.
    pub(super) logins: Logins,
    /// The same by RDMA devices. There a peer may claim any address, as nothing comes back before
    /// it has its place, so these places are apart.
    pub(super) device_logins: Logins,
    /// When it was told last that no connection could be accepted.
    pub(super) not_accepted: Option<Now>,
    /// By slot.
    units: Vec<Option<ControlUnit>>,
    pub(super) store: Arc<dyn Store>,
    pub(super) unsaved: UnsavedReservations,
    pub(super) flushes: Arc<FinalFlushes>,
    pub(super) looks: VolumeWatch,
    pub(super) vanished: Box<dyn FnMut(Vanished) + Send>,
    pub(super) device_came: Box<dyn FnMut() + Send>,
    pub(super) random: Box<dyn FnMut() -> [u8; 64] + Send>,
    pub(super) local_address: fn(&OwnedFd) -> io::Result<SocketAddr>,
    pub(super) segment_size: fn(&OwnedFd) -> usize,
}

/// Tells the core on whose CPU the packets of a connection come in, where that is known.
pub type NearCore = Box<dyn Fn(&OwnedFd) -> Option<CoreId> + Send>;

/// What can no longer be used, until it is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vanished {
    /// The volume of this unit.
    Volume(UnitId),
    /// An RDMA device that listened on the portal of this number.
    RdmaDevice(u32),
}

/// What [`ControlCore::new`] needs.
pub struct ControlCoreParts {
    /// What logins go by.
    pub config: Arc<TargetConfig>,
    /// What everybody sees.
    pub views: Arc<Views>,
    /// The units that are there from the start.
    pub units: Vec<ControlUnit>,
    /// Told what can no longer be used.
    pub vanished: Box<dyn FnMut(Vanished) + Send>,
    /// Told when an RDMA device is used that was not before.
    pub device_came: Box<dyn FnMut() + Send>,
    /// Where they keep their state.
    pub store: Arc<dyn Store>,
    /// Where flushes at the end are told.
    pub flushes: Arc<FinalFlushes>,
    /// How many cores there are.
    pub cores: u16,
    /// Tells the core on whose CPU the packets of a connection come in, where that is known.
    pub near_core: NearCore,
    /// Gives fresh random bytes.
    pub random: Box<dyn FnMut() -> [u8; 64] + Send>,
    /// Tells the address that a connection came to.
    pub local_address: fn(&OwnedFd) -> io::Result<SocketAddr>,
    /// Tells how many bytes a segment of a connection has.
    pub segment_size: fn(&OwnedFd) -> usize,
}

impl ControlCore {
    /// With no session yet.
    #[must_use]
    pub fn new(parts: ControlCoreParts) -> Self {
        let mut new = Self {
            registry: Registry::new(parts.config.limits.sessions),
            ports: DepartedInitiators::default(),
            config: parts.config,
            views: parts.views,
            changes: Changes::default(),
            arriving: Vec::new(),
            locks: Vec::new(),
            sessions: BTreeMap::new(),
            dropping: Vec::new(),
            balancer: SessionBalancer::new(parts.cores),
            near_core: parts.near_core,
            waiting: Vec::new(),
            logins: Logins::default(),
            device_logins: Logins::default(),
            not_accepted: None,
            units: Vec::new(),
            store: parts.store,
            unsaved: UnsavedReservations::default(),
            flushes: parts.flushes,
            looks: VolumeWatch::default(),
            vanished: parts.vanished,
            device_came: parts.device_came,
            random: parts.random,
            local_address: parts.local_address,
            segment_size: parts.segment_size,
        };
        parts
            .units
            .into_iter()
            .for_each(|unit| new.insert_unit(unit));
        new
    }

    pub(super) fn insert_unit(&mut self, unit: ControlUnit) {
        let slot = unit.id.index();
        self.flushes.insert(unit.id.slot, unit.name.clone());
        if self.units.len() <= slot {
            self.units.resize_with(slot + 1, || None);
        }
        self.units[slot] = Some(unit);
    }

    /// Nothing of a unit is left on any core.
    pub(super) fn dismiss_unit(&mut self, unit: UnitId) {
        if self.unit(unit).is_some() {
            self.units[unit.index()] = None;
            self.flushes.remove(unit.slot);
            self.looks.forget(unit);
        }
    }

    pub(super) fn units(&self) -> impl Iterator<Item = &ControlUnit> {
        self.units.iter().flatten()
    }

    pub(super) fn unit(&self, unit: UnitId) -> Option<&ControlUnit> {
        let found = self.units.get(unit.index())?.as_ref();
        found.filter(|one| one.id == unit)
    }

    pub(super) fn unit_mut(&mut self, unit: UnitId) -> Option<&mut ControlUnit> {
        let found = self.units.get_mut(unit.index())?.as_mut();
        found.filter(|one| one.id == unit)
    }

    pub(super) fn poll_owner(&mut self, unit: UnitId) -> Option<OwnerOutput> {
        self.unit_mut(unit)?.owner.poll()
    }

    /// Whether a session like this may be, by what is configured now, if it came to our address
    /// `local`.
    pub(super) fn admits(&self, identity: &SessionIdentity, local: SocketAddr) -> bool {
        let (initiator, SessionScope::Node(name, tag)) = identity else {
            return true;
        };
        let mut nodes = self.config.nodes.iter();
        let Some(node) = nodes.find(|node| node.name == *name) else {
            return false;
        };
        let group = node.portal_group_at(local);
        let portals = &self.config.portals;
        node.access.admits(&initiator.name)
            && group.is_some_and(|group| group.tag == *tag)
            && (portals.is_empty() || listens(portals, local))
    }

    /// What a connection to `local` is offered that begins as one of iSER.
    pub(super) fn iwarp_offer(
        &mut self,
        socket: &OwnedFd,
        local: SocketAddr,
    ) -> Option<IwarpOffer> {
        let portals = &self.config.iser;
        portals.take(local).then(|| {
            let segment_size = (self.segment_size)(socket);
            IwarpOffer::new(portals, segment_size, &(self.random)())
        })
    }

    /// The other sessions with the target of this one, by whichever portal group.
    pub(super) fn sessions_beside(&self, tsih: u16) -> Vec<u16> {
        let Some((_, SessionScope::Node(target, _))) = self.registry.identity(tsih) else {
            return Vec::new();
        };
        let is_beside = |(_, scope): &SessionIdentity, _| match scope {
            SessionScope::Node(name, _) => name == target,
            SessionScope::Portal(_) => false,
        };
        let sessions = self.registry.sessions_that(is_beside);
        sessions.filter(|other| *other != tsih).collect()
    }

    /// The I_T nexus of a session; none for discovery.
    pub(super) fn nexus(&self, session: &Parameters) -> Option<Nexus> {
        let name = &session.node()?.name;
        let (initiator, level) = (&session.initiator.name, session.keys.protocol_level);
        let target = self.views.device(name, initiator, level)?;
        let initiator = names::transport_id(&session.initiator).into();
        let identity = Arc::new(NexusIdentity {
            initiator,
            port: session.target_port()?,
        });
        Some(Nexus {
            identity,
            target: Arc::clone(target),
        })
    }
}
