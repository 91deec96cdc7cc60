//! What a unit announces has changed (SPC-5 §5.14).
//!
//! Nothing is asked of a unit that may be another one, or have other blocks, or another cache,
//! before it has said again what it is. What it is asked for at that time ends after it has.

use super::answer::{Change, what_changed};
use super::{Client, Output, Stage};
use crate::medium::Lease;

impl<L: Lease> Client<L> {
    pub(super) fn attention(&mut self, code: u16) {
        self.check_cache(code);
        if what_changed(code) != Change::Other {
            self.look_again();
        }
    }

    /// Whether what is announced has lost a volatile cache.
    pub(super) fn check_cache(&mut self, code: u16) {
        if what_changed(code) == Change::Reset {
            let lost = self.book.reset();
            self.outputs.extend(lost.then_some(Output::CacheLost));
        }
    }

    /// A write was refused as the unit is protected; it may not be known as such yet.
    pub(super) fn check_protection(&mut self) {
        if self
            .facts
            .as_ref()
            .is_some_and(|facts| !facts.traits.read_only)
        {
            self.look_again();
        }
    }

    /// Asks the unit again what it is.
    fn look_again(&mut self) {
        match &mut self.stage {
            Stage::Ready => self.begin(),
            Stage::Identifying(identify) => identify.doubt(),
            Stage::Away | Stage::Refused => {}
        }
    }
}
