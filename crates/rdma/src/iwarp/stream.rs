//! One end of an iWARP connection in full operation (RFC 5040 §5 to §7): a queue pair whose wire is
//! a stream of bytes.
//!
//! Bytes go in by [`Stream::receive`], bytes and data to be sent come out of [`Stream::transmit`];
//! what lies between is a [`QueuePair`].
//!
//! - **An FPDU is checked whole before a byte of it is placed.** The first rule that the peer
//!   breaks ends the stream: it is told which one by a Terminate, and whatever it sends after that
//!   is dropped. All that was advertised is withdrawn at that moment.
//! - **What is sent leaves message by message.** Responses to reads of the peer take turns with
//!   what was posted, so neither waits for more than one message of the other. Segments of two
//!   messages are never mixed: some receivers keep one place for tagged and one for untagged ones.
//! - **What can wait is bounded**: reads of the peer by IRD, messages that have come by one, as
//!   bytes are left where they are until it was taken.
//!
//! | what | file |
//! |---|---|
//! | what comes | `receive.rs` |
//! | what leaves | `transmit.rs` |
//! | reads, ours and the peer's | `reads.rs` |
//! | on its way to another thread | `resting.rs` |

mod reads;
mod receive;
mod resting;
#[cfg(test)]
mod tests;
mod transmit;

use std::collections::VecDeque;

use scsi::medium::Lease;

use self::reads::{OwnReads, PeerReads};
use self::receive::Inbound;
pub use self::resting::RestingStream;
use self::transmit::Outbound;
use super::fpdu::{FpduReader, FpduWriter, LONG_FPDU, mulpdu};
use super::startup::{Agreed, MpaRole};
use super::tags::Tags;
use super::terminate::{Terminate, TerminateCode};
use crate::verbs::{Access, Completion, Limits, QueuePair, QueuePairEnd, ReadId, Stag, Tag, Work};

/// What a stream needs to know beside what was agreed upon.
#[derive(Clone, Copy, Debug)]
pub struct StreamConfig {
    /// Bytes in a segment of TCP, as the connection has it now.
    pub segment_size: usize,
    /// The longest message that is taken, in bytes.
    pub max_receive: u32,
    /// The peer bears a Send with Invalidate. Its private data at startup says so, or nothing does.
    pub can_invalidate: bool,
    /// Random bytes that the peer does not know: STags are made of them.
    pub random: [u8; 32],
}

/// One end of a connection.
#[derive(Debug)]
pub struct Stream<L> {
    agreed: Agreed,
    max_receive: u32,
    can_invalidate: bool,
    /// The longest ULPDU that is sent, in bytes.
    mulpdu: usize,
    tags: Tags<L>,
    reader: FpduReader,
    inbound: Inbound,
    writer: FpduWriter,
    outbound: Outbound<L>,
    own_reads: OwnReads<L>,
    peer_reads: PeerReads,
    completions: VecDeque<Completion<L>>,
    /// A message waits in `completions`.
    is_message_waiting: bool,
    /// A Terminate that is to be sent.
    terminate: Option<Terminate>,
    has_ended: bool,
}

/// Operations that may be posted before some have left: for each command of a window of 128, its
/// data and its response.
const ROOM: usize = 256;

impl<L: Lease> Stream<L> {
    /// A stream after the Reply Frame.
    #[must_use]
    pub fn new(agreed: Agreed, config: &StreamConfig) -> Self {
        let mut stream = Self {
            agreed,
            max_receive: config.max_receive,
            can_invalidate: config.can_invalidate,
            mulpdu: 0,
            tags: Tags::new(config.random),
            reader: FpduReader::new(agreed.crc),
            inbound: Inbound::new(agreed.rtr),
            writer: FpduWriter::new(agreed.crc, agreed.markers),
            outbound: Outbound::new(),
            own_reads: OwnReads::new(),
            peer_reads: PeerReads::new(),
            completions: VecDeque::new(),
            is_message_waiting: false,
            terminate: None,
            has_ended: false,
        };
        stream.set_segment_size(config.segment_size);
        if let Some(code) = agreed.refused {
            stream.fail(code, &[]);
        }
        stream
    }

