//! A stream, and a peer that is played by hand.

use scsi::medium::{HeapLease, Lease as _};

use crate::iwarp::ddp::{
    DdpHeader, Opcode, QueueNumber, ReadRequest, TaggedHeader, UntaggedHeader,
};
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::stream::{Stream, StreamConfig};
use crate::iwarp::terminate::Terminate;
use crate::test_support::{agreed, config, fpdu, sent, ulpdus_of};
use crate::verbs::{Completion, QueuePair as _, QueuePairEnd, ReadId, SendHeader, Stag, Tag, Work};

/// The end that is tested.
pub(super) struct Rig {
    pub(super) stream: Stream<HeapLease>,
    /// Whether what leaves has CRCs.
    has_crc: bool,
}

/// Memory of the peer.
pub(super) const THERE: Tag = Tag {
    stag: Stag(0x77),
    offset: 1000,
};

impl Rig {
    /// An initiator that has sent its first message, so that both ends may send.
    pub(super) fn new() -> Self {
        Self::with(agreed(MpaRole::Initiator))
    }

    /// The same, with other agreements.
    pub(super) fn with(agreed: Agreed) -> Self {
        let mut rig = Self::fresh(agreed);
        rig.post_send(b"first", None);
        assert_eq!(rig.sent(), ["Send msn 1 mo 0: 5 last"]);
        assert_eq!(rig.told(), ["sent"]);
        rig
    }

    /// A stream right after the Reply Frame.
    pub(super) fn fresh(agreed: Agreed) -> Self {
        Self::configured(agreed, &config())
    }

    pub(super) fn configured(agreed: Agreed, config: &StreamConfig) -> Self {
        Self {
            has_crc: agreed.crc,
            stream: Stream::new(agreed, config),
        }
    }

    pub(super) fn post_send(&mut self, header: &[u8], data: Option<&[u8]>) {
        self.stream.post(Work::Send {
            header: SendHeader::new(&[header]).unwrap(),
            data: data.map(|data| HeapLease::from_bytes(data.to_vec())),
            invalidate: None,
        });
    }

    pub(super) fn post_write(&mut self, bytes: &[u8]) {
        self.stream.post(Work::Write {
            to: THERE,
            from: HeapLease::from_bytes(bytes.to_vec()),
        });
    }

    /// Returns the memory that is filled.
    pub(super) fn post_read(&mut self, id: u32, len: usize) -> HeapLease {
        let into = HeapLease::from_bytes(vec![0; len]);
        self.stream.post(Work::Read {
            id: ReadId(id),
            from: THERE,
            into: into.clone(),
        });
        into
    }

    /// All of it has to be taken.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        assert_eq!(self.stream.receive(bytes), bytes.len());
    }

    /// What leaves, a line a segment.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let ulpdus = self.sent_ulpdus();
        ulpdus.iter().map(|ulpdu| line(ulpdu)).collect()
    }

    fn sent_ulpdus(&mut self) -> Vec<Vec<u8>> {
        ulpdus_of(&sent(&mut self.stream), self.has_crc)
    }

    pub(super) const fn has_crc(&self) -> bool {
        self.has_crc
    }

    /// The only read request that leaves.
    pub(super) fn sent_request(&mut self) -> ReadRequest {
        let ulpdus = self.sent_ulpdus();
        assert_eq!(ulpdus.len(), 1);
        ReadRequest::parse(ulpdus[0][18..].first_chunk().unwrap())
    }

    /// The only segment that leaves, which is a Terminate.
    pub(super) fn sent_terminate(&mut self) -> Terminate {
        let ulpdus = self.sent_ulpdus();
        assert_eq!(ulpdus.len(), 1, "{ulpdus:?}");
        let (DdpHeader::Untagged(header), payload) = DdpHeader::parse(&ulpdus[0]).unwrap() else {
            panic!("a tagged segment");
        };
        assert_eq!(header, untagged(Opcode::TERMINATE, 1, 0, true));
        Terminate::parse(payload).unwrap()
    }

    /// What is told, in words.
    pub(super) fn told(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.stream.poll())
            .map(|one| words(&one))
            .collect()
    }
}

