//! Where the next I/O goes.

use scsi::medium::Extent;

use crate::outcome::AccessOrder;
use crate::plan::BlockSpan;
use crate::random::Xorshift;

/// Places of one length, side by side.
#[derive(Debug)]
pub(crate) struct IoRegion {
    first: u64,
    blocks: u64,
    count: u64,
    order: AccessOrder,
    next: u64,
}

impl IoRegion {
    /// Those of `blocks` blocks in part `number` of `parts` of a span.
    pub(crate) fn new(
        span: BlockSpan,
        blocks: u64,
        order: AccessOrder,
        number: u32,
        parts: u32,
    ) -> Self {
        let count = span.blocks / blocks / u64::from(parts);
        Self {
            first: span.first + u64::from(number) * count * blocks,
            blocks,
            count,
            order,
            next: 0,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The number of the next one.
    pub(crate) fn next(&mut self, random: &mut Xorshift) -> u64 {
        if self.order == AccessOrder::Random {
            return random.below(self.count);
        }
        let place = self.next;
        self.next = if place + 1 < self.count { place + 1 } else { 0 };
        place
    }

    pub(crate) fn extent(&self, place: u64) -> Extent {
        Extent::new(self.first + place * self.blocks, self.blocks)
    }
}
