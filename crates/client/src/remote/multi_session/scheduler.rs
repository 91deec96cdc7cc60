//! Which session an operation goes to, and when.
//!
//! Two operations of which one writes, and that touch the same blocks, are in flight on the same
//! session only: should that be lost, both are asked for again when its successor has ended it. One
//! that touches what is in flight on several waits until it is only one. None overtakes another one
//! that waits for the same blocks. A flush waits for every write before it.
//!
//! A write that failed while its session was away may still be on its way: nothing goes to blocks
//! that are in doubt ([`crate::remote::indeterminate_writes`]).
//!
//! What is in flight is looked through for each operation: for a hundred at once that is less than
//! a tenth of a microsecond, and what a tree would cost even for one.

use std::collections::VecDeque;
use std::sync::Arc;

use scsi::medium::Extent;

use crate::remote::indeterminate_writes::AllIndeterminateWrites;

/// What an operation does to which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockClaim {
    Read(Extent),
    Write(Extent),
    /// Everything that was written before.
    Flush,
}

/// Where an operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To one session.
    One(usize),
    /// A flush, which is which the owner of the scheduler sends to all.
    All,
    /// Its blocks are in doubt by a session that stays away.
    Nowhere,
}

/// What is in flight, and what waits.
#[derive(Debug)]
pub(super) struct SessionScheduler {
    sessions: Vec<SessionLoad>,
    in_flight: Vec<InFlight>,
    waiting: VecDeque<QueuedOperation>,
    entered: u64,
    doubts: Arc<AllIndeterminateWrites>,
}

#[derive(Clone, Debug, Default)]
struct SessionLoad {
    /// Operations in flight.
    load: u32,
    /// It was lost, and has not come back.
    away: bool,
}

#[derive(Debug)]
struct InFlight {
    waited: QueuedOperation,
    session: usize,
}

#[derive(Clone, Copy, Debug)]
struct QueuedOperation {
    key: usize,
    claim: BlockClaim,
    /// Its place in the order in which they came.
    number: u64,
}

impl SessionScheduler {
    pub(super) fn new(sessions: usize, doubts: Arc<AllIndeterminateWrites>) -> Self {
        Self {
            sessions: vec![SessionLoad::default(); sessions],
            in_flight: Vec::new(),
            waiting: VecDeque::new(),
            entered: 0,
            doubts,
        }
    }

    /// An operation waits until [`Self::next`] lets it go.
    pub(super) fn enter(&mut self, key: usize, claim: BlockClaim) {
        self.entered += 1;
        let number = self.entered;
        let waiting = QueuedOperation { key, claim, number };
        self.waiting.push_back(waiting);
    }

    /// An operation that may go now, or that waits in vain; `stays_away` says of which sessions
    /// nothing is to be hoped for. Unless it goes to one session, it is no longer in the book then.
    pub(super) fn next(&mut self, stays_away: impl Fn(u16) -> bool) -> Option<(usize, Route)> {
        let mut waiting = 0..self.waiting.len();
        let (at, way) = waiting.find_map(|at| Some((at, self.way(at, &stays_away)?)))?;
        let waited = self.waiting.remove(at)?;
        if let Route::One(session) = way {
            self.sessions[session].load += 1;
            self.in_flight.push(InFlight { waited, session });
        }
        Some((waited.key, way))
    }

    /// An operation has ended, on the session it went to. Returns what it was.
    pub(super) fn leave(&mut self, key: usize) -> Option<BlockClaim> {
        let mut in_flight = self.in_flight.iter();
        let at = in_flight.position(|one| one.waited.key == key)?;
        let one = self.in_flight.swap_remove(at);
        self.sessions[one.session].load -= 1;
        Some(one.waited.claim)
    }

    /// A session is there, or is not: one that is away is not chosen where another one would do.
    pub(super) fn set_away(&mut self, session: usize, away: bool) {
        self.sessions[session].away = away;
    }

    /// Takes out an operation that waits here. Returns whether it did.
    pub(super) fn withdraw(&mut self, key: usize) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|one| one.key != key);
        self.waiting.len() < before
    }

    /// The session with the least to do that is there.
    pub(super) fn idlest(&self) -> usize {
        let sessions = self.sessions.iter().enumerate();
        let idlest = sessions.min_by_key(|(_, session)| (session.away, session.load));
        idlest.map_or(0, |(session, _)| session)
    }

    fn way(&self, at: usize, stays_away: impl Fn(u16) -> bool) -> Option<Route> {
        let one = &self.waiting[at];
        let mut before = self.waiting.iter().take(at);
        if before.any(|other| one.claim.conflicts(other.claim)) {
            return None;
        }
        let mut in_flight = self.in_flight.iter();
        let (BlockClaim::Read(extent) | BlockClaim::Write(extent)) = one.claim else {
            let earlier = |other: &InFlight| other.waited.number < one.number;
            let writes = |other: &InFlight| matches!(other.waited.claim, BlockClaim::Write(_));
            let waits = in_flight.any(|other| earlier(other) && writes(other));
            return (!waits).then_some(Route::All);
        };
        if let Some(for_good) = self.doubts.over(extent, stays_away) {
            return for_good.then_some(Route::Nowhere);
        }
        let mut same = in_flight.filter(|other| one.claim.conflicts(other.waited.claim));
        let Some(InFlight { session, .. }) = same.next() else {
            return Some(Route::One(self.idlest()));
        };
        let only = same.all(|other| other.session == *session);
        only.then_some(Route::One(*session))
    }
}

impl BlockClaim {
    /// Whether it matters which of two is first.
    fn conflicts(self, other: Self) -> bool {
        match (self, other) {
            (Self::Flush, Self::Write(_)) => true,
            (Self::Read(_), Self::Read(_)) | (Self::Flush, _) | (_, Self::Flush) => false,
            (Self::Read(one) | Self::Write(one), other) => other.touches(one),
        }
    }

    fn touches(self, extent: Extent) -> bool {
        match self {
            Self::Read(own) | Self::Write(own) => own.overlaps(extent),
            Self::Flush => false,
        }
    }
}

#[cfg(test)]
mod tests;
