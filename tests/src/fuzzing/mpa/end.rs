//! One end of a connection in full operation, its user, and its peer.

use std::ops::Range;

use rdma::iwarp::ddp::{DdpHeader, Opcode, QueueNumber, ReadRequest, TaggedHeader, UntaggedHeader};
use rdma::iwarp::startup::{Agreed, MpaRole};
use rdma::iwarp::stream::Stream;
use rdma::iwarp::terminate::{Terminate, TerminateCode};
use rdma::test_support::{
    Sink, agreed, bytes_of, config, fpdu, read_request, tagged, ulpdus_of, untagged,
};
use rdma::verbs::{Access, Completion, QueuePair as _, ReadId, SendHeader, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::Script;

/// Bytes of memory; buffers are cut out of it.
const MEMORY: usize = 4096;

/// What memory holds that the peer may read, and what it holds afterwards.
const READABLE: u8 = 0xaa;
const WITHDRAWN: u8 = 0x66;

pub(super) struct End {
    stream: Stream<HeapLease>,
    /// Whether the FPDUs have CRCs.
    has_crc: bool,
    memory: HeapLease,
    /// The same, as it is expected to be.
    expected: Vec<u8>,
    /// All buffers that were advertised, and whether they still are.
    buffers: Vec<Buffer>,
    /// Reads of ours that are not complete, and where they go.
    reads: Vec<Read>,
    /// Message sequence numbers that the peer uses, by queue.
    msn: [u32; 3],
    /// Bytes of a message of the peer that has not ended.
    offset: u32,
    ended: bool,
    terminates: usize,
    next_read: u32,
}

#[derive(Clone)]
struct Buffer {
    tag: Tag,
    place: Range<usize>,
    may: Access,
    is_live: bool,
}

struct Read {
    id: ReadId,
    place: Range<usize>,
    sink: Option<Tag>,
    got: u32,
    is_cancelled: bool,
}

impl End {
    pub(super) fn new(script: &mut Script<'_>) -> Self {
        let roles = [MpaRole::Initiator, MpaRole::Responder];
        let (role, crc) = script.pick(&[
            (roles[0], true),
            (roles[1], true),
            (roles[0], false),
            (roles[1], false),
        ]);
        let agreed = Agreed {
            crc,
            ..agreed(role)
        };
        let mut stream = Stream::new(agreed, &config());
        if role == MpaRole::Initiator {
            stream.post(send(b"first", &[]));
        }
        Self {
            stream,
            has_crc: crc,
            memory: HeapLease::from_bytes(vec![0; MEMORY]),
            expected: vec![0; MEMORY],
            buffers: Vec::new(),
            reads: Vec::new(),
            msn: [1; 3],
            offset: 0,
            ended: false,
            terminates: 0,
            next_read: 0,
        }
    }

    pub(super) fn run(&mut self, script: &mut Script<'_>) {
        self.transmit(0);
        while !script.is_over() {
            match script.below(12) {
                0 | 1 => self.peer_sends(script),
                2 => self.peer_writes(script),
                3 => self.peer_reads(script),
                4 => self.peer_responds(script),
                5 => self.peer_raves(script),
                6 | 7 => self.advertise(script),
                8 => self.withdraw(script),
                9 => self.post(script),
                10 => self.cancel(script),
                _ => self.transmit(usize::from(script.byte())),
            }
            self.poll();
        }
        self.transmit(0);
        assert!(!self.ended || self.stream.is_over());
    }

    /// FPDUs of the peer. Without CRCs one in eight has a byte changed, which none can notice.
    fn receive(&mut self, script: &mut Script<'_>, fpdus: &[u8]) {
        let mut bytes = fpdus.to_vec();
        if !self.has_crc && script.below(8) == 7 {
            let at = usize::from(script.half()) % bytes.len();
            bytes[at] ^= script.byte();
        }
        self.receive_bytes(&bytes);
    }

    /// Bytes of the peer. Where nothing may be placed, nothing is.
    fn receive_bytes(&mut self, bytes: &[u8]) {
        let open = self.open_places();
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = self.stream.receive(rest);
            rest = &rest[used..];
            self.poll();
            assert!(used > 0 || rest.is_empty(), "what was polled is taken");
        }
        let now = bytes_of(&self.memory);
        let is_open = |at: &usize| open.iter().any(|place| place.contains(at));
        let mut changed = (0..MEMORY).filter(|at| now[*at] != self.expected[*at]);
        assert!(
            changed.all(|at| is_open(&at)),
            "a byte that may not be written"
        );
        self.expected = now;
    }

    /// Where the peer may place something.
    fn open_places(&self) -> Vec<Range<usize>> {
        let written = self.buffers.iter();
        let written = written.filter(|one| one.is_live && one.may == Access::Write);
        let reads = self.reads.iter().filter(|read| !read.is_cancelled);
        let written = written.map(|one| one.place.clone());
        written
            .chain(reads.map(|read| read.place.clone()))
            .collect()
    }

    fn peer_sends(&mut self, script: &mut Script<'_>) {
        let opcode = script.pick(&[
            Opcode::SEND,
            Opcode::SEND,
            Opcode::SEND_EVENT,
            Opcode::SEND_INVALIDATE,
            Opcode::TERMINATE,
        ]);
        let last = script.below(4) > 0;
        let mut header = self.untagged(script, opcode, last);
        header.invalidate = self.tag(script).stag;
        let len = usize::from(script.half()) % 600;
        let payload = if opcode == Opcode::TERMINATE {
            Terminate::new(TerminateCode::from_bits(script.half()), &[]).encode()
        } else {
            vec![0x11; len]
        };
        self.offset = if last { 0 } else { self.offset + len as u32 };
        self.receive(script, &untagged(&header, &payload));
    }

    /// A header on the queue of its opcode, mostly with the numbers that are due.
    fn untagged(&mut self, script: &mut Script<'_>, opcode: Opcode, last: bool) -> UntaggedHeader {
        let queue = QueueNumber::of(opcode);
        let wrong = script.byte();
        let msn = self.msn[queue.0 as usize];
        self.msn[queue.0 as usize] += u32::from(last);
        let offset = if queue == QueueNumber::SEND {
            self.offset
        } else {
            0
        };
        UntaggedHeader {
            last,
            opcode,
            invalidate: Stag(0),
            queue: QueueNumber(queue.0 + u32::from(wrong == 1)),
            msn: msn.wrapping_add(u32::from(wrong == 2)),
            offset: offset + u32::from(wrong == 3),
        }
    }

    /// A place in one of the buffers, mostly.
    fn tag(&self, script: &mut Script<'_>) -> Tag {
        let sinks = self.reads.iter().filter_map(|read| read.sink);
        let mut tags: Vec<_> = self.buffers.iter().map(|one| one.tag).collect();
        tags.extend(sinks);
        let any = Tag {
            stag: Stag(script.byte().into()),
            offset: 0,
        };
        let at = script.below(tags.len().clamp(1, 200) + 1);
        tags.get(at).copied().unwrap_or(any)
    }

    fn offset(script: &mut Script<'_>) -> u64 {
        let near = u64::from(script.byte());
        match script.below(8) {
            0 => u64::MAX - near,
            1 => near << 32,
            2 | 3 => near,
            _ => 0,
        }
    }

    fn peer_writes(&mut self, script: &mut Script<'_>) {
        let to = self.tag(script).plus(Self::offset(script));
        let header = TaggedHeader {
            last: script.flag(),
            opcode: Opcode::WRITE,
            to,
        };
        let payload = vec![0x11; usize::from(script.byte())];
        self.receive(script, &tagged(&header, &payload));
    }

    fn peer_reads(&mut self, script: &mut Script<'_>) {
        let header = self.untagged(script, Opcode::READ_REQUEST, true);
        let request = ReadRequest {
            sink: self.tag(script),
            size: u32::from(script.half()) % 700,
            source: self.tag(script).plus(Self::offset(script)),
        };
        self.receive(script, &read_request(&header, &request));
    }

    /// Mostly what is due.
    fn peer_responds(&mut self, script: &mut Script<'_>) {
        let wrong = script.byte();
        let asked = self.reads.iter_mut().find(|read| read.sink.is_some());
        let Some((read, sink)) = asked.and_then(|read| read.sink.map(|sink| (read, sink))) else {
            return;
        };
        let left = read.place.len() as u32 - read.got;
        let len = left.min(u32::from(script.half()) % 400);
        let header = TaggedHeader {
            last: len == left || wrong == 1,
            opcode: Opcode::READ_RESPONSE,
            to: sink.plus(u64::from(read.got) + u64::from(wrong == 2)),
        };
        read.got += len;
        let payload = vec![0x22; len as usize + usize::from(wrong == 3)];
        self.receive(script, &tagged(&header, &payload));
    }

    fn peer_raves(&mut self, script: &mut Script<'_>) {
        let len = script.below(64);
        let segment = script.take(len);
        let mut bytes = fpdu(segment);
        let flip = usize::from(script.half());
        if let Some(byte) = bytes.get_mut(flip) {
            *byte ^= 0x10;
        }
        self.receive_bytes(&bytes);
    }

    fn place(script: &mut Script<'_>) -> Range<usize> {
        let begin = usize::from(script.half()) % MEMORY;
        let len = usize::from(script.half()) % 800;
        begin..(begin + len).min(MEMORY)
    }

    /// No two buffers that are in use overlap, so that each byte has one meaning.
    fn free_place(&self, script: &mut Script<'_>) -> Option<Range<usize>> {
        let place = Self::place(script);
        let meets = |other: &Range<usize>| place.start < other.end && other.start < place.end;
        let live = self.buffers.iter().filter(|one| one.is_live);
        let mut used = live
            .map(|one| &one.place)
            .chain(self.reads.iter().map(|one| &one.place));
        let is_free = !used.any(meets);
        is_free.then_some(place)
    }

    fn fill(&mut self, place: &Range<usize>, byte: u8) {
        self.expected[place.clone()].fill(byte);
        self.memory
            .copy_in(place.start, &self.expected[place.clone()]);
    }

    fn advertise(&mut self, script: &mut Script<'_>) {
        let may = script.pick(&[Access::Read, Access::Write]);
        let Some(place) = self.free_place(script) else {
            return;
        };
        if may == Access::Read {
            self.fill(&place, READABLE);
        }
        let lease = self.memory.slice(place.start, place.len());
        let tag = self.stream.advertise(&lease, may);
        assert!(
            self.buffers
                .iter()
                .all(|one| one.tag.stag != tag.stag || self.ended)
        );
        self.buffers.push(Buffer {
            tag,
            place,
            may,
            is_live: !self.ended,
        });
    }

    fn withdraw(&mut self, script: &mut Script<'_>) {
        let stag = self.tag(script).stag;
        self.stream.withdraw(stag);
        self.kill(stag);
    }

    /// The memory behind an STag has another use from now on.
    fn kill(&mut self, stag: Stag) {
        let mut buffers = self.buffers.iter_mut();
        let found = buffers.find(|one| one.tag.stag == stag && one.is_live);
        if let Some(buffer) = found {
            buffer.is_live = false;
            let place = buffer.place.clone();
            self.fill(&place, WITHDRAWN);
        }
    }

    fn post(&mut self, script: &mut Script<'_>) {
        let kind = script.below(3);
        let data = vec![0x33; usize::from(script.half()) % 2000];
        match kind {
            0 => self.stream.post(send(&[0x33; 76], &data)),
            1 => self.stream.post(Work::Write {
                to: self.tag(script),
                from: HeapLease::from_bytes(data),
            }),
            _ => self.post_read(script),
        }
    }

    fn post_read(&mut self, script: &mut Script<'_>) {
        let Some(place) = self.free_place(script).filter(|_| !self.ended) else {
            return;
        };
        let id = ReadId(self.next_read);
        self.next_read += 1;
        self.stream.post(Work::Read {
            id,
            from: self.tag(script),
            into: self.memory.slice(place.start, place.len()),
        });
        self.reads.push(Read {
            id,
            place,
            sink: None,
            got: 0,
            is_cancelled: false,
        });
    }

    fn cancel(&mut self, script: &mut Script<'_>) {
        let at = script.below(self.reads.len().clamp(1, 200));
        let Some(read) = self.reads.get_mut(at) else {
            return;
        };
        if let Some(lease) = self.stream.cancel(read.id) {
            assert_eq!(lease.len(), read.place.len());
            assert!(!read.is_cancelled, "memory is given back once");
            read.is_cancelled = true;
        }
    }

    /// What is sent can be read, and holds nothing that the peer may not have.
    fn transmit(&mut self, limit: usize) {
        let mut sink = Sink::limited(limit);
        self.stream.transmit(&mut sink);
        for segment in ulpdus_of(&sink.bytes, self.has_crc) {
            assert_eq!(self.terminates, 0, "something behind a Terminate");
            self.sent(&segment);
        }
        self.poll();
    }

    fn sent(&mut self, segment: &[u8]) {
        let (header, payload) = DdpHeader::parse(segment).expect("headers that can be read");
        match header {
            DdpHeader::Tagged(header) if header.opcode == Opcode::READ_RESPONSE => {
                assert!(payload.iter().all(|byte| *byte == READABLE));
            }
            DdpHeader::Tagged(_) => {}
            DdpHeader::Untagged(header) => match header.opcode {
                Opcode::READ_REQUEST => {
                    let request = payload.first_chunk().map(ReadRequest::parse);
                    let request = request.expect("28 bytes");
                    let mut reads = self.reads.iter_mut();
                    let read = reads.find(|read| read.sink.is_none());
                    read.expect("a read").sink = Some(request.sink);
                }
                Opcode::TERMINATE => self.terminates += 1,
                _ => {}
            },
        }
    }

    fn poll(&mut self) {
        while let Some(completion) = self.stream.poll() {
            assert!(!self.ended, "something behind the end");
            match completion {
                Completion::Sent | Completion::Written => {}
                Completion::Got { id, .. } | Completion::Drained(id) => {
                    let at = self.reads.iter().position(|read| read.id == id);
                    self.reads.remove(at.expect("each read ends once"));
                }
                Completion::Received { bytes, invalidated } => {
                    assert!(bytes.len() <= 4096);
                    self.stream.recycle(bytes);
                    // Not before it is told: a length that was flipped may have made a long FPDU of
                    // this message and those before it, and then nothing of them was received.
                    if let Some(stag) = invalidated {
                        self.kill(stag);
                    }
                }
                Completion::Ended(_) => self.ended = true,
            }
        }
    }
}

fn send(header: &[u8], data: &[u8]) -> Work<HeapLease> {
    Work::Send {
        header: SendHeader::new(&[header]).expect("a header that fits"),
        data: Some(HeapLease::from_bytes(data.to_vec())),
        invalidate: None,
    }
}