    /// The size of a segment of TCP has changed.
    pub fn set_segment_size(&mut self, bytes: usize) {
        let bytes = if self.agreed.long_fpdus {
            LONG_FPDU
        } else {
            bytes
        };
        self.mulpdu = mulpdu(bytes, self.agreed.markers);
    }

    /// The longest message that is taken has changed, in bytes.
    pub fn set_max_receive(&mut self, bytes: u32) {
        self.max_receive = bytes;
    }

    /// Gives back the memory that a busy connection needed.
    pub fn trim(&mut self) {
        self.reader.trim();
        self.inbound.trim();
        self.completions.shrink_to_fit();
    }

    /// Ends the stream from this side, with an error that the peer is told as a local one. To be
    /// used where the protocol above has no message for what went wrong.
    pub fn end(&mut self) {
        if self.end_by(QueuePairEnd::Requested) {
            self.tell(Terminate::new(TerminateCode::LOCAL_CATASTROPHIC, &[]));
        }
    }

    /// Whether the stream has ended and all that is to be sent about it was put out: the connection
    /// is to be closed, in a way that lets that arrive.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.has_ended && self.terminate.is_none()
    }

    /// What both ends go by.
    #[must_use]
    pub const fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Whether [`QueuePair::poll`] has something to tell.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    /// The peer broke a rule by the segment `ulpdu`, or by none that could be read.
    fn fail(&mut self, code: TerminateCode, ulpdu: &[u8]) {
        let is_first = self.end_by(QueuePairEnd::Violation(code.violation()));
        // A startup that went wrong ends without a word (RFC 5044 §8).
        if is_first && code != TerminateCode::STARTUP {
            self.tell(Terminate::new(code, ulpdu));
        }
    }

    /// Has a Terminate sent, unless the peer is not ready to hear anything.
    fn tell(&mut self, terminate: Terminate) {
        self.terminate = self.may_send().then_some(terminate);
    }

    /// Forgets everything, and tells why. Only the first end counts: returns whether this is it.
    fn end_by(&mut self, why: QueuePairEnd) -> bool {
        if self.has_ended {
            return false;
        }
        self.has_ended = true;
        self.tags.clear();
        self.outbound = Outbound::new();
        self.own_reads = OwnReads::new();
        self.peer_reads = PeerReads::new();
        self.completions.push_back(Completion::Ended(why));
        true
    }

    /// A responder has to hear an FPDU before it sends one (RFC 5044 §7.1.2, rule 4).
    fn may_send(&self) -> bool {
        self.agreed.role == MpaRole::Initiator || self.inbound.has_begun
    }
}

impl<L: Lease> QueuePair<L> for Stream<L> {
    fn limits(&self) -> Limits {
        let room = ROOM.saturating_sub(self.outbound.len());
        Limits {
            ord: self.agreed.ord,
            ird: self.agreed.ird,
            room: if self.has_ended { 0 } else { room },
            can_invalidate: self.can_invalidate,
            max_receive: self.max_receive,
        }
    }

    fn advertise(&mut self, of: &L, may: Access) -> Tag {
        if self.has_ended {
            // The STag leads nowhere, so that nothing holds the memory.
            return Tag {
                stag: self.tags.draw(),
                offset: 0,
            };
        }
        self.tags.advertise(of, may)
    }

    fn withdraw(&mut self, stag: Stag) -> Option<u32> {
        self.tags.withdraw(stag)
    }

    fn post(&mut self, work: Work<L>) {
        if !self.has_ended {
            self.outbound.push(work);
        }
    }

    fn cancel(&mut self, read: ReadId) -> Option<L> {
        let unsent = self.outbound.cancel(read);
        if unsent.is_some() {
            self.completions.push_back(Completion::Drained(read));
            return unsent;
        }
        self.own_reads.cancel(read)
    }

    fn poll(&mut self) -> Option<Completion<L>> {
        let completion = self.completions.pop_front()?;
        if matches!(completion, Completion::Received { .. }) {
            self.is_message_waiting = false;
        }
        Some(completion)
    }

    fn recycle(&mut self, received: Vec<u8>) {
        self.inbound.recycle(received);
    }
}
