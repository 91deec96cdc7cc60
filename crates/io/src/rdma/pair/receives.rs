//! Receives: memory that messages of the peer come in. A message is copied out of it and the
//! receive posted again, so that few of them serve many messages that are kept.

use std::ptr::NonNull;
use std::sync::Arc;

use super::PairInner;
use crate::rdma::domain::RdmaDomain;
use crate::rdma::memory::DomainMemory;
use crate::rdma::registration::OwnRegion;
use crate::rdma::{RdmaEnd, RdmaError};

/// The receives of a pair.
pub(super) struct Receives {
    blocks: Vec<ReceiveBlock>,
    /// The longest message, in bytes, and what each takes of memory.
    max_receive: usize,
    size: usize,
    /// How many there are, and may be.
    count: u16,
    most: u16,
    /// Those that the device does not have.
    idle: Vec<u16>,
}

/// Receives that were added together.
struct ReceiveBlock {
    region: OwnRegion,
    first: u16,
}

/// Marks the number of a receive among those of requests.
pub(super) const RECEIVE: u64 = 1 << 63;

/// Messages begin where cache lines do.
const ALIGNMENT: usize = 64;

/// Messages whose memory is kept, of those given back.
const SPARE_MAX: usize = 64;

impl Receives {
    /// For messages of up to `max_receive` bytes.
    pub(super) fn new(max_receive: u32, most: u32) -> Self {
        let max_receive = max_receive.max(1) as usize;
        Self {
            blocks: Vec::new(),
            max_receive,
            size: max_receive.next_multiple_of(ALIGNMENT),
            count: 0,
            most: u16::try_from(most).unwrap_or(u16::MAX),
            idle: Vec::new(),
        }
    }

    /// How many there may be.
    pub(super) const fn most(&self) -> u16 {
        self.most
    }

    /// Adds receives until there are `count`.
    pub(super) fn grow(&mut self, count: u16, domain: &Arc<RdmaDomain>) -> Result<(), RdmaError> {
        let (first, count) = (self.count, count.min(self.most));
        if count <= first {
            return Ok(());
        }
        let bytes = usize::from(count - first) * self.size;
        let region = OwnRegion::new(domain, bytes, 0)?;
        self.blocks.push(ReceiveBlock { region, first });
        self.idle.extend(first..count);
        self.count = count;
        Ok(())
    }

    /// Whether the device has fewer than half of them: an owner that takes one message at a time
    /// must not keep the peer waiting.
    pub(super) fn are_scarce(&self) -> bool {
        self.idle.len() > usize::from(self.count / 2)
    }

    /// Where a receive lies, and the key that reaches it; `None` if there is no such receive.
    fn place(&self, number: u16) -> Option<(NonNull<u8>, u32)> {
        let holds = |block: &&ReceiveBlock| block.first <= number;
        let block = self.blocks.iter().rev().find(holds)?;
        let at = usize::from(number - block.first) * self.size;
        (number < self.count).then(|| (block.region.at(at), block.region.lkey()))
    }
}

impl PairInner {
    /// Gives the device the receives that it does not have, in one chain.
    pub(super) fn post_receives(&mut self, memory: &DomainMemory) {
        if self.receives.idle.is_empty() || self.has_ended {
            return;
        }
        let mut arrays = memory.arrays.borrow_mut();
        for number in &self.receives.idle {
            if let Some((start, lkey)) = self.receives.place(*number) {
                let id = RECEIVE | u64::from(*number);
                arrays.receive(id, start.addr().get(), self.receives.max_receive, lkey);
            }
        }
        self.receives.idle.clear();
        // SAFETY: the memory of receives is the pair's, and goes after its queue pair.
        let refused = unsafe { self.wire.post_receives(&mut arrays) };
        drop(arrays);
        if refused != 0 {
            let end = RdmaEnd::failed("the RDMA device takes no receives", "ibv_post_recv");
            self.end(end, memory);
        }
    }

    /// Takes a message out of its receive; `None` if the device tells nonsense.
    pub(super) fn take_message(&mut self, number: u64, len: u32) -> Option<Vec<u8>> {
        let number = u16::try_from(number & !RECEIVE).ok()?;
        let (start, _) = self.receives.place(number)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.receives.max_receive)?;
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        // SAFETY: within the receive, which the device has given back: it neither reads nor writes
        // it until it is posted again, and the peer cannot reach it.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) });
        self.receives.idle.push(number);
        Some(bytes)
    }

    /// Keeps the memory of a message for others.
    pub(super) fn recycle(&mut self, received: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(received);
        }
    }
}
