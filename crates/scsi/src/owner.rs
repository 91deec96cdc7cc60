//! The owner of a logical unit: changes in two phases.
//!
//! A core asks for a [`UnitChange`]. The owner makes the new [`UnitState`] (and has it persisted
//! where the change asks for that), publishes it to every core, and answers the asking core only
//! when all have acknowledged. A core acknowledges when new commands are checked against the new
//! state, tasks that it aborts have ended at the medium, and attentions are queued. Without the
//! acknowledgement a host that was fenced could still write.
//!
//! ```text
//! core A (asks)        owner                 core A     core B        storage
//!   |--- OwnerRequest -->|                      |          |              |
//!   |                    |-- Persist -----------------------------------> |   if APTPL = 1
//!   |                    |<- persisted ---------------------------------- |
//!   |                    |-- Publish v+1 ------>|--------->|
//!   |                    |                      | new commands: v+1; affected tasks are aborted
//!   |                    |                      |          | ... and end at the medium
//!   |                    |<- Acknowledge v+1 ---|          |
//!   |                    |<- Acknowledge v+1 --------------|
//!   |<-- reply, GOOD ----|
//! ```
//!
//! Changes of a unit are made one after the other, but for locks, which pass all others by: a lock
//! waits for the transfers it overlaps, and a reset or PREEMPT AND ABORT that would cut those must
//! not stand in line behind it. So a core can have several publications to put into effect at once.
//! It works by the newest at once, acknowledges **each version by itself, in whatever order they
//! come into effect**, and a publication that asks for nothing special at once.
//!
//! Locks and their releases go to the cores that have subscribed to them, and all other changes to
//! every core: `owner/locks.rs` has the rule, and its races.
//!
//! # Reservations that outlive the process
//!
//! A change is persisted before it is published, and published before it is answered:
//!
//! | the process dies | on storage | what hosts saw |
//! |---|---|---|
//! | before [`OwnerOutput::Persist`] is done | the old state, as storage replaces whole | nothing; the command was not answered |
//! | after that, before it is published | the new state | nothing; as if the answer had been lost |
//! | before all have acknowledged | the new state | perhaps the new state, but no GOOD |
//! | after GOOD | the new state | GOOD, and it is true |
//!
//! In the other order a host could read a registration, or be fenced, and find after a power loss
//! that it never was. Where persisting fails nothing is published, and the command ends with
//! HARDWARE ERROR. What storage holds is unknown then, old or new, so the next change of whatever
//! kind to reservations writes again. As long as APTPL is 0 what is to be stored does not change,
//! and nothing is written.

mod locks;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use self::locks::Locks;
use crate::alua::AccessState;
use crate::long_operation::{LongOperationStep, OperationState};
use crate::medium::{Extent, Traits};
use crate::nexus::NexusIdentity;
use crate::reserve::Action;
use crate::task::CommandFailure;
use crate::unit::{CoreId, EffectScope, UnitState};
use crate::unit_settings::SettingChange;
use crate::wire::asc;
use crate::wire::sense::{Sense, SenseKey, Status};

/// What a core asks the owner of a unit for.
#[derive(Clone, Debug)]
pub struct OwnerRequest {
    /// The core that asks and gets the answer.
    pub core: CoreId,
    /// The asking core's own number for the request.
    pub id: u64,
    /// The nexus on whose behalf, if any.
    pub nexus: Option<Arc<NexusIdentity>>,
    /// What for.
    pub change: UnitChange,
}

