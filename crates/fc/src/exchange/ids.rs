//! Exchange identifiers, as one end of an N_Port gives them out: OX_IDs or RX_IDs.

/// What each identifier names.
///
/// They are given out in turn, so that each rests as long as can be before it is used again, and a
/// frame that comes late or twice names nothing instead of another exchange. The price is a table
/// of two bytes for each.
#[derive(Debug)]
pub(crate) struct Ids {
    named: Vec<u16>,
    next: u16,
}

/// Names nothing.
const FREE: u16 = 0xffff;

/// Names nothing, and must not be used yet.
const HELD: u16 = 0xfffe;

/// What an identifier may name: places below this one.
pub(crate) const MAX_PLACES: u16 = HELD;

impl Ids {
    /// Identifiers from 0 to below `count`.
    pub(crate) fn new(count: u16) -> Self {
        Self {
            named: vec![FREE; usize::from(count)],
            next: 0,
        }
    }

    /// An identifier for `place`; `None` when all are in use or held.
    pub(crate) fn assign(&mut self, place: u16) -> Option<u16> {
        for _ in 0..self.named.len() {
            let id = self.next;
            self.next += 1;
            if usize::from(self.next) == self.named.len() {
                self.next = 0;
            }
            let named = &mut self.named[usize::from(id)];
            if *named == FREE {
                *named = place;
                return Some(id);
            }
        }
        None
    }

    /// What it names.
    pub(crate) fn find(&self, id: u16) -> Option<u16> {
        let place = *self.named.get(usize::from(id))?;
        (place < MAX_PLACES).then_some(place)
    }

    /// It names nothing any more.
    pub(crate) fn release(&mut self, id: u16) {
        self.set(id, FREE);
    }

    /// It names nothing any more, and is not given out before it is released.
    pub(crate) fn hold(&mut self, id: u16) {
        self.set(id, HELD);
    }

    fn set(&mut self, id: u16, what: u16) {
        if let Some(named) = self.named.get_mut(usize::from(id)) {
            *named = what;
        }
    }
}
