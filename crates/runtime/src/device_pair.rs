//! Queue pairs of devices, as iSER sessions of either side use them.
//!
//! Beside the calls of the trait there are those of [`DevicePair::pair`]: to flush what was posted
//! once a turn, to arm the queue before the core sleeps, to post receives as the window grows.

use ::io::rdma::{
    RdmaCompletion, RdmaEnd, RdmaHeader, RdmaPair, RdmaWork, RemoteAccess, RemoteAddress,
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
        }
    }

    /// The pair itself.
    pub fn pair(&mut self) -> &mut RdmaPair {
        &mut self.pair
    }

    /// The pair itself, to be moved to another core; and whether its peer bears invalidation.
    #[must_use]
    pub fn into_parts(self) -> (RdmaPair, bool) {
        (self.pair, self.can_invalidate)
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

    fn end(&self, end: RdmaEnd) -> QueuePairEnd {
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
        Some(match self.pair.poll()? {
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
            RdmaCompletion::Ended(end) => Completion::Ended(self.end(end)),
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