/// A change of what all cores agree upon. Each module that owns a part of [`UnitState`] has its
/// variant here.
#[derive(Clone, Debug)]
pub enum UnitChange {
    /// Have an extent alone: granted when no other command touches it on any core. A core
    /// acknowledges the version with the lock when no command of its own touches the extent, the
    /// one that asks excepted.
    Lock(Extent),
    /// Give the extent that this request of the same core locked back, or no longer ask for it:
    /// a lock that is not granted yet is answered with TASK ABORTED. Always answered well.
    Unlock(u64),
    /// Tell the core of locks from now on. What it needs to know of those that there are is
    /// published to it before the answer. Always answered well.
    Subscribe,
    /// The core has neither a nexus nor a task at the unit, and need not be told of locks. Always
    /// answered well.
    Unsubscribe,
    /// The volume is now as this says, where it can change while it is used: it has another
    /// capacity, a write cache or none, and may be written or not.
    Medium(Traits),
    /// Another volume has taken the place of the unit's.
    Volume {
        /// What it can do; its blocks are as long as before.
        traits: Traits,
        /// There is none: everything that needs a medium is NOT READY.
        is_absent: bool,
    },
    /// LOGICAL UNIT RESET, or the unit's part of a target reset.
    Reset,
    /// FORMAT UNIT or SANITIZE gets on ([`UnitState::operation`]).
    Operation(LongOperationStep),
    /// The nexus is gone (SAM-5 §6.3.4): prevention and RESERVE(6) end with it.
    NexusLoss,
    /// PERSISTENT RESERVE OUT.
    PersistentReserve(Action),
    /// RESERVE(6) and (10).
    Reserve,
    /// RELEASE(6) and (10).
    Release,
    /// SET TARGET PORT GROUPS.
    AccessState(AccessState),
    /// Mode parameters, the medium's removal, the timestamp, the buffers.
    Setting(SettingChange),
}

/// A new state with what it does to nexuses and tasks.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The state to work by.
    pub state: Arc<UnitState>,
    /// What happens along with it.
    pub effects: Arc<[Effect]>,
    /// The request that it comes from: its own task is not aborted.
    pub cause: Option<(CoreId, u64)>,
    /// The owner waits until it is in effect, and is to be told.
    pub is_awaited: bool,
}

/// What a publication does on each core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Establish a unit attention condition with this additional sense code (0xAAQQ).
    Attention(EffectScope, u16),
    /// Abort the tasks of these nexuses on the unit; the acknowledgement waits until they have
    /// ended at the medium. Whose tasks vanish without a status is told COMMANDS CLEARED BY ANOTHER
    /// INITIATOR by its core, which alone knows whether it had any.
    Abort(EffectScope),
    /// Reset what the core itself keeps of the unit, after the tasks have been aborted.
    Reset,
}

/// What comes in to an owner.
#[derive(Debug)]
pub enum Input {
    /// A core asks.
    Request(OwnerRequest),
    /// A core has put the publication of this version into effect.
    Acknowledged {
        /// Which core.
        core: CoreId,
        /// [`UnitState::version`].
        version: u64,
    },
    /// The bytes of [`OwnerOutput::Persist`] are on stable storage, or could not be put there.
    Persisted(bool),
    /// A core has ended. It acknowledges nothing any more, what it locked is free, and what it
    /// asked for is not begun.
    Gone(CoreId),
}

/// What an owner wants done.
#[derive(Debug)]
pub enum OwnerOutput {
    /// Send a publication to some of the cores.
    Publish {
        /// The cores that receive it.
        to: Vec<CoreId>,
        /// The state that they work by from then on.
        publication: Publication,
    },
    /// Put this durably in the place of what was persisted for the unit before.
    Persist(Vec<u8>),
    /// Answer a request.
    Reply {
        /// The core that is told.
        core: CoreId,
        /// [`OwnerRequest::id`].
        id: u64,
        /// The change has taken effect everywhere, or why it was refused.
        result: Result<(), CommandFailure>,
    },
}

/// The owner of one unit.
#[derive(Debug)]
pub struct UnitOwner {
    state: Arc<UnitState>,
    cores: Vec<CoreId>,
    /// Those of them that are told of locks.
    subscribers: BTreeSet<CoreId>,
    /// What waits for the change that is being made.
    waiting: VecDeque<OwnerRequest>,
    /// The change that is being made, but for locks.
    change: Option<InProgress>,
    locks: Locks,
    /// What storage holds for sure.
    stored: Option<Vec<u8>>,
    /// Another unit goes on with that: no command changes anything.
    is_closed: bool,
    outputs: VecDeque<OwnerOutput>,
}

#[derive(Debug)]
enum InProgress {
    /// It waits for storage.
    Persisting {
        next: Box<UnpublishedState>,
        bytes: Vec<u8>,
    },
    /// It waits for cores.
    Publishing(Acknowledgements),
}

