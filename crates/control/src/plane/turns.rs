//! Turns: changes follow one another, and each waits for a while. Those that only look take none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::gate::{Author, GateError};

/// Whose turn it is, and how many wait for theirs.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: Option<(Author, Instant)>,
    /// By their numbers, in the order in which they came.
    waiting: BTreeMap<u64, (Author, Instant)>,
    next: u64,
}

/// A change that is made or waits, as those are told that look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnInfo {
    /// Who asks for it.
    pub author: Author,
    /// For how long it has been made, or has waited.
    pub age: Duration,
    /// It is made now.
    pub is_under_way: bool,
}

/// A turn, until it is dropped.
pub(super) struct Turn<'a>(&'a Turns);

/// How many changes there may be, of which one is made: each takes a thread.
pub(crate) const MOST_CHANGING: usize = 16;

const MOST_WAITING: usize = MOST_CHANGING - 1;

impl Turns {
    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// What is under way, where it takes longer than that, or others wait already.
    pub(super) fn take(&self, author: &Author, patience: Duration) -> Result<Turn<'_>, GateError> {
        let mut state = self.state();
        if state.under_way.is_some() && state.waiting.len() >= MOST_WAITING {
            return Err(state.busy());
        }
        let number = state.next;
        state.next += 1;
        let asks = (author.clone(), Instant::now());
        state.waiting.insert(number, asks);
        let waited = self
            .ended
            .wait_timeout_while(state, patience, |state| state.under_way.is_some());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting.remove(&number);
        if state.under_way.is_some() {
            return Err(state.busy());
        }
        state.under_way = Some((author.clone(), Instant::now()));
        Ok(Turn(self))
    }

    /// The change that is made, and those that wait for it.
    pub(super) fn all(&self) -> Vec<TurnInfo> {
        let state = self.state();
        let info = |is_under_way| {
            move |(author, since): &(Author, Instant)| TurnInfo {
                author: author.clone(),
                age: since.elapsed(),
                is_under_way,
            }
        };
        let under_way = state.under_way.iter().map(info(true));
        under_way
            .chain(state.waiting.values().map(info(false)))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn busy(&self) -> GateError {
        let under_way = self.under_way.as_ref();
        GateError::Busy(under_way.map_or_else(String::new, |(author, since)| {
            UnderWay(author, since.elapsed()).to_string()
        }))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().under_way = None;
        self.0.ended.notify_one();
    }
}

/// What is being done, and for how long.
struct UnderWay<'a>(&'a Author, Duration);

impl fmt::Display for UnderWay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Author { who, by, .. }, time) = self;
        write!(f, "a change by {who} ({by}) since {} s", time.as_secs())
    }
}

#[cfg(test)]
mod tests;
