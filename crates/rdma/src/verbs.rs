//! The vocabulary of a queue pair: what a datamover posts, and what it is told.
//!
//! An operation owns its memory until a [`Completion`] returns it. Memory that the peer may reach
//! is named by an [`Stag`] of this queue pair; there is no key that reaches more than one buffer.
//!
//! | here | verbs of InfiniBand | RFC 5040 |
//! |---|---|---|
//! | [`Work::Send`] | SEND, SEND_WITH_INV | Send, Send with Invalidate |
//! | [`Work::Write`] | RDMA_WRITE | RDMA Write |
//! | [`Work::Read`] | RDMA_READ | RDMA Read Request, and its response |
//! | [`QueuePair::advertise`] | a memory region, or a window bound to it | an STag becomes valid |
//! | [`QueuePair::withdraw`] | LOCAL_INV | an STag becomes invalid |
//! | [`QueuePair::recycle`] | posting a receive | an Untagged Buffer of queue 0 |

use scsi::violation::Violation;

/// One queue pair: this end of a reliable connection between two peers.
pub trait QueuePair<L> {
    /// What it can do; [`Limits::room`] changes with each work and completion.
    fn limits(&self) -> Limits;

    /// Lets the peer reach all of a buffer of less than 4 GiB, and nothing else, in one way. A
    /// buffer may be advertised several times.
    fn advertise(&mut self, of: &L, may: Access) -> Tag;

    /// From now on the peer reaches nothing by this STag. One that the peer has invalidated is to
    /// be
    /// withdrawn too: until then it is remembered what was done by it.
    ///
    /// Returns how many bytes the peer has written by it, or was sent of it, from the first one on
    /// without a gap. `None` if that is not known: a device does not tell, and an STag that was not
    /// valid has none.
    fn withdraw(&mut self, stag: Stag) -> Option<u32>;

    /// Queues an operation. Operations begin in the order in which they were posted: a read that
    /// waits for [`Limits::ord`] holds back what is behind it.
    fn post(&mut self, work: Work<L>);

    /// Gives up a read. Its memory is returned at once where nothing can reach it any more, and
    /// with [`Completion::Got`] where a device may still fill it. [`Completion::Drained`] or `Got`
    /// follows; or [`Completion::Ended`], as a device that stores to a medium by itself can only be
    /// stopped by the end of its queue pair.
    fn cancel(&mut self, read: ReadId) -> Option<L>;

    /// What has happened since the last call, one by one.
    fn poll(&mut self) -> Option<Completion<L>>;

    /// Takes the memory of [`Completion::Received`] back, to receive into it again.
    fn recycle(&mut self, received: Vec<u8>);

    /// Whether there is memory to advertise a buffer of so many bytes now. It is wanted where a
    /// device does not reach buffers where they lie: then [`Self::advertise`] without it ends the
    /// queue pair, and what is written by an STag is in the buffer after [`Self::withdraw`].
    fn can_advertise(&mut self, bytes: usize, may: Access) -> bool {
        let _ = (bytes, may);
        true
    }
}

/// An STag, or an rkey: 32 bits that name a buffer to the peer. In no byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stag(pub u32);

/// A place in a buffer that one of the two ends has advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Which buffer.
    pub stag: Stag,
    /// The Tagged Offset, in bytes. The end that advertises a buffer chooses that of its first
    /// byte: 0 here, an address in the kernel at a Linux peer.
    pub offset: u64,
}

impl Tag {
    /// The place `bytes` further on. It wraps at 2^64, where a peer that checks will refuse it.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self {
            stag: self.stag,
            offset: self.offset.wrapping_add(bytes),
        }
    }
}

/// What the peer may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// RDMA Read: the data of a SCSI write.
    Read,
    /// RDMA Write: the data of a SCSI read.
    Write,
}

/// Names a read among those of its queue pair that are not complete. The user chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadId(pub u32);

