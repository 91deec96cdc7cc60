//! Lies over iSER: a message is left out, repeated, cut short or misnumbered, goes or reaches to
//! where it must not, invalidates what is not its own, or comes though nobody asked for it. The PDU
//! in a Send is lied about as over TCP.
//!
//! What no initiator can tell from the truth is not among it: other data, or the same in another
//! order.

use rdma::iwarp::ddp::{DdpHeader, Opcode, QueueNumber, ReadRequest, TaggedHeader, UntaggedHeader};
use rdma::iwarp::fpdu::FpduReader;
use rdma::test_support::fpdu;
use rdma::verbs::{Stag, Tag};
use sim::Rng;

use super::Liar;
use iscsi::wire::iser::ISER_HEADER_LEN;

/// FPDUs of the target, as they come and as they go on: what was left out or put in between is
/// numbered as if it were the truth.
pub(super) struct Fpdus {
    reader: FpduReader,
    /// How many messages were told on each queue.
    told: [u32; QueueNumber::COUNT],
}

/// STags of the initiator, the newest last.
#[derive(Default)]
pub(super) struct KnownStags(Vec<Stag>);

/// A segment, which is all of its message but for long Writes. The message sequence number of an
/// untagged one is how much it is wrong by.
#[derive(Clone)]
struct Segment {
    header: DdpHeader,
    payload: Vec<u8>,
}

/// Bytes of a Reply before its private data, whose length is the last field.
const REPLY_LEN: usize = 20;

/// Beyond each buffer, the second so far that four bytes there wrap.
const BEYOND: [u64; 3] = [1 << 20, u64::MAX - 1, 1 << 32];

/// Whether these bytes begin a connection of MPA.
pub(super) fn is_startup(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'M')
}

impl KnownStags {
    fn note(&mut self, stag: Stag) {
        if self.0.last() != Some(&stag) {
            self.0.push(stag);
        }
    }

    /// One that may be in use, or was, or never has been.
    fn any(&self, rng: &mut Rng) -> Stag {
        match rng.below(4) {
            0 => Stag(0),
            1 => Stag(rng.bits() as u32),
            _ if self.0.is_empty() => Stag(1),
            2 => self.0[self.0.len() - 1],
            _ => *rng.pick(&self.0),
        }
    }
}

impl Segment {
    fn parse(ulpdu: &[u8]) -> Self {
        let (mut header, payload) = DdpHeader::parse(ulpdu).expect("the target keeps to the rules");
        if let DdpHeader::Untagged(header) = &mut header {
            assert!(header.last, "a message in several segments");
            header.msn = 0;
        }
        let payload = payload.to_vec();
        Self { header, payload }
    }

    fn write(opcode: Opcode, to: Tag) -> Self {
        let last = true;
        Self {
            header: DdpHeader::Tagged(TaggedHeader { last, opcode, to }),
            payload: vec![0xdd; 4],
        }
    }

    fn untagged(opcode: Opcode, payload: Vec<u8>) -> Self {
        let header = UntaggedHeader {
            last: true,
            opcode,
            invalidate: Stag(0),
            queue: QueueNumber::of(opcode),
            msn: 0,
            offset: 0,
        };
        let header = DdpHeader::Untagged(header);
        Self { header, payload }
    }

    /// The STag of the initiator that it tells of.
    fn stag(&self) -> Option<Stag> {
        match self.header {
            DdpHeader::Tagged(header) => Some(header.to.stag),
            DdpHeader::Untagged(header) if header.opcode == Opcode::READ_REQUEST => {
                Some(self.request().source.stag)
            }
            DdpHeader::Untagged(header) => header.opcode.invalidates().then_some(header.invalidate),
        }
    }

    fn request(&self) -> ReadRequest {
        ReadRequest::parse(self.payload.first_chunk().expect("a whole request"))
    }

    fn is_send(&self) -> bool {
        let DdpHeader::Untagged(header) = self.header else {
            return false;
        };
        header.queue == QueueNumber::SEND
    }
}

impl Fpdus {
    fn encode(&mut self, segment: Segment) -> Vec<u8> {
        let header = match segment.header {
            DdpHeader::Tagged(header) => header.encode().to_vec(),
            DdpHeader::Untagged(mut header) => {
                if let Some(told) = self.told.get_mut(header.queue.0 as usize) {
                    *told += 1;
                    header.msn = header.msn.wrapping_add(*told);
                }
                header.encode().to_vec()
            }
        };
        fpdu(&[header, segment.payload].concat())
    }
}

impl Liar {
    /// The Reply of MPA passes as it is, once all of it is there.
    pub(super) fn pass_startup(&mut self) -> Vec<u8> {
        let Some([.., high, low]) = self.partial.first_chunk::<REPLY_LEN>() else {
            return Vec::new();
        };
        let len = REPLY_LEN + usize::from(u16::from_be_bytes([*high, *low]));
        if self.partial.len() < len {
            return Vec::new();
        }
        let mut fpdus = Fpdus {
            reader: FpduReader::new(true),
            told: [0; QueueNumber::COUNT],
        };
        let mut reply = std::mem::take(&mut self.partial);
        let rest = reply.split_off(len);
        reply.extend(self.pass_fpdus(&mut fpdus, &rest));
        self.fpdus = Some(fpdus);
        reply
    }