/// A state that is not published yet.
#[derive(Debug)]
struct UnpublishedState {
    request: OwnerRequest,
    state: UnitState,
    effects: Vec<Effect>,
}

/// The cores that have not acknowledged a version, and the request to answer then.
#[derive(Debug)]
struct Acknowledgements {
    version: u64,
    missing: Vec<CoreId>,
    asked: (CoreId, u64),
}

/// How many changes may wait, and how many locks. Only what a command asks for is refused beyond
/// that, with BUSY.
pub const MAX_WAITING: usize = 1024;

impl UnitOwner {
    /// The owner of a unit with this state, for this many cores (numbered from 0). Reservations in
    /// it are taken to be what storage holds.
    #[must_use]
    pub fn new(state: UnitState, cores: u16) -> Self {
        Self {
            stored: Some(state.reservations.to_bytes()),
            state: Arc::new(state),
            cores: (0..cores).map(CoreId).collect(),
            subscribers: BTreeSet::new(),
            waiting: VecDeque::new(),
            change: None,
            locks: Locks::default(),
            is_closed: false,
            outputs: VecDeque::new(),
        }
    }

    /// What storage holds of the reservations, if that is sure, no change is being made or waits,
    /// and no FORMAT UNIT or SANITIZE goes on or has failed.
    #[must_use]
    pub fn settled(&self) -> Option<&[u8]> {
        let is_settled = self.change.is_none()
            && self.waiting.is_empty()
            && self.state.operation == OperationState::Idle;
        self.stored.as_deref().filter(|_| is_settled)
    }

    /// Another unit goes on with the reservations in storage: commands that would change anything
    /// end with BUSY from now on.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// The newest state.
    #[must_use]
    pub fn state(&self) -> &Arc<UnitState> {
        &self.state
    }

