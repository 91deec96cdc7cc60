//! From what a queue pair tells to notices, and the rules for headers that initiators send (RFC
//! 7145 §7.3, §9, §10.1.3).

use std::ops::Range;

use rdma::verbs::{self, Completion, QueuePair, QueuePairEnd, ReadId};
use scsi::medium::{Lease, Now};
use scsi::violation::Violation;

use super::{IserMover, IserMoverKeys};
use crate::datamover::{Notice, Solicited};
use crate::parameters::MAX_AHS_LENGTH;
use crate::session::Session;
use crate::wire::bhs::{BHS_LEN, Bhs, Opcode, Ttt};
use crate::wire::iser::{
    AdvertisedBuffers, ControlMessage, Hello, HelloReply, ISER_HEADER_LEN, ISER_VERSION, IserHeader,
};
use crate::wire::scsi_command::ScsiCommand;

/// Memory of the initiator that came with the header that is being told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Announced {
    /// Where the first byte of all write data would be.
    pub(super) write: Option<verbs::Tag>,
    /// Where the first byte of read data goes.
    pub(super) read: Option<verbs::Tag>,
}

/// A message whose data segment was not told.
#[derive(Debug)]
pub(super) struct InboundSegment {
    message: Vec<u8>,
    data: Range<usize>,
}

/// Where the Hello exchange stands (RFC 7145 §5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloState {
    /// The initiator has declared that it will send one.
    Expected,
    /// It is to be answered.
    Due(HelloReply),
    /// There is nothing more to exchange.
    Over {
        /// Our iSER-ORD.
        ord: u16,
    },
}

impl HelloState {
    pub(super) const fn new(required: bool) -> Self {
        if required {
            Self::Expected
        } else {
            Self::Over { ord: u16::MAX }
        }
    }

    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Over { .. })
    }

    /// Whether an answer is due.
    pub(super) const fn has_reply(self) -> bool {
        matches!(self, Self::Due(_))
    }

    /// The answer that is due, which is taken as sent.
    pub(super) fn take_reply(&mut self) -> Option<HelloReply> {
        let Self::Due(reply) = *self else {
            return None;
        };
        *self = Self::Over { ord: reply.ord };
        Some(reply)
    }

    /// How many reads may be outstanding, of a queue pair that allows `ord`.
    pub(super) fn ord(self, ord: u16) -> u16 {
        match self {
            Self::Expected | Self::Due(_) => 0,
            Self::Over { ord: agreed } => ord.min(agreed),
        }
    }
}

impl<L: Lease> Session<L, IserMover<L>> {
    /// Takes in what the queue pair tells. Returns whether that was all: if it was not, a message
    /// waits until `poll` has given `None` and what came of it is done, or until
    /// [`Session::is_stalled`] is over; no more messages are to be received until then.
    pub fn receive(&mut self, now: Now, pair: &mut impl QueuePair<L>) -> bool {
        self.settle(pair);
        while let Some(completion) = pair.poll() {
            self.completed(now, completion, pair);
        }
        if !self.connection.mover.has_told_all() {
            self.take_messages(pair);
        }
        self.settle(pair);
        if !self.is_open() {
            self.connection.mover.drop_messages(pair);
        }
        self.connection.mover.has_told_all()
    }