/// An operation to be carried out.
#[derive(Clone, Debug)]
pub enum Work<L> {
    /// Sends a message: header, then data. It ends with [`Completion::Sent`].
    Send {
        /// The first bytes of the message.
        header: SendHeader,
        /// The rest of it.
        data: Option<L>,
        /// An STag of the peer that it does not want used any more. Only if
        /// [`Limits::can_invalidate`].
        invalidate: Option<Stag>,
    },
    /// Writes into the peer's memory. It ends with [`Completion::Written`]; the peer is told
    /// nothing, so a `Send` follows.
    Write {
        /// Where the first byte goes.
        to: Tag,
        /// What is written.
        from: L,
    },
    /// Reads the peer's memory. It ends with [`Completion::Got`], and may do so behind what was
    /// posted later: who has to wait for it waits for `Got`.
    Read {
        /// Its name.
        id: ReadId,
        /// Where the first byte comes from.
        from: Tag,
        /// What is filled, all of it. Less than 4 GiB.
        into: L,
    },
}

/// What a queue pair tells.
#[derive(Debug)]
pub enum Completion<L> {
    /// A [`Work::Send`] has left, or its data is held until it has: the oldest that was not told
    /// yet. The peer may not have it.
    Sent,
    /// A [`Work::Write`] has left, or its data is held until it has: the oldest that was not told
    /// yet. The peer may not have it.
    Written,
    /// A [`Work::Read`] is complete.
    Got {
        /// Which one.
        id: ReadId,
        /// The memory, filled; or as it is, of a read that was cancelled.
        into: L,
    },
    /// A read that was cancelled is over, and so is the peer's part in it: only now the peer can be
    /// told that it may withdraw what was read.
    Drained(ReadId),
    /// A message has come.
    Received {
        /// All of it. To be given back to [`QueuePair::recycle`].
        bytes: Vec<u8>,
        /// The STag of ours that it invalidated.
        invalidated: Option<Stag>,
    },
    /// Nothing follows. What was posted or advertised is forgotten, and its memory with it.
    Ended(QueuePairEnd),
}

/// Why a queue pair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePairEnd {
    /// The peer broke a rule.
    Violation(Violation),
    /// The peer ended it and gave a reason.
    ByPeer {
        /// The reason.
        reason: Violation,
        /// The same as the number that came: the Terminate Control field of iWARP (layer, error
        /// type, error code).
        code: u16,
    },
    /// This end asked for it.
    Requested,
}

impl QueuePairEnd {
    /// The rule that it ended by.
    #[must_use]
    pub const fn violation(self) -> Violation {
        match self {
            Self::Violation(violation)
            | Self::ByPeer {
                reason: violation, ..
            } => violation,
            Self::Requested => Violation {
                rule: "a queue pair that was ended here",
                clause: "RFC 5040 §5.4",
            },
        }
    }
}

/// What a queue pair can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Reads of ours that may be outstanding at once: the smaller one of our ORD and the peer's
    /// IRD.
    pub ord: u16,
    /// Reads of the peer that may be outstanding at once.
    pub ird: u16,
    /// Operations that may be posted now.
    pub room: usize,
    /// Whether a Send may invalidate an STag of the peer, as far as this end knows.
    pub can_invalidate: bool,
    /// The longest message that can be received, in bytes.
    pub max_receive: u32,
}

/// The beginning of a message, within the operation itself: a header of iSER, a Basic Header
/// Segment, and the sense data of a response. So a response costs no memory of its own.
#[derive(Clone, Copy)]
pub struct SendHeader {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl SendHeader {
    /// The longest, in bytes: 28 of iSER, 48 of iSCSI, 2 of a length, 72 of sense data, padding.
    pub const MAX: usize = 152;

    /// The `parts` one after the other; `None` if they are longer than [`Self::MAX`].
    #[must_use]
    // Parts of known length are copied without a call.
    #[inline(always)]
    pub fn new(parts: &[&[u8]]) -> Option<Self> {
        let mut header = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        for part in parts {
            let at = usize::from(header.len);
            let place = header.bytes.get_mut(at..at + part.len())?;
            place.copy_from_slice(part);
            header.len += part.len() as u8;
        }
        Some(header)
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for SendHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SendHeader").field(&self.as_slice()).finish()
    }
}
