//! The nexuses of a core: its connections, from accept until their last task has ended, its remote
//! ports of Fibre Channel, and initiators that were here before.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use ::io::ring::SocketId;
use fc::remote::RemoteId;
use scsi::nexus::AttentionHistory;
use slab::Slab;

use super::connection::{ConnectionPhase, CoreConnection};
use super::event_key::{GENERATIONS, SlotKey};

/// Connections by slot. The slot of a session is its nexus number, so what the device server says
/// finds its connection by an index. Nexuses of Fibre Channel have slots among them.
#[derive(Default)]
pub(super) struct NexusTable {
    slots: Slab<NexusOwner>,
    /// The connections of sessions by TSIH, as a target that is reset ends all of its sessions by
    /// their handles.
    sessions: HashMap<u16, SlotKey>,
    generation: u32,
}

/// Where a nexus is.
pub(super) enum NexusOwner {
    /// It is a session on a connection.
    Connection(Box<CoreConnection>),
    /// It is with a remote port.
    Remote(FcNexus),
    /// It is with a remote port of a port of another core.
    Branched(FcNexus),
}

/// A remote port of Fibre Channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FcNexus {
    /// Behind which port or branch of ours, by its number on this core.
    pub(super) fc_port: u32,
    pub(super) id: RemoteId,
}

impl NexusTable {
    pub(super) fn insert(
        &mut self,
        peer: IpAddr,
        socket: Option<SocketId>,
        phase: ConnectionPhase,
    ) -> SlotKey {
        self.generation = (self.generation + 1) % GENERATIONS;
        let entry = self.slots.vacant_entry();
        let key = SlotKey {
            slot: entry.key() as u32,
            generation: self.generation,
        };
        let connection = CoreConnection::new(key, peer, socket, phase);
        entry.insert(NexusOwner::Connection(Box::new(connection)));
        self.note_session(key);
        key
    }

    /// Makes a connection known by its TSIH; to be called when it gets one.
    pub(super) fn note_session(&mut self, key: SlotKey) {
        let tsih = self.get(key).and_then(|connection| connection.phase.tsih());
        if let Some(tsih) = tsih {
            self.sessions.insert(tsih, key);
        }
    }

    /// The slot of a nexus with a remote port.
    pub(super) fn insert_remote(&mut self, remote: FcNexus) -> u32 {
        self.slots.insert(NexusOwner::Remote(remote)) as u32
    }

    /// The same, for a port of another core.
    pub(super) fn insert_branched(&mut self, remote: FcNexus) -> u32 {
        self.slots.insert(NexusOwner::Branched(remote)) as u32
    }

    /// The slots in use.
    pub(super) fn slots(&self) -> Vec<u32> {
        self.slots.iter().map(|(slot, _)| slot as u32).collect()
    }

    pub(super) fn place(&mut self, slot: u32) -> Option<&mut NexusOwner> {
        self.slots.get_mut(slot as usize)
    }

    pub(super) fn at(&mut self, slot: u32) -> Option<&mut CoreConnection> {
        match self.place(slot)? {
            NexusOwner::Connection(connection) => Some(connection),
            NexusOwner::Remote(_) | NexusOwner::Branched(_) => None,
        }
    }

    pub(super) fn get(&mut self, key: SlotKey) -> Option<&mut CoreConnection> {
        self.at(key.slot).filter(|connection| connection.key == key)
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<CoreConnection>> {
        match self.vacate(slot)? {
            NexusOwner::Connection(connection) => Some(connection),
            NexusOwner::Remote(_) | NexusOwner::Branched(_) => None,
        }
    }

    /// Frees a slot.
    pub(super) fn vacate(&mut self, slot: u32) -> Option<NexusOwner> {
        let place = self.slots.try_remove(slot as usize)?;
        if let NexusOwner::Connection(connection) = &place
            && let Some(tsih) = connection.phase.tsih()
            && self.sessions.get(&tsih) == Some(&connection.key)
        {
            self.sessions.remove(&tsih);
        }
        Some(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CoreConnection> {
        self.slots.iter().filter_map(|(_, place)| match place {
            NexusOwner::Connection(connection) => Some(&**connection),
            NexusOwner::Remote(_) | NexusOwner::Branched(_) => None,
        })
    }

    pub(super) fn keys(&self) -> Vec<SlotKey> {
        self.iter().map(|connection| connection.key).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The connection of the session with this TSIH, unless its socket is gone.
    pub(super) fn find(&mut self, tsih: u16) -> Option<SlotKey> {
        let key = *self.sessions.get(&tsih)?;
        let connection = self.get(key)?;
        (!matches!(connection.phase, ConnectionPhase::Ending { .. })).then_some(key)
    }
}

/// What each initiator port without a nexus has been told, by its name, `N`, if it had one since
/// the target started. A port that is forgotten is told of power on, which covers all that it
/// missed.
pub(super) struct DepartedInitiators<N> {
    away: BTreeMap<N, DepartedInitiator>,
    departures: u64,
}

struct DepartedInitiator {
    /// How many had gone away before.
    since: u64,
    heard: AttentionHistory,
}

/// How many are kept. A peer can come by as many names as it likes, and a unit takes 16 bytes of
/// each.
const MOST: usize = 4096;

impl<N> Default for DepartedInitiators<N> {
    fn default() -> Self {
        Self {
            away: BTreeMap::new(),
            departures: 0,
        }
    }
}

impl<N: Ord + Clone> DepartedInitiators<N> {
    pub(super) fn go_away(&mut self, port: N, heard: AttentionHistory) {
        if self.away.len() >= MOST && !self.away.contains_key(&port) {
            let oldest = self.away.iter().min_by_key(|(_, away)| away.since);
            if let Some(oldest) = oldest.map(|(port, _)| port.clone()) {
                self.away.remove(&oldest);
            }
        }
        let since = self.departures;
        self.departures += 1;
        self.away.insert(port, DepartedInitiator { since, heard });
    }

    /// What it had heard. From now on its session knows.
    pub(super) fn come_back(&mut self, port: Option<&N>) -> Option<AttentionHistory> {
        self.away.remove(port?).map(|away| away.heard)
    }
}

#[cfg(test)]
mod tests;