    /// Whether a message waits, or a part of one.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.connection.mover.has_told_all()
    }

    /// Whether a message waits that may be looked at now.
    #[must_use]
    pub fn has_message(&self) -> bool {
        self.takes_more() && !self.connection.mover.has_told_all()
    }

    /// How many messages have come that were not looked at.
    #[must_use]
    pub fn messages_waiting(&self) -> usize {
        self.connection.mover.received.len()
    }

    fn take_messages(&mut self, pair: &mut impl QueuePair<L>) {
        while self.takes_more() {
            if let Some(segment) = self.connection.mover.segment.take() {
                let bytes = &segment.message[segment.data.clone()];
                self.notice(Notice::Data { bytes, end: true });
                pair.recycle(segment.message);
            } else if self.connection.mover.received.is_empty() {
                return;
            } else if self.connection.mover.is_flooded() {
                self.notice(Notice::Broken(None, FLOOD));
            } else if let Some(message) = self.connection.mover.received.pop_front() {
                self.message(message, pair);
            } else {
                return;
            }
        }
    }

    fn completed(&mut self, now: Now, completion: Completion<L>, pair: &mut impl QueuePair<L>) {
        match completion {
            Completion::Sent => self.connection.mover.sent(),
            Completion::Written => self.connection.mover.written(),
            Completion::Got { id, into } => {
                self.heard(now, into.len());
                self.read_over(id, true);
            }
            Completion::Drained(id) => self.read_over(id, false),
            Completion::Received { bytes, .. } => {
                self.heard(now, bytes.len());
                if self.may_look_at_once() {
                    self.message(bytes, pair);
                } else {
                    self.connection.mover.received.push_back(bytes);
                }
            }
            Completion::Ended(why) => self.pair_ended(why),
        }
    }

    fn may_look_at_once(&self) -> bool {
        let mover = &self.connection.mover;
        mover.has_told_all() && !mover.is_flooded() && self.takes_more()
    }

    fn read_over(&mut self, id: ReadId, has_data: bool) {
        let news = self.connection.mover.read_over(id, has_data);
        if let Some(news) = news
            && self.is_open()
        {
            self.notice(Notice::Solicited(news));
        }
    }

    fn pair_ended(&mut self, why: QueuePairEnd) {
        match why {
            QueuePairEnd::Violation(violation) => self.notice(Notice::Broken(None, violation)),
            QueuePairEnd::ByPeer { reason, .. } => self.notice(Notice::Broken(None, reason)),
            QueuePairEnd::Requested => {}
        }
    }

    /// A message, whose data segment is kept until it is asked for again.
    fn message(&mut self, message: Vec<u8>, pair: &mut impl QueuePair<L>) {
        let mover = &mut self.connection.mover;
        let ord = pair.limits().ord;
        match mover.header(&message, ord) {
            Ok(Some((bhs, _))) if is_solicited(&bhs) => {
                pair.recycle(message);
                self.notice(Notice::Stray(bhs));
            }
            Ok(Some((bhs, data))) => {
                if data.is_empty() {
                    pair.recycle(message);
                } else {
                    mover.segment = Some(InboundSegment { message, data });
                }
                self.notice(Notice::Header(bhs));
            }
            Ok(None) => pair.recycle(message),
            Err(violation) => {
                pair.recycle(message);
                self.notice(Notice::Broken(None, violation));
            }
        }
    }
}

impl<L: Lease> IserMover<L> {
    /// Reads a message: the PDU's header, and where in the message its data is; nothing where it
    /// was a Hello.
    #[inline(always)]
    fn header(
        &mut self,
        message: &[u8],
        ord: u16,
    ) -> Result<Option<(Bhs, Range<usize>)>, Violation> {
        let (header, rest) = IserHeader::split(message)?;
        let buffers = match header {
            IserHeader::Hello(hello) => return self.hello(hello, ord).map(|()| None),
            IserHeader::HelloReply(_) => return Err(UNASKED_REPLY),
            IserHeader::Control(_) if self.hello == HelloState::Expected => return Err(NO_HELLO),
            IserHeader::Control(buffers) => buffers,
        };
        let pdu = ControlMessage::split(rest)?;
        if pdu.data.len() > self.keys.own_data_segment as usize {
            return Err(LONG_DATA);
        }
        if pdu.ahs.len() > MAX_AHS_LENGTH as usize {
            return Err(LONG_AHS);
        }
        self.announced = self.keys.check(&pdu.bhs, buffers)?;
        self.unexpected.heard(&pdu.bhs);
        self.exp_stat_sn = pdu.bhs.exp_stat_sn();
        self.ahs.clear();
        if !pdu.ahs.is_empty() {
            self.ahs.extend_from_slice(pdu.ahs);
        }
        let start = ISER_HEADER_LEN + BHS_LEN + pdu.ahs.len();
        Ok(Some((pdu.bhs, start..start + pdu.data.len())))
    }

    /// Answers a Hello; one that leads to nothing is answered too, before the connection ends
    /// (RFC 7145 §5.1.3, §10.1.3.2).
    fn hello(&mut self, hello: Hello, ord: u16) -> Result<(), Violation> {
        if self.hello != HelloState::Expected {
            return Err(UNASKED_HELLO);
        }
        let ord = ord.min(hello.ird);
        let versions = hello.min_version..=hello.max_version;
        let refusal = if !versions.contains(&ISER_VERSION) {
            Err(NO_VERSION)
        } else if ord == 0 && hello.ird > 0 {
            Err(NO_READS)
        } else {
            Ok(())
        };
        self.hello = HelloState::Due(HelloReply {
            reject: refusal.is_err(),
            max_version: ISER_VERSION,
            current_version: ISER_VERSION,
            ord,
        });
        refusal
    }

