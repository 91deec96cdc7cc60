//! Frames of MPA and FPDUs, as Linux's software iWARP sends them for iSER.

use iscsi::wire::iser::invalidates;
use rdma::iwarp::ddp::{DdpHeader, Opcode, QueueNumber, ReadRequest};
use rdma::iwarp::fpdu::{FpduReader, FpduWriter};
use rdma::iwarp::startup::{FrameKind, FrameReader, MpaRole, StartupConfig, StartupFrame};
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::{Sink, sent};
use rdma::verbs::{Completion, QueuePair as _, SendHeader, Stag, Work};
use scsi::medium::{HeapLease, Lease as _};

use crate::frames;

const CAPTURED: &str = include_str!("iser-siw.hex");

/// FPDUs that were captured whole: title and bytes.
fn fpdus() -> Vec<(&'static str, Vec<u8>)> {
    let mut frames = frames(CAPTURED);
    frames.retain(|(title, _)| !title.contains("MPA") && !title.ends_with("header"));
    frames
}

pub(crate) fn ulpdu(fpdu: &[u8]) -> Vec<u8> {
    let mut reader = FpduReader::new(false);
    let cut = reader.next(fpdu).unwrap();
    assert_eq!(cut.used, fpdu.len());
    cut.ulpdu.unwrap().to_vec()
}

/// A segment as an FPDU.
pub(crate) fn fpdu_of(header: &DdpHeader, payload: &[u8], has_crc: bool) -> Vec<u8> {
    let mut writer = FpduWriter::new(has_crc, false);
    let mut sink = Sink::default();
    let data = Some(HeapLease::from_bytes(payload.to_vec()));
    match header {
        DdpHeader::Tagged(header) => writer.put(&mut sink, &header.encode(), &[], data),
        DdpHeader::Untagged(header) => writer.put(&mut sink, &header.encode(), &[], data),
    }
    sink.bytes
}

fn startup(kind: FrameKind) -> (StartupFrame, Vec<u8>) {
    let title = match kind {
        FrameKind::Request => "initiator, MPA Request",
        FrameKind::Reply => "target, MPA Reply",
    };
    let mut frames = frames(CAPTURED).into_iter();
    let (_, bytes) = frames.rfind(|frame| frame.0 == title).unwrap();
    let frame = FrameReader::new(kind).receive(&bytes).unwrap();
    (frame.unwrap(), bytes)
}

/// What LIO answers a Request with: it reads as deep as it may.
const LIO: StartupConfig = StartupConfig {
    crc: false,
    long_fpdus: false,
    ird: 128,
    ord: 128,
};

#[test]
fn captured_startup_frames_are_encoded_as_they_came() {
    for kind in [FrameKind::Request, FrameKind::Reply] {
        let (frame, bytes) = startup(kind);
        assert_eq!(frame.encode(), bytes);
        assert_eq!(
            (frame.revision, frame.crc, frame.markers),
            (2, false, false)
        );
        assert_eq!(frame.private, [0x80, 0, 0, 0]);
    }
}

#[test]
fn a_captured_request_is_answered_with_the_reply_that_was_captured() {
    let (request, _) = startup(FrameKind::Request);
    let (reply, bytes) = startup(FrameKind::Reply);
    let (answer, agreed) = LIO.accept(&request, &[0x80, 0, 0, 0]);
    assert_eq!(answer.encode(), bytes);
    assert_eq!((agreed.ird, agreed.ord), (1, 128));
    let initiator = StartupConfig { ord: 1, ..LIO };
    let agreed = initiator.agree(&reply).unwrap();
    assert_eq!((agreed.ird, agreed.ord, agreed.refused), (128, 1, None));
}

#[test]
fn captured_fpdus_are_encoded_as_they_came() {
    let fpdus = fpdus();
    assert_eq!(fpdus.len(), 9);
    for (title, bytes) in fpdus {
        let ulpdu = ulpdu(&bytes);
        let (header, payload) = DdpHeader::parse(&ulpdu).unwrap();
        assert_eq!(fpdu_of(&header, payload, false), bytes, "{title}");
    }
}

