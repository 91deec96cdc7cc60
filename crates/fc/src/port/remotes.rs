//! The remote ports of an N_Port, by number, by address, and by when they want to be looked at.

use std::collections::{BTreeSet, VecDeque};

use scsi::medium::Now;
use slab::Slab;

use crate::fip::Neighbour;
use crate::remote::{LocalPort, RemoteId, RemotePort};
use crate::wire::names::{FcId, Wwn};

/// Remote ports.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    /// By number.
    all: Slab<RemotePort>,
    /// Those that FIP knows, by address.
    addresses: Vec<(FcId, RemoteId)>,
    /// Those that were lost and have left something behind, by name.
    lost: BTreeSet<(Wwn, RemoteId)>,
    /// Those that have a place. With 4,096 ports on the Ethernet, to look for them among all each
    /// time that one is found would take 16 million steps.
    placed: BTreeSet<RemoteId>,
    /// Not after the first deadline of one of them.
    wake: Option<Now>,
}

/// Remote ports that wait for a place.
#[derive(Debug, Default)]
pub(super) struct WaitingPorts {
    /// The first one for longest.
    queue: VecDeque<RemoteId>,
    members: BTreeSet<RemoteId>,
}

impl WaitingPorts {
    /// Has one wait behind the others, unless it does.
    pub(super) fn push(&mut self, id: RemoteId) {
        if self.members.insert(id) {
            self.queue.push_back(id);
        }
    }

    pub(super) fn pop(&mut self) -> Option<RemoteId> {
        let id = self.queue.pop_front()?;
        self.members.remove(&id);
        Some(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Remotes {
    pub(super) fn get(&self, id: RemoteId) -> Option<&RemotePort> {
        self.all.get(id.index())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RemotePort> {
        self.all.iter().map(|(_, remote)| remote)
    }

    /// Which one is at an address.
    pub(super) fn at(&self, fc_id: FcId) -> Option<RemoteId> {
        let at = self.addresses.binary_search_by_key(&fc_id, |entry| entry.0);
        Some(self.addresses[at.ok()?].1)
    }

    /// Which one of this name was lost, and has left something behind that has not ended.
    pub(super) fn find_lost(&self, wwpn: Wwn) -> Option<RemoteId> {
        let of_this_name = (wwpn, RemoteId(0))..=(wwpn, RemoteId(u32::MAX));
        Some(self.lost.range(of_this_name).next()?.1)
    }

    /// Remote ports with which there is a nexus, or may be one soon.
    pub(super) fn places(&self) -> usize {
        self.placed.len()
    }

    /// Counts all places anew, as it has changed which ports may have one.
    pub(super) fn place_all(&mut self, local: &LocalPort) {
        let placed = self.iter().filter(|remote| remote.has_place(local));
        self.placed = placed.map(RemotePort::id).collect();
    }

    fn place(&mut self, id: RemoteId, local: &LocalPort) {
        if self.get(id).is_some_and(|remote| remote.has_place(local)) {
            self.placed.insert(id)
        } else {
            self.placed.remove(&id)
        };
    }

    /// FIP has found a port.
    pub(super) fn meet(&mut self, neighbour: Neighbour, local: &LocalPort) -> RemoteId {
        let fc_id = neighbour.fc_id;
        let id = if let Some(known) = self.find_lost(neighbour.wwpn) {
            self.all[known.index()].found_again(neighbour);
            known
        } else {
            let id = RemoteId(self.all.vacant_key() as u32);
            self.all.insert(RemotePort::new(id, neighbour, local));
            id
        };
        match self.addresses.binary_search_by_key(&fc_id, |entry| entry.0) {
            Ok(at) => self.addresses[at].1 = id,
            Err(at) => self.addresses.insert(at, (fc_id, id)),
        }
        self.lost.remove(&(neighbour.wwpn, id));
        self.place(id, local);
        id
    }

    pub(super) fn with(
        &mut self,
        id: RemoteId,
        local: &LocalPort,
        act: impl FnOnce(&mut RemotePort),
    ) {
        if let Some(remote) = self.all.get_mut(id.index()) {
            act(remote);
            let deadline = remote.deadline().into_iter();
            self.wake = deadline.chain(self.wake).min();
            self.place(id, local);
        }
    }

    /// Forgets it, as far as it is lost.
    pub(super) fn tidy(&mut self, id: RemoteId) {
        let Some(remote) = self.get(id).filter(|remote| remote.is_lost()) else {
            return;
        };
        let (wwpn, is_gone) = (remote.wwpn(), remote.is_gone());
        let fc_id = remote.address().fc_id;
        let at = self.addresses.binary_search(&(fc_id, id));
        if let Ok(at) = at {
            self.addresses.remove(at);
        }
        if is_gone {
            self.all.remove(id.index());
            self.lost.remove(&(wwpn, id));
        } else {
            self.lost.insert((wwpn, id));
        }
    }

    pub(super) const fn next_deadline(&self) -> Option<Now> {
        self.wake
    }

    /// Those whose deadline has passed, which is looked for among all of them: that happens a few
    /// times for each login, and costs less than to keep them in order.
    pub(super) fn due(&mut self, now: Now) -> Vec<RemoteId> {
        if self.wake.is_none_or(|wake| now < wake) {
            return Vec::new();
        }
        let deadlines = || {
            self.iter()
                .filter_map(|remote| remote.deadline().map(|deadline| (deadline, remote.id())))
        };
        let due = deadlines().filter(|(deadline, _)| *deadline <= now);
        let due: Vec<_> = due.map(|(_, id)| id).collect();
        let later = deadlines().map(|(deadline, _)| deadline);
        self.wake = later.filter(|deadline| now < *deadline).min();
        due
    }
}
