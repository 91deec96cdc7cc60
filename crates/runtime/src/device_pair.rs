//! Queue pairs of devices, as iSER sessions of either side use them.
//!
//! Beside the calls of the trait there are those of [`DevicePair::pair`]: to flush what was posted
//! once a turn, to arm the queue before the core sleeps, to post receives as the window grows.

use std::collections::VecDeque;

use ::io::rdma::{
    RdmaCompletion, RdmaEnd, RdmaHeader, RdmaMemory, RdmaPair, RdmaPairInTransit, RdmaWork,
    RemoteAccess, RemoteAddress,
};
use block::lease::BlockLease;
use rdma::verbs::{
    Access, Completion, Limits, QueuePair, QueuePairEnd, ReadId, SendHeader, Stag, Tag, Work,
};
use scsi::medium::Lease as _;
use scsi::violation::Violation;

/// A queue pair of a device.
#[derive(Debug)]
pub struct DevicePair {
    pair: RdmaPair,
    /// The peer bears a Send with Invalidate.
    can_invalidate: bool,
    /// Why this end gave up, if it did.
    refused: Option<Violation>,
    /// Messages that were told and taken back, to be told first.
    kept: VecDeque<Vec<u8>>,
    /// Something was told since this was asked.
    has_told: bool,
    /// How much more may be told.
    allowed: usize,
    /// How it ended, once that was told.
    end: Option<RdmaEnd>,
}

/// A pair on its way to another core.
#[derive(Debug)]
pub struct DevicePairInTransit {
    pair: RdmaPairInTransit,
    can_invalidate: bool,
    kept: VecDeque<Vec<u8>>,
}

/// A session that advertises more than it may have staging memory for.
const NO_STAGING: Violation = Violation {
    rule: "no memory that a target may reach is left for a command",
    clause: "32 MiB a session over an RDMA device",
};

/// A message whose beginning is too long, which none of a session is.
const LONG_HEADER: Violation = Violation {
    rule: "a header of a message is too long for an RDMA device",
    clause: "160 bytes",
};

/// The peer disconnected: there is no number, and a reason only in its log.
const DISCONNECTED: Violation = Violation {
    rule: "the connection was ended; the log of the peer may say why",
    clause: "RDMA_CM_EVENT_DISCONNECTED",
};

impl DevicePair {
    /// A pair whose peer bears invalidation, or not, as its private data says.
    #[must_use]
    pub fn new(pair: RdmaPair, can_invalidate: bool) -> Self {
        Self {
            pair,
            can_invalidate,
            refused: None,
            kept: VecDeque::new(),
            has_told: false,
            allowed: usize::MAX,
            end: None,
        }
    }

    /// The pair itself.
    pub fn pair(&mut self) -> &mut RdmaPair {
        &mut self.pair
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.pair.domain().device().name
    }

    /// The pair itself, to be looked at.
    #[must_use]
    pub const fn as_pair(&self) -> &RdmaPair {
        &self.pair
    }

    /// Takes a message back that was told too early: it is told before all others, in the order in
    /// which they were given.
    pub fn keep(&mut self, message: Vec<u8>) {
        self.kept.push_back(message);
    }

