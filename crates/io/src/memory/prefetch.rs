//! Fetching ahead what will be sent.

use super::buffer::Buffer;
use super::raw;

/// How many buffers are fetched together. The first byte of each costs a walk through page tables,
/// of which processors do several at once, but only for what they are told in one go.
const TOGETHER: usize = 16;

/// How much of a buffer is fetched; for what follows, the processor sees by itself that it is read
/// in order.
const BYTES: usize = 1024;

/// Buffers that will be copied or sent soon: from random places of a large volume each would cost a
/// trip to memory, one after the other. A reader of one block at a time gains nothing, and fetches
/// nothing.
#[derive(Debug, Default)]
pub struct PrefetchQueue {
    places: [(usize, usize); TOGETHER],
    count: usize,
}

impl PrefetchQueue {
    /// Takes note of a buffer. Its memory may be gone when it is fetched, as fetching is a hint.
    #[inline]
    pub fn note(&mut self, buffer: &Buffer) {
        self.places[self.count] = (buffer.address().addr().get(), buffer.len().min(BYTES));
        self.count += 1;
        if self.count == TOGETHER {
            self.fetch();
        }
    }

    fn fetch(&mut self) {
        for (address, _) in self.places {
            raw::prefetch(address, 1);
        }
        for (address, len) in self.places {
            raw::prefetch(address, len);
        }
        self.count = 0;
    }
}
