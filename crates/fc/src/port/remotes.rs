//! The remote ports of an N_Port, by number, by address, and by when they want to be looked at.

use scsi::medium::Now;

use crate::fip::Neighbour;
use crate::remote::{Local, Remote, RemoteId};
use crate::wire::names::{FcId, Wwn};

/// Remote ports.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    /// By number.
    all: Vec<Option<Remote>>,
    free: Vec<RemoteId>,
    /// Those that FIP knows, by address.
    addresses: Vec<(FcId, RemoteId)>,
    /// Not after the first deadline of one of them.
    wake: Option<Now>,
}

impl Remotes {
    pub(super) fn get(&self, id: RemoteId) -> Option<&Remote> {
        self.all.get(id.index())?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Remote> {
        self.all.iter().flatten()
    }

    /// Which one is at an address.
    pub(super) fn at(&self, fc_id: FcId) -> Option<RemoteId> {
        let at = self.addresses.binary_search_by_key(&fc_id, |entry| entry.0);
        Some(self.addresses[at.ok()?].1)
    }

    /// Which one of this name was lost, and has left something behind that has not ended.
    pub(super) fn find_lost(&self, wwpn: Wwn) -> Option<RemoteId> {
        let mut lost = self.iter().filter(|remote| remote.is_lost());
        Some(lost.find(|remote| remote.wwpn() == wwpn)?.id())
    }

    /// FIP has found a port.
    pub(super) fn meet(&mut self, neighbour: Neighbour, local: &Local) -> RemoteId {
        let fc_id = neighbour.fc_id;
        let known = self.find_lost(neighbour.wwpn);
        let id = known.unwrap_or_else(|| self.vacant());
        match &mut self.all[id.index()] {
            Some(remote) => remote.found_again(neighbour),
            vacant => *vacant = Some(Remote::new(id, neighbour, local)),
        }
        match self.addresses.binary_search_by_key(&fc_id, |entry| entry.0) {
            Ok(at) => self.addresses[at].1 = id,
            Err(at) => self.addresses.insert(at, (fc_id, id)),
        }
        id
    }

    fn vacant(&mut self) -> RemoteId {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            RemoteId(self.all.len() as u32 - 1)
        })
    }

    pub(super) fn with(&mut self, id: RemoteId, act: impl FnOnce(&mut Remote)) {
        if let Some(Some(remote)) = self.all.get_mut(id.index()) {
            act(remote);
            let deadline = remote.deadline().into_iter();
            self.wake = deadline.chain(self.wake).min();
        }
    }

    /// Forgets it, as far as it is lost.
    pub(super) fn tidy(&mut self, id: RemoteId) {
        let Some(remote) = self.get(id).filter(|remote| remote.is_lost()) else {
            return;
        };
        let is_gone = remote.is_gone();
        self.addresses.retain(|entry| entry.1 != id);
        if is_gone {
            self.all[id.index()] = None;
            self.free.push(id);
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
            self.all
                .iter()
                .flatten()
                .filter_map(|remote| remote.deadline().map(|deadline| (deadline, remote.id())))
        };
        let due = deadlines().filter(|(deadline, _)| *deadline <= now);
        let due: Vec<_> = due.map(|(_, id)| id).collect();
        let later = deadlines().map(|(deadline, _)| deadline);
        self.wake = later.filter(|deadline| now < *deadline).min();
        due
    }
}
