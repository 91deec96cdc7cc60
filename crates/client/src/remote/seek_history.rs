//! Where nexuses of one link were: each ends those of before in the same place alone.

use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// The places that were come to last, each with its number.
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
