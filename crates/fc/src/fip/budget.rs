//! How many FIP messages are looked at. A message may cost a response and an entry, so without a
//! limit any station on the Ethernet could hold the core that its frames come in at, on which other
//! ports and sessions live too.
//!
//! Senders share token buckets by their MAC address, so that one that floods does not silence the
//! others. An ENode sends a Beacon each 8 s, and a few messages when it or a neighbour begins.
//!
//! A sender that forges MAC addresses can empty all of the buckets. So a port with a virtual link
//! to us has one of its own besides for either of its addresses, large enough for the Beacons that
//! keep the link up.

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::medium::Now;

use crate::wire::ethernet::Mac;

/// What each sender may still say.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Others cannot tell which senders share a bucket.
    seed: u64,
    /// What a message costs a sender with virtual links, of its own bucket.
    reserved_cost: Duration,
    buckets: Vec<TokenBucket>,
    /// Of senders with virtual links.
    reserved: BTreeMap<Mac, Reserved>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenBucket {
    /// When it is full again.
    full_at: Now,
    /// The last message found it empty.
    is_empty: bool,
}

#[derive(Debug, Default)]
struct Reserved {
    bucket: TokenBucket,
    /// Virtual links to ports of this address: an ENode may have several.
    links: u32,
}

/// How fast a bucket fills, and how much is in it.
pub(crate) struct FillRate {
    pub(crate) cost: Duration,
    pub(crate) burst: u32,
}

impl TokenBucket {
    /// Takes what a message costs, if there is as much.
    pub(crate) fn take(&mut self, now: Now, rate: &FillRate) -> bool {
        self.take_many(now, rate, 1)
    }

    /// Takes what so many messages cost, or nothing.
    pub(crate) fn take_many(&mut self, now: Now, rate: &FillRate, count: u32) -> bool {
        let full_at = self.full_at.max(now) + rate.cost * count;
        self.is_empty = full_at > now + rate.cost * rate.burst;
        if !self.is_empty {
            self.full_at = full_at;
        }
        !self.is_empty
    }
}

/// A message for which there is no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget {
    /// The one before it was looked at.
    pub(crate) is_first: bool,
}

impl Budget {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            reserved_cost: RESERVED.cost,
            buckets: vec![TokenBucket::default(); BUCKETS],
            reserved: BTreeMap::new(),
        }
    }

    /// The same, where senders with virtual links may send a message in so short a time. FCFs set
    /// the period of keep alives.
    pub(crate) const fn reserving(mut self, cost: Duration) -> Self {
        self.reserved_cost = cost;
        self
    }

    /// There is a virtual link to a port with these addresses.
    pub(crate) fn reserve(&mut self, macs: [Mac; 2]) {
        for mac in macs {
            self.reserved.entry(mac).or_default().links += 1;
        }
    }

    /// The virtual link to a port with these addresses is gone.
    pub(crate) fn release(&mut self, macs: [Mac; 2]) {
        for mac in macs {
            let Some(reserved) = self.reserved.get_mut(&mac) else {
                continue;
            };
            reserved.links -= 1;
            if reserved.links == 0 {
                self.reserved.remove(&mac);
            }
        }
    }

    /// Buckets of single senders.
    pub(crate) fn records(&self) -> usize {
        self.reserved.len()
    }

    /// Takes what a message costs. This is all that one costs for which there is nothing left.
    pub(crate) fn take(&mut self, now: Now, from: Mac) -> Result<(), OverBudget> {
        let rate = FillRate {
            cost: self.reserved_cost,
            ..RESERVED
        };
        let reserved = self.reserved.get_mut(&from);
        if reserved.is_some_and(|reserved| reserved.bucket.take(now, &rate)) {
            return Ok(());
        }
        let mixed = (from.number() ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bucket = &mut self.buckets[(mixed >> 32) as usize % BUCKETS];
        let was_empty = bucket.is_empty;
        if bucket.take(now, &SHARED) {
            Ok(())
        } else {
            Err(OverBudget {
                is_first: !was_empty,
            })
        }
    }
}

/// With 4,096 ports on the Ethernet, 64 share one.
const BUCKETS: usize = 64;

/// 128 messages a second. All buckets together let 8,192 through, some 2 % of a core where each
/// costs a response and an entry. What costs more has a budget of its own besides, as the end of a
/// login to a switch. A full bucket holds 512: more than 64 ports send while all begin at once.
const SHARED: FillRate = FillRate {
    cost: Duration::from_micros(1_000_000 / 128),
    burst: 512,
};

/// A message each 2 s, and 8 at once, where a Beacon each 8 s is enough. With 4,096 links, the most
/// that there are, half as much is let through as by the shared buckets.
const RESERVED: FillRate = FillRate {
    cost: Duration::from_secs(2),
    burst: 8,
};