#[test]
fn captured_headers_are_encoded_as_they_came() {
    let mut frames = frames(CAPTURED);
    frames.retain(|(title, _)| title.ends_with("header"));
    assert_eq!(frames.len(), 5);
    for (title, bytes) in frames {
        let (length, rest) = bytes.split_at(2);
        let (header, payload) = DdpHeader::parse(rest).unwrap();
        let (encoded, is_last) = match header {
            DdpHeader::Tagged(header) => (header.encode().to_vec(), header.last),
            DdpHeader::Untagged(header) => (header.encode().to_vec(), header.last),
        };
        assert_eq!((&encoded[..], payload), (rest, &[][..]), "{title}");
        assert_eq!(is_last, title.contains("last"), "{title}");
        // All but the last of a message are as long as a segment of TCP at MTU 4200 allows.
        let longest = rdma::iwarp::fpdu::mulpdu(4200 - 20 - 20 - 12, false);
        let len = usize::from(u16::from_be_bytes([length[0], length[1]]));
        assert!(
            is_last || (longest - 4..=longest).contains(&len),
            "{title}: {len}"
        );
    }
}

#[test]
fn a_captured_read_asks_for_what_was_not_immediate() {
    let (_, bytes) = fpdus().pop().unwrap();
    let ulpdu = ulpdu(&bytes);
    let (DdpHeader::Untagged(header), payload) = DdpHeader::parse(&ulpdu).unwrap() else {
        panic!("a tagged segment");
    };
    assert_eq!(header.opcode, Opcode::READ_REQUEST);
    assert_eq!((header.queue, header.msn), (QueueNumber::READ_REQUEST, 1));
    let request = ReadRequest::parse(payload.try_into().unwrap());
    assert_eq!(request.size, 65_536 - 8192);
    assert_eq!(request.source.stag, Stag(0x1115_0c16));
    assert_eq!(request.encode(), payload);
}

/// A target's end of the captured connection.
fn target() -> Stream<HeapLease> {
    let (request, _) = startup(FrameKind::Request);
    let (_, agreed) = LIO.accept(&request, &[]);
    assert_eq!(agreed.role, MpaRole::Responder);
    let config = StreamConfig {
        segment_size: 4144,
        max_receive: 8268,
        can_invalidate: invalidates(&request.private),
        random: [3; 32],
    };
    Stream::new(agreed, &config)
}

#[test]
fn a_captured_login_and_two_inquiries_are_carried_out_byte_by_byte() {
    let mut stream = target();
    for (title, bytes) in fpdus() {
        if title.starts_with("initiator") {
            assert_eq!(stream.receive(&bytes), bytes.len(), "{title}");
            let Some(Completion::Received { bytes: message, .. }) = stream.poll() else {
                panic!("{title} is a message");
            };
            assert_eq!(message, ulpdu(&bytes)[18..], "{title}");
        } else if !title.ends_with("Read Request") {
            stream.post(work(&ulpdu(&bytes)));
            assert_eq!(sent(&mut stream), bytes, "{title}");
            assert!(stream.poll().is_some(), "{title}");
        }
    }
}

/// The operation that leads to a message of one segment.
fn work(ulpdu: &[u8]) -> Work<HeapLease> {
    let (header, payload) = DdpHeader::parse(ulpdu).unwrap();
    match header {
        DdpHeader::Tagged(header) => Work::Write {
            to: header.to,
            from: HeapLease::from_bytes(payload.to_vec()),
        },
        DdpHeader::Untagged(header) => {
            let (head, data) = payload.split_at(76);
            Work::Send {
                header: SendHeader::new(&[head]).unwrap(),
                data: Some(HeapLease::from_bytes(data.to_vec())),
                invalidate: header.opcode.invalidates().then_some(header.invalidate),
            }
        }
    }
}
