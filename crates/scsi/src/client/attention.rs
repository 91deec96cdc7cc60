//! What a unit announces has changed.

use super::answer::{Change, what_changed};
use super::command::Work;
use super::{Client, Output, Stage, facts};
use crate::medium::Lease;

impl<L: Lease> Client<L> {
    pub(super) fn attention(&mut self, code: u16) {
        match what_changed(code) {
            Change::Capacity if matches!(self.stage, Stage::Ready) && !self.asks_capacity() => {
                let key = self.insert(0, Work::capacity());
                self.go_on(key);
            }
            Change::Reset => {
                let lost = self.book.reset();
                self.outputs.extend(lost.then_some(Output::CacheLost));
            }
            Change::Capacity | Change::Other => {}
        }
    }

    /// READ CAPACITY has told something that a unit attention announced.
    pub(super) fn resized(&mut self, blocks: u64) {
        if let Some(facts) = &mut self.facts
            && facts.traits.blocks != blocks
            && facts::can_be(blocks, facts.traits.block_size)
        {
            facts.traits.blocks = blocks;
            self.outputs.push_back(Output::Resized(blocks));
        }
    }

    /// Whether the unit is being asked already: it may announce as often as it likes.
    fn asks_capacity(&self) -> bool {
        let mut works = self.operations.iter().map(|(_, operation)| &operation.work);
        works.any(|work| matches!(work, Work::Capacity { .. }))
    }
}
