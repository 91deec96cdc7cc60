//! Each rule that a peer can break, with the code that it is told, and nothing of it placed: in
//! streams with CRCs, and in streams without.

use scsi::medium::{HeapLease, Lease as _};

use super::rig::{Rig, THERE, read, response, send, tagged, untagged, untagged_fpdu, write};
use crate::iwarp::ddp::{Opcode, QueueNumber, TaggedHeader, UntaggedHeader, header_len};
use crate::iwarp::fpdu::FpduWriter;
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::terminate::TerminateCode;
use crate::test_support::{Sink, agreed, bytes_of, fpdu, pattern, ulpdus, ulpdus_of};
use crate::verbs::{Access, QueuePair as _, Stag, Tag};

/// What the peer knows of this end.
struct World {
    /// 64 bytes that it may write.
    written: Tag,
    /// 64 bytes that it may read.
    read: Tag,
    /// 64 bytes that it might write until a moment ago.
    withdrawn: Tag,
    /// Where the response to a read of 64 bytes is to go.
    sink: Tag,
}

/// What a peer sends, of which the last FPDU breaks a rule; how; and the code for it.
type Row = (&'static str, TerminateCode, fn(&World) -> Vec<u8>);

/// An untagged segment that is the whole of a message, with something changed.
fn changed(opcode: Opcode, payload: &[u8], change: fn(&mut UntaggedHeader)) -> Vec<u8> {
    let mut header = untagged(opcode, 1, 0, true);
    change(&mut header);
    untagged_fpdu(&header, payload)
}

/// A segment of which one byte has other bits.
fn flipped(ulpdu: &[u8], at: usize, bits: u8) -> Vec<u8> {
    let mut ulpdu = ulpdu.to_vec();
    ulpdu[at] ^= bits;
    fpdu(&ulpdu)
}

fn send_header() -> Vec<u8> {
    untagged(Opcode::SEND, 1, 0, true).encode().to_vec()
}

fn write_header(world: &World) -> Vec<u8> {
    let header = TaggedHeader {
        last: true,
        opcode: Opcode::WRITE,
        to: world.written,
    };
    header.encode().to_vec()
}

/// The first segment of a Send, with more to come.
fn beginning() -> Vec<u8> {
    untagged_fpdu(&untagged(Opcode::SEND, 1, 0, false), b"begin")
}

fn invalidating(stag: Stag) -> Vec<u8> {
    let header = UntaggedHeader {
        invalidate: stag,
        ..untagged(Opcode::SEND_INVALIDATE, 1, 0, true)
    };
    untagged_fpdu(&header, b"done")
}

const OF_MPA: &[Row] = &[
    ("a wrong CRC", TerminateCode::CRC, |world| {
        let mut bytes = write(world.written, b"data");
        bytes[17] ^= 1;
        bytes
    }),
    ("an empty ULPDU", TerminateCode::FPDU_START, |_| fpdu(&[])),
    ("half a tagged header", TerminateCode::FPDU_START, |world| {
        fpdu(&write_header(world)[..13])
    }),
    ("half an untagged header", TerminateCode::FPDU_START, |_| {
        fpdu(&send_header()[..17])
    }),
];

const OF_TAGGED_SEGMENTS: &[Row] = &[
    (
        "the DDP version of a Write",
        TerminateCode::TAGGED_VERSION,
        |world| flipped(&write_header(world), 0, 0x02),
    ),
    ("STag 0", TerminateCode::INVALID_STAG, |_| {
        let stag = Stag(0);
        write(Tag { stag, offset: 0 }, b"data")
    }),
    (
        "an STag that was withdrawn",
        TerminateCode::INVALID_STAG,
        |world| write(world.withdrawn, b"data"),
    ),
    (
        "an STag that is one off",
        TerminateCode::INVALID_STAG,
        |world| {
            let stag = Stag(world.written.stag.0 ^ 1);
            write(Tag { stag, offset: 0 }, b"data")
        },
    ),
    (
        "a Write that begins behind the end",
        TerminateCode::BOUNDS,
        |world| write(world.written.plus(64), b"!"),
    ),
    (
        "a Write that ends behind the end",
        TerminateCode::BOUNDS,
        |world| write(world.written.plus(61), b"data"),
    ),
    (
        "a Write before the beginning",
        TerminateCode::BOUNDS,
        |world| write(world.written.plus(u64::MAX - 4), b"data"),
    ),
    ("a Write that wraps", TerminateCode::TO_WRAP, |world| {
        write(world.written.plus(u64::MAX - 1), b"data")
    }),
    (
        "a Write to what may be read",
        TerminateCode::INVALID_STAG,
        |world| write(world.read, b"data"),
    ),
    (
        "a Write to the sink of a read",
        TerminateCode::INVALID_STAG,
        |world| write(world.sink, b"data"),
    ),
    (
        "a Response with another STag",
        TerminateCode::INVALID_STAG,
        |world| response(world.written, &pattern(64)),
    ),
    (
        "a Response at another offset",
        TerminateCode::BOUNDS,
        |world| response(world.sink.plus(1), &pattern(63)),
    ),
    (
        "a Response that is too long",
        TerminateCode::BOUNDS,
        |world| response(world.sink, &pattern(65)),
    ),
    (
        "a Response that is too short",
        TerminateCode::BOUNDS,
        |world| response(world.sink, &pattern(63)),
    ),
    (
        "a Response without anything",
        TerminateCode::BOUNDS,
        |world| response(world.sink, &[]),
    ),
];

const OF_UNTAGGED_SEGMENTS: &[Row] = &[
    (
        "the DDP version of a Send",
        TerminateCode::UNTAGGED_VERSION,
        |_| flipped(&send_header(), 0, 0x02),
    ),
    (
        "a queue that there is not",
        TerminateCode::INVALID_QN,
        |_| changed(Opcode::SEND, b"pdu", |header| header.queue = QueueNumber(3)),
    ),
    (
        "a Send on the queue of reads",
        TerminateCode::INVALID_QN,
        |_| changed(Opcode::SEND, b"pdu", |header| header.queue = QueueNumber(1)),
    ),
    (
        "a read on the queue of Sends",
        TerminateCode::INVALID_QN,
        |_| {
            changed(Opcode::READ_REQUEST, &[0; 28], |header| {
                header.queue = QueueNumber(0);
            })
        },
    ),
    (
        "a Terminate on the queue of Sends",
        TerminateCode::INVALID_QN,
        |_| {
            changed(Opcode::TERMINATE, &[0; 4], |header| {
                header.queue = QueueNumber(0);
            })
        },
    ),
    ("message 0", TerminateCode::INVALID_MSN, |_| {
        changed(Opcode::SEND, b"pdu", |header| header.msn = 0)
    }),
    ("a message too early", TerminateCode::INVALID_MSN, |_| {
        changed(Opcode::SEND, b"pdu", |header| header.msn = 2)
    }),
    ("a read too early", TerminateCode::INVALID_MSN, |_| {
        changed(Opcode::READ_REQUEST, &[0; 28], |header| header.msn = 2)
    }),
    (
        "a message that does not begin at 0",
        TerminateCode::INVALID_MO,
        |_| changed(Opcode::SEND, b"pdu", |header| header.offset = 1),
    ),
    (
        "a read that does not begin at 0",
        TerminateCode::INVALID_MO,
        |_| changed(Opcode::READ_REQUEST, &[0; 28], |header| header.offset = 28),
    ),
    ("a hole in a message", TerminateCode::INVALID_MO, |_| {
        let behind = untagged(Opcode::SEND, 1, 6, true);
        [beginning(), untagged_fpdu(&behind, b"end")].concat()
    }),
    (
        "a part of a message again",
        TerminateCode::INVALID_MO,
        |_| [beginning(), beginning()].concat(),
    ),
    (
        "a message that is too long",
        TerminateCode::TOO_LONG,
        |_| send(1, &pattern(4097)),
    ),
    (
        "one that is so by its last segment",
        TerminateCode::TOO_LONG,
        |_| {
            let first = untagged(Opcode::SEND, 1, 0, false);
            let second = untagged(Opcode::SEND, 1, 4096, true);
            [
                untagged_fpdu(&first, &pattern(4096)),
                untagged_fpdu(&second, b"!"),
            ]
            .concat()
        },
    ),
    (
        "a read request that is too long",
        TerminateCode::TOO_LONG,
        |_| changed(Opcode::READ_REQUEST, &[0; 29], |_| {}),
    ),
];

const OF_RDMAP: &[Row] = &[
    ("the RDMAP version", TerminateCode::RDMAP_VERSION, |_| {
        flipped(&send_header(), 1, 0x40)
    }),
    (
        "an opcode that there is not",
        TerminateCode::UNEXPECTED_OPCODE,
        |_| flipped(&send_header(), 1, 0x08),
    ),
    (
        "an untagged Write",
        TerminateCode::UNEXPECTED_OPCODE,
        |_| flipped(&send_header(), 1, 0x03),
    ),
    ("a tagged Send", TerminateCode::UNEXPECTED_OPCODE, |world| {
        tagged(Opcode::SEND, world.written, b"pdu", true)
    }),
    (
        "a message that becomes another",
        TerminateCode::UNEXPECTED_OPCODE,
        |_| {
            let other = untagged(Opcode::SEND_EVENT, 1, 5, true);
            [beginning(), untagged_fpdu(&other, b"end")].concat()
        },
    ),
    (
        "a read request that is too short",
        TerminateCode::OPERATION_UNSPECIFIED,
        |_| changed(Opcode::READ_REQUEST, &[0; 27], |_| {}),
    ),
    (
        "a read request that does not end",
        TerminateCode::OPERATION_UNSPECIFIED,
        |_| changed(Opcode::READ_REQUEST, &[0; 28], |header| header.last = false),
    ),
    (
        "a Terminate that is too short",
        TerminateCode::OPERATION_UNSPECIFIED,
        |_| changed(Opcode::TERMINATE, &[0; 3], |_| {}),
    ),
    (
        "a read of nothing known",
        TerminateCode::READ_INVALID_STAG,
        |_| read(1, THERE, 1),
    ),
    (
        "a read of what was withdrawn",
        TerminateCode::READ_INVALID_STAG,
        |world| read(1, world.withdrawn, 1),
    ),
    (
        "a read behind the end",
        TerminateCode::READ_BOUNDS,
        |world| read(1, world.read.plus(60), 5),
    ),
    ("a read of 4 GiB", TerminateCode::READ_BOUNDS, |world| {
        read(1, world.read, u32::MAX)
    }),
    ("a read that wraps", TerminateCode::READ_TO_WRAP, |world| {
        read(1, world.read.plus(u64::MAX), 2)
    }),
    (
        "a read of what may be written",
        TerminateCode::ACCESS_RIGHTS,
        |world| read(1, world.written, 1),
    ),
    (
        "one read more than IRD",
        TerminateCode::CATASTROPHIC_STREAM,
        |world| (1..=5).flat_map(|msn| read(msn, world.read, 1)).collect(),
    ),
    (
        "the end of an STag that there is not",
        TerminateCode::CANNOT_INVALIDATE,
        |_| invalidating(Stag(0x55)),
    ),
    (
        "the end of STag 0",
        TerminateCode::CANNOT_INVALIDATE,
        |_| invalidating(Stag(0)),
    ),
    (
        "the end of what has ended",
        TerminateCode::CANNOT_INVALIDATE,
        |world| invalidating(world.withdrawn.stag),
    ),
    (
        "the end of the sink of a read",
        TerminateCode::CANNOT_INVALIDATE,
        |world| invalidating(world.sink.stag),
    ),
];

/// A stream with or without CRCs, with memory that the peer knows, and that memory.
fn world(crc: bool) -> (Rig, World, [HeapLease; 4]) {
    let agreed = agreed(MpaRole::Initiator);
    let mut rig = Rig::with(Agreed { crc, ..agreed });
    let into = rig.post_read(9, 64);
    let sink = rig.sent_request().sink;
    let buffers = [(); 3].map(|()| HeapLease::from_bytes(vec![0xaa; 64]));
    let world = World {
        written: rig.stream.advertise(&buffers[0], Access::Write),
        read: rig.stream.advertise(&buffers[1], Access::Read),
        withdrawn: rig.stream.advertise(&buffers[2], Access::Write),
        sink,
    };
    rig.stream.withdraw(world.withdrawn.stag);
    let [written, read, withdrawn] = buffers;
    (rig, world, [written, read, withdrawn, into])
}

/// What a peer sends without CRCs: in their place are zeros.
fn without_crcs(fpdus: &[u8]) -> Vec<u8> {
    let mut sink = Sink::default();
    for ulpdu in ulpdus(fpdus) {
        let data = HeapLease::from_bytes(ulpdu);
        FpduWriter::new(false, false).put(&mut sink, &[], &[], Some(data));
    }
    sink.bytes
}

/// Streams of both kinds in which this rule can be broken, and what the peer sends in each.
fn streams((_, code, bytes): &Row) -> Vec<(Rig, [HeapLease; 4], Vec<u8>)> {
    let kinds: &[bool] = match *code {
        TerminateCode::CRC => &[true],
        _ => &[true, false],
    };
    let stream = |has_crc: &bool| {
        let (rig, world, memory) = world(*has_crc);
        let bytes = bytes(&world);
        let bytes = if *has_crc {
            bytes
        } else {
            without_crcs(&bytes)
        };
        (rig, memory, bytes)
    };
    kinds.iter().map(stream).collect()
}

fn check(row: &Row) {
    for (rig, memory, bytes) in streams(row) {
        check_in(rig, &memory, &bytes, row);
    }
}

fn check_in(mut rig: Rig, memory: &[HeapLease; 4], bytes: &[u8], (what, code, _): &Row) {
    let before = memory.each_ref().map(bytes_of);
    rig.receive(bytes);
    assert_eq!(
        rig.told(),
        [format!("broken: {}", code.violation().rule)],
        "{what}"
    );
    let terminate = rig.sent_terminate();
    assert_eq!(terminate.code, *code, "{what}");
    assert_eq!(
        memory.each_ref().map(bytes_of),
        before,
        "{what}: nothing is placed"
    );
    if let Some(segment) = terminate.segment {
        let last = ulpdus_of(bytes, rig.has_crc()).pop().unwrap();
        assert_eq!(usize::from(segment.len), last.len(), "{what}");
        assert_eq!(segment.header, last[..header_len(&last)], "{what}");
    } else {
        assert_eq!(
            code.layer, 2,
            "{what}: only MPA tells nothing of the segment"
        );
    }
    assert!(rig.stream.is_over(), "{what}");
}

#[test]
fn rules_of_mpa() {
    OF_MPA.iter().for_each(check);
}

#[test]
fn rules_of_tagged_segments() {
    OF_TAGGED_SEGMENTS.iter().for_each(check);
}

#[test]
fn rules_of_untagged_segments() {
    OF_UNTAGGED_SEGMENTS.iter().for_each(check);
}

#[test]
fn rules_of_rdmap() {
    OF_RDMAP.iter().for_each(check);
}

#[test]
fn each_is_noticed_however_it_arrives() {
    let rows = [OF_MPA, OF_TAGGED_SEGMENTS, OF_UNTAGGED_SEGMENTS, OF_RDMAP];
    for row in rows.into_iter().flatten() {
        let (what, code, _) = row;
        for (mut rig, memory, bytes) in streams(row) {
            let before = memory.each_ref().map(bytes_of);
            for byte in bytes {
                rig.receive(&[byte]);
            }
            assert_eq!(rig.sent_terminate().code, *code, "{what}");
            assert_eq!(memory.each_ref().map(bytes_of), before, "{what}");
        }
    }
}
