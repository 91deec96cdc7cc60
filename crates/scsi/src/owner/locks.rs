//! Locks: extents that one command has for itself.
//!
//! A lock that overlaps none held or asked for before is published at once, and granted when every
//! core that it was published to has acknowledged. The others wait in the order in which they came;
//! one that overlaps nothing does not wait for those.
//!
//! # Locks go to the cores that use the unit
//!
//! A lock and its release are published for each COMPARE AND WRITE, so they go only to cores that
//! have subscribed: those with a nexus or a task at the unit, however many cores there are. All
//! other publications go to every core, and so do a lock of blocks that were never locked (what
//! any core has lent of them for reading must come back, [`UnitState::shared`]) and
//! [`Extent::ALL`].
//!
//! ```text
//! core B                                     owner                      core A holds lock L1
//!   |  a task would go to the medium: blocked  |                          |
//!   |--- Subscribe --------------------------->|  B is a subscriber       |
//!   |<-- Publish: the state, with L1 ----------|                          |
//!   |<-- reply --------------------------------|                          |
//!   |  tasks go on, but for those that L1 blocks                          |
//!   |<-- Publish: L1 is gone ------------------|------------------------->|
//!   |  neither nexus nor task is left          |                          |
//!   |<-- Publish v+1: lock L2 -----------------|------------------------->|
//!   |--- Acknowledge v+1, Unsubscribe -------->|                          |
//! ```
//!
//! The rule that makes locks exclusive: **a core has a task at the medium of a unit only if it
//! knows all locks that are published, and is waited for before a later one is granted.** A core
//! without a subscription takes all blocks for locked (`device/subscribe.rs`), so it has no such
//! task. The races, where messages between two cores stay in order:
//!
//! - *A core subscribes while a lock is asked for or held.* What the owner published before it took
//!   the request is in the state that goes to the core ahead of the answer. The lock does not wait
//!   for the core, which has no task. Later locks are published to it, and wait for it.
//! - *An older publication comes between the request and the answer*: of another change, or of a
//!   time when the core was a subscriber. It may lack locks, so only the answer lets tasks go on.
//! - *A core unsubscribes while a lock waits for it.* It acknowledges whatever it was sent, so the
//!   owner goes on waiting, and nothing is taken off any list.
//! - *A core unsubscribes and a nexus comes.* Its task subscribes again. The owner takes both
//!   requests in their order.
//! - *A release is not sent to a core that has the lock in its state*, as that has unsubscribed. It
//!   takes all blocks for locked anyway, and is given the newest state when it subscribes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Acknowledgements, BUSY, MAX_WAITING, OwnerOutput, UnitOwner};
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
    /// The locks that there are go ahead of the answer.
    pub(super) fn subscribe(&mut self, request: &OwnerRequest) {
        let asked = (request.core, request.id);
        self.subscribers.insert(request.core);
        self.outputs.push_back(OwnerOutput::Publish {
            to: vec![request.core],
            publication: self.unawaited(asked),
        });
        self.reply(asked, Ok(()));
    }

    fn subscribers(&self) -> Vec<CoreId> {
        self.subscribers.iter().copied().collect()
    }

    /// Locks that wait for the core go on waiting: it acknowledges what it was sent.
    pub(super) fn unsubscribe(&mut self, request: &OwnerRequest) {
        self.subscribers.remove(&request.core);
        self.reply((request.core, request.id), Ok(()));
    }

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
            state.version += 1;
            self.state = Arc::new(state);
            // Nothing waits for a release, so it is not acknowledged.
            self.outputs.push_back(OwnerOutput::Publish {
                to: self.subscribers(),
                publication: self.unawaited(cause),
            });
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
            let is_known = state.shared.covers(lock.extent);
            if lock.extent != Extent::ALL && !is_known {
                Arc::make_mut(&mut state.shared).add(lock.extent);
            }
            state.locks.push(lock);
            let to = if is_known {
                self.subscribers()
            } else {
                self.cores.clone()
            };
            let acknowledgements = self.publish(state, Vec::new(), asked, to);
            self.locks.published.push(acknowledgements);
        }
        self.locks.waiting = blocked;
        self.grant_locks();
    }

    /// Answers the locks that all have acknowledged.
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
