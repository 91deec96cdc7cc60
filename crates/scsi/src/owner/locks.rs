//! Locks: extents that one command has for itself.
//!
//! A lock that overlaps none held or asked for before is published at once, and granted when every
//! core has acknowledged. The others wait in the order in which they came; one that overlaps
//! nothing does not wait for those.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Acknowledgements, BUSY, MAX_WAITING, UnitOwner};
use crate::medium::Extent;
use crate::owner::OwnerRequest;
use crate::task::CommandFailure;
use crate::unit::{BlockLock, CoreId, UnitState};
use crate::wire::sense::Status;

/// The locks that are not granted yet; those that are, are in [`UnitState::locks`].
#[derive(Debug, Default)]
pub(super) struct Locks {
    /// They overlap others.
    waiting: VecDeque<BlockLock>,
    /// They are published.
    published: Vec<Acknowledgements>,
}

impl Locks {
    /// Whether none is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.published.is_empty()
    }

    /// Notes that a core works by a version, or is gone and so holds up none.
    pub(super) fn acknowledged(&mut self, core: CoreId, version: Option<u64>) {
        for lock in &mut self.published {
            if version.is_none_or(|version| version == lock.version) {
                lock.missing.retain(|one| *one != core);
            }
        }
    }

    /// Takes back what is not granted yet.
    fn withdraw(&mut self, whose: impl Fn((CoreId, u64)) -> bool) -> Vec<(CoreId, u64)> {
        let waiting = self.waiting.iter().map(|lock| lock.holder);
        let published = self.published.iter().map(|lock| lock.asked);
        let withdrawn = waiting.chain(published).filter(|one| whose(*one)).collect();
        self.waiting.retain(|lock| !whose(lock.holder));
        self.published.retain(|lock| !whose(lock.asked));
        withdrawn
    }
}

impl UnitOwner {
    pub(super) fn lock(&mut self, request: &OwnerRequest, extent: Extent) {
        if self.locks.waiting.len() >= MAX_WAITING {
            return self.reply((request.core, request.id), Err(BUSY));
        }
        self.locks.waiting.push_back(BlockLock {
            extent,
            holder: (request.core, request.id),
        });
        self.publish_locks();
    }

    pub(super) fn unlock(&mut self, request: &OwnerRequest, id: u64) {
        self.release_locks(|holder| holder == (request.core, id));
        self.reply((request.core, request.id), Ok(()));
    }

    pub(super) fn release_locks_of(&mut self, core: CoreId) {
        self.locks.acknowledged(core, None);
        self.release_locks(|(holder, _)| holder == core);
        self.grant_locks();
    }

    fn release_locks(&mut self, whose: impl Fn((CoreId, u64)) -> bool) {
        for asked in self.locks.withdraw(&whose) {
            self.reply(asked, Err(WITHDRAWN));
        }
        let released = self.state.locks.iter().find(|lock| whose(lock.holder));
        if let Some(cause) = released.map(|lock| lock.holder) {
            let mut state = UnitState::clone(&self.state);
            state.locks.retain(|lock| !whose(lock.holder));
            self.publish(state, Vec::new(), cause);
        }
        self.publish_locks();
    }

    /// Publishes each waiting lock that nothing before it stands in the way of.
    fn publish_locks(&mut self) {
        let mut blocked = VecDeque::new();
        for lock in std::mem::take(&mut self.locks.waiting) {
            let mut before = self.state.locks.iter().chain(&blocked);
            if before.any(|other| other.extent.overlaps(lock.extent)) {
                blocked.push_back(lock);
                continue;
            }
            let asked = lock.holder;
            let mut state = UnitState::clone(&self.state);
            if lock.extent != Extent::ALL && !state.shared.covers(lock.extent) {
                Arc::make_mut(&mut state.shared).add(lock.extent);
            }
            state.locks.push(lock);
            let acknowledgements = self.publish(state, Vec::new(), asked);
            self.locks.published.push(acknowledgements);
        }
        self.locks.waiting = blocked;
        self.grant_locks();
    }

    /// Answers the locks that every core has acknowledged.
    pub(super) fn grant_locks(&mut self) {
        let granted = self
            .locks
            .published
            .extract_if(.., |lock| lock.missing.is_empty());
        let granted: Vec<_> = granted.map(|lock| lock.asked).collect();
        for asked in granted {
            self.reply(asked, Ok(()));
        }
    }
}

const WITHDRAWN: CommandFailure = CommandFailure::Status(Status::TaskAborted);
