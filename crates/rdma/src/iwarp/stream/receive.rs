//! What comes: FPDUs, segments, messages, and each rule that a peer can break by them (RFC 5041
//! §7.1, RFC 5040 §7.2).

use scsi::medium::Lease;

use super::Stream;
use crate::iwarp::ddp::{
    DdpHeader, Opcode, QueueNumber, READ_REQUEST_LEN, ReadRequest, TaggedHeader, UntaggedHeader,
};
use crate::iwarp::fpdu::FpduReader;
use crate::iwarp::startup::MpaRole;
use crate::iwarp::tags::TagError;
use crate::iwarp::terminate::{Terminate, TerminateCode};
use crate::verbs::{Completion, QueuePairEnd, Stag};

/// What is known of messages that come.
#[derive(Debug)]
pub(super) struct Inbound {
    /// An FPDU was received that could be read.
    pub(super) has_begun: bool,
    /// The next message may be empty, and mean *ready to receive*.
    expects_rtr: bool,
    /// The message sequence number that is due, by queue.
    next_msn: [u32; QueueNumber::COUNT],
    /// What came of a Send.
    message: Vec<u8>,
    /// How the Send began, of which more is to come.
    send: Option<(Opcode, Option<Stag>)>,
    /// Memory to receive into.
    spare: Vec<Vec<u8>>,
}

/// Messages whose memory is kept.
const SPARE: usize = 4;

/// The longest message whose memory is kept, in bytes: one with 64 KiB of immediate data.
const SPARE_LEN: usize = 80 * 1024;

impl Inbound {
    pub(super) const fn new(expects_rtr: bool) -> Self {
        Self {
            has_begun: false,
            expects_rtr,
            next_msn: [1; QueueNumber::COUNT],
            message: Vec::new(),
            send: None,
            spare: Vec::new(),
        }
    }

    pub(super) fn recycle(&mut self, mut received: Vec<u8>) {
        if self.spare.len() < SPARE && received.capacity() <= SPARE_LEN {
            received.clear();
            self.spare.push(received);
        }
    }

    /// Forgets memory that waits to be received into.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    /// Checks what counts for untagged segments of all kinds, and where the message has come to:
    /// `have` bytes. Returns which queue it is.
    fn check(&self, header: &UntaggedHeader, have: usize) -> Result<usize, TerminateCode> {
        if header.queue != QueueNumber::of(header.opcode) {
            return Err(TerminateCode::INVALID_QN);
        }
        let queue = header.queue.0 as usize;
        if self.next_msn.get(queue) != Some(&header.msn) {
            return Err(TerminateCode::INVALID_MSN);
        }
        if header.offset as usize != have {
            return Err(TerminateCode::INVALID_MO);
        }
        Ok(queue)
    }

    /// Another segment of a Send has to be of the same message.
    fn begin(&mut self, own: (Opcode, Option<Stag>)) -> Result<(), TerminateCode> {
        match self.send {
            Some(begun) if begun != own => Err(TerminateCode::UNEXPECTED_OPCODE),
            Some(_) => Ok(()),
            None => {
                self.message = self.spare.pop().unwrap_or_default();
                self.send = Some(own);
                Ok(())
            }
        }
    }

    /// The message of `queue` is complete.
    fn next(&mut self, queue: usize) {
        if let Some(msn) = self.next_msn.get_mut(queue) {
            *msn = msn.wrapping_add(1);
        }
    }
}