    pub(super) fn pass_fpdus(&mut self, fpdus: &mut Fpdus, bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut out) = (bytes, Vec::new());
        while !rest.is_empty() {
            let cut = fpdus.reader.next(rest).expect("a CRC that is right");
            rest = &rest[cut.used..];
            let Some(segment) = cut.ulpdu.map(Segment::parse) else {
                continue;
            };
            for told in self.tell(segment) {
                out.extend(fpdus.encode(told));
            }
        }
        out
    }

    /// The segments that come in the place of one.
    fn tell(&mut self, mut segment: Segment) -> Vec<Segment> {
        if let Some(stag) = segment.stag() {
            self.stags.note(stag);
        }
        let is_send = segment.is_send();
        if is_send {
            self.fail(&mut segment.payload[ISER_HEADER_LEN..]);
        }
        if !self.lies_now() {
            return vec![segment];
        }
        if is_send && self.rng.one_in(2) {
            return self.lie_in(&segment);
        }
        self.lie_about(segment)
    }

    /// Lies of its PDU; the last one that comes invalidates what the true one does.
    fn lie_in(&mut self, segment: &Segment) -> Vec<Segment> {
        let (header, pdu) = segment.payload.split_at(ISER_HEADER_LEN);
        let sends = self.lie(pdu.to_vec()).into_iter();
        let sends = sends.map(|pdu| Segment::untagged(Opcode::SEND, [header, &pdu].concat()));
        let mut sends: Vec<_> = sends.collect();
        if let Some(last) = sends.last_mut() {
            last.header = segment.header;
        }
        sends
    }

    fn lie_about(&mut self, mut segment: Segment) -> Vec<Segment> {
        match self.rng.below(9) {
            0 => return Vec::new(),
            // The last are more reads than may be under way.
            1 => return vec![segment; *self.rng.pick(&[2, 6, 40])],
            2 | 3 => return vec![self.forged_segment(), segment],
            4 => {
                let len = self.rng.below(segment.payload.len().max(1));
                segment.payload.truncate(len);
            }
            5 => self.number(&mut segment),
            _ => match segment.header {
                DdpHeader::Tagged(header) => {
                    let to = self.elsewhere(header.to);
                    segment.header = DdpHeader::Tagged(TaggedHeader { to, ..header });
                }
                DdpHeader::Untagged(header) if header.opcode == Opcode::READ_REQUEST => {
                    segment.payload = self.another_request(segment.request());
                }
                DdpHeader::Untagged(_) => self.message(&mut segment),
            },
        }
        vec![segment]
    }

    /// A message that nobody asked for.
    fn forged_segment(&mut self) -> Segment {
        let tag = Tag {
            stag: self.stags.any(&mut self.rng),
            offset: *self.rng.pick(&BEYOND),
        };
        let request = |source| {
            let sink = tag;
            let size = 1;
            ReadRequest { sink, size, source }.encode().to_vec()
        };
        match self.rng.below(6) {
            0 | 1 => Segment::write(Opcode::WRITE, tag),
            2 => Segment::write(Opcode::READ_RESPONSE, tag),
            3 => Segment::untagged(Opcode::READ_REQUEST, request(tag)),
            4 => Segment::untagged(Opcode::READ_REQUEST, request(Tag { offset: 0, ..tag })),
            _ => Segment::untagged(Opcode::TERMINATE, self.rng.bytes::<4>().to_vec()),
        }
    }

    /// Its queue, its opcode, or where in its message or among the others it stands.
    fn number(&mut self, segment: &mut Segment) {
        let DdpHeader::Untagged(header) = &mut segment.header else {
            segment.payload.clear();
            return;
        };
        match self.rng.below(5) {
            0 => header.queue = QueueNumber(self.rng.below(4) as u32),
            1 => header.opcode = Opcode(self.rng.below(16) as u8),
            2 => header.offset = 1 << self.rng.below(32),
            3 => header.msn = 1 << self.rng.below(32),
            _ => header.last = false,
        }
    }

    /// Another STag, or another place by the same.
    fn elsewhere(&mut self, tag: Tag) -> Tag {
        let (stag, offset) = (tag.stag, tag.offset);
        match self.rng.below(4) {
            0 | 1 => Tag {
                stag: self.stags.any(&mut self.rng),
                offset,
            },
            // A hole is left at the end.
            2 => Tag {
                stag,
                offset: offset.wrapping_sub(1),
            },
            _ => Tag {
                stag,
                offset: *self.rng.pick(&BEYOND),
            },
        }
    }

    fn another_request(&mut self, mut request: ReadRequest) -> Vec<u8> {
        match self.rng.below(4) {
            0 => request.sink = self.elsewhere(request.sink),
            1 => request.size = *self.rng.pick(&[0, 1, request.size + 1, u32::MAX]),
            _ => request.source = self.elsewhere(request.source),
        }
        request.encode().to_vec()
    }

    /// What it invalidates, or its iSER header.
    fn message(&mut self, segment: &mut Segment) {
        match &mut segment.header {
            DdpHeader::Untagged(header) if self.rng.one_in(2) => {
                header.opcode = Opcode::SEND_INVALIDATE;
                header.invalidate = self.stags.any(&mut self.rng);
            }
            _ => {
                let kind = *self.rng.pick(&[0x00, 0x20, 0x30, 0x1c, 0xff]);
                segment.payload[0] = kind;
            }
        }
    }
}