    /// Whether it has messages that were taken back: what wakes an owner does not tell of them.
    #[must_use]
    pub fn is_keeping(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Tells no more than so many completions before the next call of this: a peer may send faster
    /// than its messages are looked at. Without a call there is no limit.
    pub fn allow(&mut self, completions: usize) {
        self.allowed = completions;
    }

    /// Whether anything was told since the last call of this.
    pub fn take_told(&mut self) -> bool {
        std::mem::take(&mut self.has_told)
    }

    /// How it ended, once that was told.
    #[must_use]
    pub const fn end(&self) -> Option<RdmaEnd> {
        self.end
    }

    /// Takes the pair from its core, to be attached to another one; `None` if it has work that is
    /// not complete, and the pair is gone then.
    #[must_use]
    pub fn release(self) -> Option<DevicePairInTransit> {
        Some(DevicePairInTransit {
            pair: self.pair.release().ok()?,
            can_invalidate: self.can_invalidate,
            kept: self.kept,
        })
    }

    /// Ends the pair from this side.
    fn refuse(&mut self, why: Violation) {
        self.refused = self.refused.or(Some(why));
        self.pair.end();
    }

    fn send(&mut self, header: &SendHeader, data: Option<BlockLease>, invalidate: Option<Stag>) {
        let Some(header) = RdmaHeader::new(header.as_slice()) else {
            return self.refuse(LONG_HEADER);
        };
        self.pair.post(RdmaWork::Send {
            header,
            data: data.map(BlockLease::into),
            invalidate: invalidate.map(|stag| stag.0),
        });
    }

    fn why(&self, end: RdmaEnd) -> QueuePairEnd {
        match (self.refused, end) {
            (Some(why), _) => QueuePairEnd::Violation(why),
            (None, RdmaEnd::Requested) => QueuePairEnd::Requested,
            (None, RdmaEnd::ByPeer) => QueuePairEnd::ByPeer {
                reason: DISCONNECTED,
                code: 0,
            },
            (None, RdmaEnd::Failed(failure)) => QueuePairEnd::Violation(Violation {
                rule: failure.problem,
                clause: failure.name,
            }),
        }
    }
}

impl DevicePairInTransit {
    /// Gives the pair to the core that this memory is of, the caller's.
    #[must_use]
    pub fn attach(self, memory: &RdmaMemory) -> DevicePair {
        DevicePair {
            kept: self.kept,
            ..DevicePair::new(self.pair.attach(memory), self.can_invalidate)
        }
    }
}

impl QueuePair<BlockLease> for DevicePair {
    fn limits(&self) -> Limits {
        let limits = self.pair.limits();
        Limits {
            ord: limits.ord,
            ird: limits.ird,
            room: limits.room,
            can_invalidate: limits.can_invalidate && self.can_invalidate,
            max_receive: limits.max_receive,
        }
    }

    fn can_advertise(&mut self, bytes: usize, may: Access) -> bool {
        self.pair.can_advertise(bytes, access(may))
    }

    fn advertise(&mut self, of: &BlockLease, may: Access) -> Tag {
        let Some(place) = self.pair.advertise(of.buffer(), access(may)) else {
            self.refuse(NO_STAGING);
            return Tag {
                stag: Stag(0),
                offset: 0,
            };
        };
        Tag {
            stag: Stag(place.key),
            offset: place.address,
        }
    }

    fn withdraw(&mut self, stag: Stag) -> Option<u32> {
        self.pair.withdraw(stag.0);
        // A device does not count what the peer moves.
        None
    }

    fn post(&mut self, work: Work<BlockLease>) {
        match work {
            Work::Send {
                header,
                data,
                invalidate,
            } => self.send(&header, data.filter(|data| !data.is_empty()), invalidate),
            Work::Write { to, from } => self.pair.post(RdmaWork::Write {
                to: place(to),
                from: from.into(),
            }),
            Work::Read { id, from, into } => self.pair.post(RdmaWork::Read {
                id: id.0,
                from: place(from),
                into: into.into(),
            }),
        }
    }

    fn cancel(&mut self, read: ReadId) -> Option<BlockLease> {
        self.pair.cancel(read.0).map(BlockLease::from)
    }

    fn poll(&mut self) -> Option<Completion<BlockLease>> {
        if self.allowed == 0 {
            return None;
        }
        self.allowed -= 1;
        if let Some(bytes) = self.kept.pop_front() {
            self.has_told = true;
            return Some(Completion::Received {
                bytes,
                invalidated: None,
            });
        }
        let completion = self.pair.poll()?;
        self.has_told = true;
        Some(match completion {
            RdmaCompletion::Sent => Completion::Sent,
            RdmaCompletion::Written => Completion::Written,
            RdmaCompletion::Got { id, into } => Completion::Got {
                id: ReadId(id),
                into: into.into(),
            },
            RdmaCompletion::Drained(id) => Completion::Drained(ReadId(id)),
            RdmaCompletion::Received { bytes, invalidated } => Completion::Received {
                bytes,
                invalidated: invalidated.map(Stag),
            },
            RdmaCompletion::Ended(end) => {
                self.end = Some(end);
                Completion::Ended(self.why(end))
            }
        })
    }

    fn recycle(&mut self, received: Vec<u8>) {
        self.pair.recycle(received);
    }
}

fn access(may: Access) -> RemoteAccess {
    match may {
        Access::Read => RemoteAccess::Read,
        Access::Write => RemoteAccess::Write,
    }
}

fn place(tag: Tag) -> RemoteAddress {
    RemoteAddress {
        key: tag.stag.0,
        address: tag.offset,
    }
}

#[cfg(test)]
mod tests;
