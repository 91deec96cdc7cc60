//! How many FIP messages are looked at. A message may cost a response and an entry, so without a
//! limit any station on the Ethernet could hold the core that its frames come in at, on which other
//! ports and sessions live too.
//!
//! Senders share token buckets by their MAC address, so that one that floods does not silence the
//! others. An ENode sends a Beacon each 8 s, and a few messages when it or a neighbour begins.

use std::time::Duration;

use scsi::medium::Now;

use crate::wire::ethernet::Mac;

/// What each sender may still say.
#[derive(Debug)]
pub(super) struct Budget {
    /// Others cannot tell which senders share a bucket.
    seed: u64,
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// When it is full again.
    full_at: Now,
    /// The last message found it empty.
    is_empty: bool,
}

/// A message for which there is no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    /// The one before it was looked at.
    pub(super) is_first: bool,
}

impl Budget {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            buckets: vec![Bucket::default(); BUCKETS],
        }
    }

    /// Takes what a message costs. This is all that one costs for which there is nothing left.
    pub(super) fn take(&mut self, now: Now, from: Mac) -> Result<(), Over> {
        let [a, b, c, d, e, f] = from.0;
        let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let mixed = (mac ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bucket = &mut self.buckets[(mixed >> 32) as usize % BUCKETS];
        let full_at = bucket.full_at.max(now) + COST;
        let was_empty = bucket.is_empty;
        bucket.is_empty = full_at > now + COST * BURST;
        if bucket.is_empty {
            return Err(Over {
                is_first: !was_empty,
            });
        }
        bucket.full_at = full_at;
        Ok(())
    }
}

/// With 4,096 ports on the Ethernet, 64 share one.
const BUCKETS: usize = 64;

/// A bucket fills by 128 messages a second. All of them together let 8,192 through, which are some
/// 2 % of a core.
const COST: Duration = Duration::from_micros(1_000_000 / 128);

/// Messages of a full bucket: more than 64 ports send while all of them begin at once.
const BURST: u32 = 512;