    /// A read is over: what the session has to know of it.
    fn read_over(&mut self, id: ReadId, has_data: bool) -> Option<Solicited<L>> {
        let read = self.reads.over(id)?;
        let task = read.task?;
        let got = if has_data {
            self.moved = self.moved.saturating_add(read.len());
            self.reads.filled(&read)
        } else {
            None
        };
        let closed = !self.reads.is_getting(task);
        (closed || got.is_some()).then_some(Solicited {
            task,
            exp_stat_sn: self.exp_stat_sn,
            got,
            fault: None,
            closed,
        })
    }

    /// The session is over: messages that still come are not looked at.
    fn drop_messages(&mut self, pair: &mut impl QueuePair<L>) {
        let segment = self.segment.take().map(|segment| segment.message);
        let dropped = segment.into_iter().chain(self.received.drain(..));
        dropped.for_each(|message| pair.recycle(message));
    }

    fn has_told_all(&self) -> bool {
        self.segment.is_none() && self.received.is_empty()
    }
}

impl IserMoverKeys {
    /// Checks that a command has brought the STags that its data needs; where its data is.
    fn check(&self, bhs: &Bhs, buffers: AdvertisedBuffers) -> Result<Announced, Violation> {
        if bhs.opcode() != Opcode::ScsiCommand {
            return Ok(Announced::default());
        }
        let pdu = ScsiCommand::decode(bhs);
        // Where more follows, how much is not known yet. A login over RDMA agrees upon none.
        let unsolicited = if pdu.last {
            bhs.data_len()
        } else {
            self.first_burst
        };
        let unsolicited = unsolicited.min(pdu.expected);
        let reads = pdu.read && pdu.expected > 0;
        if reads && buffers.read.is_none() {
            return Err(NO_READ_STAG);
        }
        let asks = pdu.write && pdu.expected > unsolicited;
        if asks && buffers.write.is_none() {
            return Err(NO_WRITE_STAG);
        }
        let skipped = if self.offset_skips_unsolicited {
            u64::from(unsolicited)
        } else {
            0
        };
        let write = buffers.write.map(|tag| verbs::Tag {
            offset: tag.offset.wrapping_sub(skipped),
            ..tag
        });
        let read = buffers.read;
        Ok(Announced { write, read })
    }
}

/// Whether a Data-Out says that it was asked for.
fn is_solicited(bhs: &Bhs) -> bool {
    bhs.opcode() == Opcode::DataOut && Ttt(bhs.word(20)) != Ttt::NONE
}

const UNASKED_HELLO: Violation = Violation {
    rule: "an iSER Hello that was not agreed upon",
    clause: "RFC 7145 §5.1.3",
};

const UNASKED_REPLY: Violation = Violation {
    rule: "an iSER HelloReply from an initiator",
    clause: "RFC 7145 §9.4",
};

const NO_HELLO: Violation = Violation {
    rule: "another message in place of an iSER Hello",
    clause: "RFC 7145 §10.1.3.4",
};

const NO_VERSION: Violation = Violation {
    rule: "an iSER Hello without version 10",
    clause: "RFC 7145 §5.1.3",
};

pub(super) const NO_READS: Violation = Violation {
    rule: "a connection without RDMA Reads",
    clause: "RFC 7145 §7.3.6",
};

const FLOOD: Violation = Violation {
    rule: "over 256 requests while aborted RDMA Reads are not over",
    clause: "RFC 7145 §7.3.3",
};

const LONG_DATA: Violation = Violation {
    rule: "a data segment longer than TargetRecvDataSegmentLength",
    clause: "RFC 7145 §6.4",
};

const LONG_AHS: Violation = Violation {
    rule: "additional header segments longer than MaxAHSLength",
    clause: "RFC 7145 §6.8",
};

const NO_READ_STAG: Violation = Violation {
    rule: "a SCSI read without a Read STag",
    clause: "RFC 7145 §9.2",
};

pub(super) const NO_WRITE_STAG: Violation = Violation {
    rule: "solicited data without a Write STag",
    clause: "RFC 7145 §9.2",
};
