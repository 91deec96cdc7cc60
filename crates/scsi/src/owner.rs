//! The owner of a logical unit: changes in two phases.
//!
//! A core asks for a [`Change`]. The owner makes the new [`UnitState`] (and has it persisted where
//! the change asks for that), publishes it to every core, and answers the asking core only when
//! all have acknowledged. A core acknowledges when new commands are checked against the new state,
//! tasks that it aborts have ended at the medium, and attentions are queued. Without the
//! acknowledgement a host that was fenced could still write.
//!
//! Changes of a unit are made one after the other, but for locks, which pass all others by: a lock
//! waits for the transfers it overlaps, and a reset or PREEMPT AND ABORT that would cut those must
//! not stand in line behind it. So a core can have several publications to put into effect at once.
//! It works by the newest at once, acknowledges **each version by itself, in whatever order they
//! come into effect**, and a publication that asks for nothing special at once.

use std::sync::Arc;

use crate::alua::AccessState;
use crate::medium::Extent;
use crate::nexus::Identity;
use crate::operation::Step;
use crate::reserve::Action;
use crate::task::Failure;
use crate::unit::{CoreId, UnitState, Who};

/// What a core asks the owner of a unit for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks, for whom the answer is.
    pub core: CoreId,
    /// The asking core's own number for the request.
    pub id: u64,
    /// The nexus on whose behalf, if any.
    pub nexus: Option<Arc<Identity>>,
    /// What for.
    pub change: Change,
}

/// A change of what all cores agree upon. Each module that owns a part of [`UnitState`] has its
/// variant here.
#[derive(Clone, Debug)]
pub enum Change {
    /// Have an extent alone: granted when no other command touches it on any core.
    Lock(Extent),
    /// Give the extent locked by request `0` back.
    Unlock(u64),
    /// The volume has another size now, in blocks.
    Capacity(u64),
    /// LOGICAL UNIT RESET, or the unit's part of a target reset.
    Reset,
    /// CLEAR TASK SET... of every nexus.
    ClearTaskSet,
    /// FORMAT UNIT or SANITIZE gets on ([`UnitState::operation`]).
    Operation(Step),
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
}

/// What a publication does on each core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Establish a unit attention condition with this additional sense code (0xAAQQ).
    Attention(Who, u16),
    /// Abort the tasks of these nexuses on the unit; the acknowledgement waits until they have
    /// ended at the medium.
    Abort(Who),
    /// Reset what the core itself keeps of the unit, after the tasks have been aborted.
    Reset,
}

/// What comes in to an owner.
#[derive(Debug)]
pub enum Input {
    /// A core asks.
    Request(Request),
    /// A core has put the publication of this version into effect.
    Acknowledged {
        /// Which core.
        core: CoreId,
        /// [`UnitState::version`].
        version: u64,
    },
    /// The octets of [`Output::Persist`] are on stable storage, or could not be put there.
    Persisted(bool),
}

/// What an owner wants done.
#[derive(Debug)]
pub enum Output {
    /// Hand this to every core.
    Publish(Publication),
    /// Put this durably in the place of what was persisted for the unit before.
    Persist(Vec<u8>),
    /// Answer a request.
    Reply {
        /// Whom.
        core: CoreId,
        /// [`Request::id`].
        id: u64,
        /// The change has taken effect everywhere, or why it was refused.
        result: Result<(), Failure>,
    },
}

/// The owner of one unit.
#[derive(Debug)]
pub struct Owner {
    state: Arc<UnitState>,
}

impl Owner {
    /// The owner of a unit with this state, for so many cores (numbered from 0).
    #[must_use]
    pub fn new(state: UnitState, _cores: u16) -> Self {
        Self {
            state: Arc::new(state),
        }
    }

    /// The newest state.
    #[must_use]
    pub fn state(&self) -> &Arc<UnitState> {
        &self.state
    }

    /// Takes what came in.
    pub fn handle(&mut self, _input: Input) {}

    /// What to do next; call until `None` after each `handle`.
    pub fn poll(&mut self) -> Option<Output> {
        None
    }
}