    /// Whether nothing is asked for, being changed or locked.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.change.is_none()
            && self.waiting.is_empty()
            && self.locks.is_empty()
            && self.state.locks.is_empty()
    }

    /// Takes what came in.
    pub fn handle(&mut self, input: Input) {
        match input {
            Input::Request(request) => self.take(request),
            Input::Acknowledged { core, version } => self.acknowledged(core, version),
            Input::Persisted(well) => self.persisted(well),
            Input::Gone(core) => self.gone(core),
        }
        self.make_changes();
    }

    /// What to do next; call until `None` after each `handle`.
    pub fn poll(&mut self) -> Option<OwnerOutput> {
        self.outputs.pop_front()
    }

    fn take(&mut self, request: OwnerRequest) {
        match request.change {
            UnitChange::Lock(extent) => self.lock(&request, extent),
            UnitChange::Unlock(id) => self.unlock(&request, id),
            UnitChange::Subscribe => self.subscribe(&request),
            UnitChange::Unsubscribe => self.unsubscribe(&request),
            _ if self.is_full() && can_be_refused(&request.change) => {
                self.reply((request.core, request.id), Err(BUSY));
            }
            _ => self.waiting.push_back(request),
        }
    }

    fn is_full(&self) -> bool {
        self.is_closed || self.waiting.len() >= MAX_WAITING
    }

    /// Begins changes until one has to wait.
    fn make_changes(&mut self) {
        while self.change.is_none() {
            let Some(request) = self.waiting.pop_front() else {
                return;
            };
            self.begin(request);
        }
    }

    fn begin(&mut self, request: OwnerRequest) {
        let asked = (request.core, request.id);
        let mut state = UnitState::clone(&self.state);
        let effects = match state.apply(&request) {
            Ok(effects) => effects,
            Err(failure) => return self.reply(asked, Err(failure)),
        };
        if effects.is_empty() && state == *self.state {
            return self.reply(asked, Ok(()));
        }
        let next = UnpublishedState {
            request,
            state,
            effects,
        };
        match self.to_be_stored(&next.state) {
            Some(bytes) => {
                self.outputs.push_back(OwnerOutput::Persist(bytes.clone()));
                let next = Box::new(next);
                self.change = Some(InProgress::Persisting { next, bytes });
            }
            None => self.publish_change(next),
        }
    }

    fn to_be_stored(&self, state: &UnitState) -> Option<Vec<u8>> {
        let same = Arc::ptr_eq(&state.reservations, &self.state.reservations);
        if !state.persistence || same {
            return None;
        }
        let bytes = state.reservations.to_bytes();
        (self.stored.as_ref() != Some(&bytes)).then_some(bytes)
    }

    fn persisted(&mut self, well: bool) {
        let Some(InProgress::Persisting { next, bytes }) = self
            .change
            .take_if(|change| matches!(change, InProgress::Persisting { .. }))
        else {
            return;
        };
        if well {
            self.stored = Some(bytes);
            return self.publish_change(*next);
        }
        self.stored = None;
        self.reply((next.request.core, next.request.id), Err(NOT_STORED));
    }

    fn publish_change(&mut self, next: UnpublishedState) {
        let asked = (next.request.core, next.request.id);
        let state = UnitState {
            // They may have changed while storage was waited for.
            locks: self.state.locks.clone(),
            shared: self.state.shared.clone(),
            ..next.state
        };
        let every_core = self.cores.clone();
        let acknowledgements = self.publish(state, next.effects, asked, every_core);
        self.change = Some(InProgress::Publishing(acknowledgements));
        self.end_change();
    }

    fn publish(
        &mut self,
        mut state: UnitState,
        effects: Vec<Effect>,
        cause: (CoreId, u64),
        to: Vec<CoreId>,
    ) -> Acknowledgements {
        state.version = self.state.version + 1;
        let announces = |effect: &Effect| matches!(effect, Effect::Attention(..));
        if effects.iter().any(announces) {
            state.announced = state.version;
        }
        self.state = Arc::new(state);
        let publication = Publication {
            effects: effects.into(),
            is_awaited: true,
            ..self.unawaited(cause)
        };
        let missing = to.clone();
        self.outputs
            .push_back(OwnerOutput::Publish { to, publication });
        Acknowledgements {
            version: self.state.version,
            missing,
            asked: cause,
        }
    }

    /// The newest state, which nothing waits for.
    fn unawaited(&self, cause: (CoreId, u64)) -> Publication {
        Publication {
            state: self.state.clone(),
            effects: [].into(),
            cause: Some(cause),
            is_awaited: false,
        }
    }

    fn acknowledged(&mut self, core: CoreId, version: u64) {
        match &mut self.change {
            Some(InProgress::Publishing(waiting)) if waiting.version == version => {
                waiting.missing.retain(|one| *one != core);
                self.end_change();
            }
            _ => {
                self.locks.acknowledged(core, Some(version));
                self.grant_locks();
            }
        }
    }

    fn end_change(&mut self) {
        if let Some(InProgress::Publishing(waiting)) = &self.change
            && waiting.missing.is_empty()
        {
            let asked = waiting.asked;
            self.change = None;
            self.reply(asked, Ok(()));
        }
    }

    fn gone(&mut self, core: CoreId) {
        self.cores.retain(|one| *one != core);
        self.subscribers.remove(&core);
        self.waiting.retain(|request| request.core != core);
        if let Some(InProgress::Publishing(waiting)) = &mut self.change {
            waiting.missing.retain(|one| *one != core);
        }
        self.end_change();
        self.release_locks_of(core);
    }

    fn reply(&mut self, (core, id): (CoreId, u64), result: Result<(), CommandFailure>) {
        if self.cores.contains(&core) {
            self.outputs
                .push_back(OwnerOutput::Reply { core, id, result });
        }
    }
}

/// What must not be lost: it does not come from a command that could be tried again.
fn can_be_refused(change: &UnitChange) -> bool {
    !matches!(
        change,
        UnitChange::Reset
            | UnitChange::NexusLoss
            | UnitChange::Medium(_)
            | UnitChange::Volume { .. }
            | UnitChange::Operation(_)
    )
}

const BUSY: CommandFailure = CommandFailure::Status(Status::Busy);
const NOT_STORED: CommandFailure = CommandFailure::Check(Sense::new(
    SenseKey::HardwareError,
    asc::INTERNAL_TARGET_FAILURE,
));

#[cfg(test)]
mod tests;
