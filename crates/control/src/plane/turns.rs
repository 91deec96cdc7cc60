//! Turns: changes follow one another, and each waits for a while. Those that only look take none.

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
    waiting: usize,
}

/// A turn, until it is dropped.
pub(super) struct Turn<'a>(&'a Turns);

/// How many may wait: each takes a thread that those who look may need.
const MOST_WAITING: usize = 3;

impl Turns {
    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// What is under way, where it takes longer than that, or others wait already.
    pub(super) fn take(&self, author: &Author, patience: Duration) -> Result<Turn<'_>, GateError> {
        let mut state = self.state();
        if state.under_way.is_some() && state.waiting >= MOST_WAITING {
            return Err(state.busy());
        }
        state.waiting += 1;
        let waited = self
            .ended
            .wait_timeout_while(state, patience, |state| state.under_way.is_some());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        if state.under_way.is_some() {
            return Err(state.busy());
        }
        state.under_way = Some((author.clone(), Instant::now()));
        Ok(Turn(self))
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