impl<L: Lease> Stream<L> {
    /// Takes bytes from the wire; returns how many. It stops behind each message, so that what the
    /// message leads to is done before what comes behind it is placed: the rest is to be given
    /// again when nothing more is polled. After the end everything is taken, and dropped.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut reader = std::mem::take(&mut self.reader);
        while !self.has_ended && !self.is_message_waiting && !rest.is_empty() {
            let used = self.receive_fpdu(&mut reader, rest);
            rest = &rest[used..];
        }
        self.reader = reader;
        if self.has_ended {
            return bytes.len();
        }
        bytes.len() - rest.len()
    }

    /// Takes bytes up to the end of an FPDU; returns how many.
    fn receive_fpdu(&mut self, reader: &mut FpduReader, bytes: &[u8]) -> usize {
        // The peer has to wait for our first FPDU (RFC 5044 §7.1.2, rule 4).
        if self.agreed.role == MpaRole::Initiator && !self.outbound.has_begun {
            self.fail(TerminateCode::STARTUP, &[]);
            return bytes.len();
        }
        let Ok(cut) = reader.next(bytes) else {
            self.fail(TerminateCode::CRC, &[]);
            return bytes.len();
        };
        if let Some(ulpdu) = cut.ulpdu {
            self.inbound.has_begun = true;
            if let Err(code) = self.segment(ulpdu) {
                self.fail(code, ulpdu);
            }
        }
        cut.used
    }

    fn segment(&mut self, ulpdu: &[u8]) -> Result<(), TerminateCode> {
        let (header, payload) = DdpHeader::parse(ulpdu)?;
        let may_be_rtr = std::mem::take(&mut self.inbound.expects_rtr);
        match header {
            DdpHeader::Tagged(header) => self.tagged(&header, payload),
            DdpHeader::Untagged(header) => match header.opcode {
                Opcode::READ_REQUEST => self.read_request(&header, payload),
                Opcode::TERMINATE => self.terminated(&header, payload),
                _ => self.send_came(&header, payload, may_be_rtr),
            },
        }
    }

    fn tagged(&mut self, header: &TaggedHeader, payload: &[u8]) -> Result<(), TerminateCode> {
        if header.opcode == Opcode::READ_RESPONSE {
            let done = self.own_reads.respond(header, payload)?;
            self.completions.extend(done);
            return Ok(());
        }
        // Nothing of a segment without payload is looked at (RFC 5041 §5.2).
        if payload.is_empty() {
            return Ok(());
        }
        let placed = self.tags.place(header.to, payload);
        placed.map_err(TagError::of_segment)
    }

    fn send_came(
        &mut self,
        header: &UntaggedHeader,
        payload: &[u8],
        may_be_rtr: bool,
    ) -> Result<(), TerminateCode> {
        let inbound = &mut self.inbound;
        let have = inbound.send.map_or(0, |_| inbound.message.len());
        let queue = inbound.check(header, have)?;
        if have + payload.len() > self.max_receive as usize {
            return Err(TerminateCode::TOO_LONG);
        }
        let invalidated = header.opcode.invalidates().then_some(header.invalidate);
        inbound.begin((header.opcode, invalidated))?;
        if header.last
            && let Some(stag) = invalidated
            && !self.tags.invalidate(stag)
        {
            return Err(TerminateCode::CANNOT_INVALIDATE);
        }
        inbound.message.extend_from_slice(payload);
        if !header.last {
            return Ok(());
        }
        inbound.next(queue);
        inbound.send = None;
        let bytes = std::mem::take(&mut inbound.message);
        if may_be_rtr && bytes.is_empty() && invalidated.is_none() {
            return Ok(());
        }
        self.is_message_waiting = true;
        let received = Completion::Received { bytes, invalidated };
        self.completions.push_back(received);
        Ok(())
    }

    fn read_request(
        &mut self,
        header: &UntaggedHeader,
        payload: &[u8],
    ) -> Result<(), TerminateCode> {
        let queue = self.inbound.check(header, 0)?;
        if payload.len() > READ_REQUEST_LEN {
            return Err(TerminateCode::TOO_LONG);
        }
        let request = payload.first_chunk().filter(|_| header.last);
        let request = request.ok_or(TerminateCode::OPERATION_UNSPECIFIED)?;
        let request = ReadRequest::parse(request);
        if self.peer_reads.len() >= usize::from(self.agreed.ird) {
            return Err(TerminateCode::CATASTROPHIC_STREAM);
        }
        // An empty read reads from nowhere (RFC 5040 §5.2.1).
        if request.size > 0 {
            let asked = self.tags.ask(request.source, request.size);
            asked.map_err(TagError::of_request)?;
        }
        self.inbound.next(queue);
        self.peer_reads.push(*header, request);
        Ok(())
    }

    /// The peer has ended the stream. It is not told anything any more (RFC 5040 §5.4).
    fn terminated(&mut self, header: &UntaggedHeader, payload: &[u8]) -> Result<(), TerminateCode> {
        self.inbound.check(header, 0)?;
        let terminate = Terminate::parse(payload).filter(|_| header.last);
        let code = terminate.ok_or(TerminateCode::OPERATION_UNSPECIFIED)?.code;
        self.end_by(QueuePairEnd::ByPeer {
            reason: code.by_peer(),
            code: code.bits(),
        });
        Ok(())
    }
}