/// A segment in words.
pub(super) fn line(ulpdu: &[u8]) -> String {
    let (header, payload) = DdpHeader::parse(ulpdu).unwrap();
    let len = payload.len();
    match header {
        DdpHeader::Tagged(header) => {
            let (Tag { stag, offset }, last) = (header.to, end(header.last));
            let kind = name(header.opcode);
            format!("{kind} {:x}+{offset}: {len}{last}", stag.0)
        }
        DdpHeader::Untagged(header) if header.opcode == Opcode::READ_REQUEST => {
            let request = ReadRequest::parse(payload.first_chunk().unwrap());
            let (size, from) = (request.size, request.source);
            let msn = header.msn;
            format!(
                "Read Request msn {msn}: {size} from {:x}+{}",
                from.stag.0, from.offset
            )
        }
        DdpHeader::Untagged(header) if header.opcode == Opcode::TERMINATE => {
            let code = Terminate::parse(payload).unwrap().code;
            format!("Terminate: {}", code.violation().rule)
        }
        DdpHeader::Untagged(header) => {
            let (msn, offset, last) = (header.msn, header.offset, end(header.last));
            let invalidates = header.opcode.invalidates();
            let of = invalidates.then(|| format!(" of {:x}", header.invalidate.0));
            let kind = name(header.opcode);
            let of = of.unwrap_or_default();
            format!("{kind}{of} msn {msn} mo {offset}: {len}{last}")
        }
    }
}

fn end(last: bool) -> &'static str {
    if last { " last" } else { "" }
}

fn name(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::WRITE => "Write",
        Opcode::READ_RESPONSE => "Read Response",
        Opcode::SEND => "Send",
        Opcode::SEND_INVALIDATE => "Send with Invalidate",
        other => panic!("{other:?} is never sent"),
    }
}

fn words(completion: &Completion<HeapLease>) -> String {
    match completion {
        Completion::Sent => "sent".into(),
        Completion::Written => "written".into(),
        Completion::Got { id, into } => format!("got {}: {}", id.0, into.len()),
        Completion::Drained(id) => format!("drained {}", id.0),
        Completion::Received { bytes, invalidated } => {
            let of = invalidated.map(|stag| format!(", invalidated {:x}", stag.0));
            format!("received {}{}", bytes.len(), of.unwrap_or_default())
        }
        Completion::Ended(QueuePairEnd::Violation(violation)) => {
            format!("broken: {}", violation.rule)
        }
        Completion::Ended(QueuePairEnd::ByPeer { reason, .. }) => {
            format!("by peer: {}", reason.rule)
        }
        Completion::Ended(QueuePairEnd::Requested) => "requested".into(),
    }
}

/// A header of an untagged segment on the queue of its opcode.
pub(super) fn untagged(opcode: Opcode, msn: u32, offset: u32, last: bool) -> UntaggedHeader {
    UntaggedHeader {
        last,
        opcode,
        invalidate: Stag(0),
        queue: QueueNumber::of(opcode),
        msn,
        offset,
    }
}

/// A Send of the peer that has one segment.
pub(super) fn send(msn: u32, payload: &[u8]) -> Vec<u8> {
    untagged_fpdu(&untagged(Opcode::SEND, msn, 0, true), payload)
}

pub(super) fn untagged_fpdu(header: &UntaggedHeader, payload: &[u8]) -> Vec<u8> {
    fpdu(&[&header.encode()[..], payload].concat())
}

/// A tagged segment of the peer.
pub(super) fn tagged(opcode: Opcode, to: Tag, payload: &[u8], last: bool) -> Vec<u8> {
    let header = TaggedHeader { last, opcode, to };
    fpdu(&[&header.encode()[..], payload].concat())
}

/// A whole RDMA Write of the peer.
pub(super) fn write(to: Tag, payload: &[u8]) -> Vec<u8> {
    tagged(Opcode::WRITE, to, payload, true)
}

/// A read of the peer, into its memory at [`THERE`].
pub(super) fn read(msn: u32, source: Tag, size: u32) -> Vec<u8> {
    let request = ReadRequest {
        sink: THERE,
        size,
        source,
    };
    let header = untagged(Opcode::READ_REQUEST, msn, 0, true);
    untagged_fpdu(&header, &request.encode())
}

/// The last segment of a response of the peer.
pub(super) fn response(to: Tag, payload: &[u8]) -> Vec<u8> {
    tagged(Opcode::READ_RESPONSE, to, payload, true)
}
