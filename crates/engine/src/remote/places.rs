//! Where nexuses of one link were: each ends those of before in the same place alone.

/// Places, in the order in which they were first come to; the last one's number.
#[derive(Debug)]
pub(super) struct Places<P> {
    known: Vec<P>,
    last: usize,
}

impl<P> Default for Places<P> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            last: 0,
        }
    }
}

impl<P: PartialEq> Places<P> {
    /// The number of the place where the last nexus was, from 0 on.
    pub(super) fn last(&self) -> usize {
        self.last
    }

    /// There is a nexus at a place. Returns whether the one before was there too; the first one has
    /// none before it.
    pub(super) fn come_to(&mut self, place: P) -> bool {
        let known = self.known.iter().position(|known| *known == place);
        let at = known.unwrap_or(self.known.len());
        if known.is_none() {
            self.known.push(place);
        }
        std::mem::replace(&mut self.last, at) == at
    }
}
