//! Blocks that a write may still change after it was told as failed, for all cores.
//!
//! A write that had no answer when its session was lost may be on its way to the target yet. Only
//! the next session by the same ISID, in the same portal group, ends it there (RFC 7143 §6.3.5);
//! for Fibre Channel, the next login with the same node. Until then nobody reads or writes its
//! blocks, by whichever session: what was written there could be replaced by what is older.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use scsi::medium::Extent;

/// The blocks in doubt of one session, by the place to which their writes are on their way.
#[derive(Debug, Default)]
pub(super) struct IndeterminateWrites(Vec<(usize, Extent)>);

/// With more of them in doubt the blocks between them are as well.
const DOUBTS: usize = 1024;

impl IndeterminateWrites {
    /// Writes were given up that may be on their way to a place.
    pub(super) fn add(&mut self, place: usize, extents: Vec<Extent>) {
        self.0.extend(extents.into_iter().map(|one| (place, one)));
        if self.0.len() > DOUBTS {
            let same = || self.0.iter().filter(|(other, _)| *other == place);
            let first = same().map(|(_, extent)| extent.lba).min();
            let end = same().map(|(_, extent)| extent.end()).max();
            let hull = first.zip(end).map(|(lba, end)| Extent::new(lba, end - lba));
            self.0.retain(|(other, _)| *other != place);
            self.0.extend(hull.map(|extent| (place, extent)));
        }
        // Only a hostile target has that many places: no login ends the doubts about all of them.
        if self.0.len() > DOUBTS {
            let first = self.extents().map(|extent| extent.lba).min().unwrap_or(0);
            let end = self.extents().map(Extent::end).max().unwrap_or(0);
            self.0 = vec![(usize::MAX, Extent::new(first, end - first))];
        }
    }

    /// A session has come back to a place: nothing of before can happen there any more.
    pub(super) fn trust(&mut self, place: usize) {
        self.0.retain(|(other, _)| *other != place);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these blocks are.
    pub(super) fn touch(&self, extent: Extent) -> bool {
        self.extents().any(|doubt| doubt.overlaps(extent))
    }

    fn extents(&self) -> impl Iterator<Item = Extent> {
        self.0.iter().map(|(_, extent)| *extent)
    }
}

/// The blocks in doubt of all sessions with a unit, by their numbers.
#[derive(Debug, Default)]
pub(super) struct AllIndeterminateWrites {
    /// There are some; else no lock is taken.
    some: AtomicBool,
    all: Mutex<Vec<(u16, Extent)>>,
}

impl AllIndeterminateWrites {
    /// These are the doubts of a session now.
    pub(super) fn set(&self, session: u16, doubts: &IndeterminateWrites) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| *other != session);
        all.extend(doubts.extents().map(|extent| (session, extent)));
        self.some.store(!all.is_empty(), SeqCst);
    }

    /// Whether these blocks are in doubt by a session for which that matters.
    pub(super) fn touch(&self, extent: Extent, matters: impl Fn(u16) -> bool) -> bool {
        self.over(extent, matters) == Some(true)
    }

    /// `None` if these blocks are not in doubt, else whether that is so by a session that is
    /// `such`.
    pub(super) fn over(&self, extent: Extent, such: impl Fn(u16) -> bool) -> Option<bool> {
        if !self.some.load(SeqCst) {
            return None;
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.iter().filter(|(_, doubt)| doubt.overlaps(extent));
        here.map(|(session, _)| such(*session)).max()
    }
}

/// The places where nexuses of one link were last, each with its number: a new nexus ends those of
/// before in the same place alone.
#[derive(Debug)]
pub(super) struct SeekHistory<P> {
    known: VecDeque<(usize, P)>,
    /// The number of the next new place.
    next: usize,
    last: usize,
}

/// Places that are remembered. A target has a few portal groups; one that sends us from place to
/// place must not cost memory for each. A place that was forgotten has a new number when it is come
/// to again, so what is in doubt there stays in doubt.
const REMEMBERED: usize = 64;

impl<P> Default for SeekHistory<P> {
    fn default() -> Self {
        Self {
            known: VecDeque::new(),
            next: 0,
            last: 0,
        }
    }
}

impl<P: PartialEq> SeekHistory<P> {
    /// The number of the place where the last nexus was, from 0 on.
    pub(super) fn last(&self) -> usize {
        self.last
    }

    /// There is a nexus at a place. Returns whether the one before was there too; the first one has
    /// none before it.
    pub(super) fn come_to(&mut self, place: P) -> bool {
        let known = self.known.iter().position(|(_, known)| *known == place);
        let (number, place) = known
            .and_then(|at| self.known.remove(at))
            .unwrap_or_else(|| {
                self.next += 1;
                (self.next - 1, place)
            });
        if self.known.len() == REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back((number, place));
        std::mem::replace(&mut self.last, number) == number
    }
}

#[cfg(test)]
mod tests;
