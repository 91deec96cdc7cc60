//! Headers of DDP and RDMAP, byte by byte.

use super::{DdpHeader, Opcode, QueueNumber, ReadRequest, TaggedHeader, UntaggedHeader};
use crate::iwarp::terminate::TerminateCode;
use crate::verbs::{Stag, Tag};

const TAGGED: TaggedHeader = TaggedHeader {
    last: true,
    opcode: Opcode::WRITE,
    to: Tag {
        stag: Stag(0x0102_0304),
        offset: 0x1112_1314_1516_1718,
    },
};

const UNTAGGED: UntaggedHeader = UntaggedHeader {
    last: false,
    opcode: Opcode::SEND_INVALIDATE,
    invalidate: Stag(0x2122_2324),
    queue: QueueNumber(0x3132_3334),
    msn: 0x4142_4344,
    offset: 0x5152_5354,
};

#[rustfmt::skip]
const TAGGED_BYTES: [u8; 14] = [
    0xc1, 0x40,
    0x01, 0x02, 0x03, 0x04,
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
];

#[rustfmt::skip]
const UNTAGGED_BYTES: [u8; 18] = [
    0x01, 0x44,
    0x21, 0x22, 0x23, 0x24,
    0x31, 0x32, 0x33, 0x34,
    0x41, 0x42, 0x43, 0x44,
    0x51, 0x52, 0x53, 0x54,
];

fn with_payload(header: &[u8]) -> Vec<u8> {
    [header, b"data"].concat()
}

/// What a segment fails with whose first two bytes are these.
fn failure(ddp: u8, rdmap: u8) -> Option<TerminateCode> {
    let mut bytes = with_payload(&UNTAGGED_BYTES);
    bytes[..2].copy_from_slice(&[ddp, rdmap]);
    DdpHeader::parse(&bytes).err()
}

#[test]
fn a_tagged_header_stands_where_figure_4_has_it() {
    assert_eq!(TAGGED.encode(), TAGGED_BYTES);
    let bytes = with_payload(&TAGGED_BYTES);
    let parsed = DdpHeader::parse(&bytes);
    assert_eq!(parsed, Ok((DdpHeader::Tagged(TAGGED), &b"data"[..])));
}

#[test]
fn an_untagged_header_stands_where_figure_5_has_it() {
    assert_eq!(UNTAGGED.encode(), UNTAGGED_BYTES);
    let bytes = with_payload(&UNTAGGED_BYTES);
    let parsed = DdpHeader::parse(&bytes);
    assert_eq!(parsed, Ok((DdpHeader::Untagged(UNTAGGED), &b"data"[..])));
}

#[test]
fn a_read_request_stands_where_figure_6_has_it() {
    let request = ReadRequest {
        sink: TAGGED.to,
        size: 0x6162_6364,
        source: Tag {
            stag: Stag(0x7172_7374),
            offset: 0x8182_8384_8586_8788,
        },
    };
    let bytes = request.encode();
    assert_eq!(bytes[..12], TAGGED_BYTES[2..]);
    assert_eq!(
        bytes[12..20],
        [0x61, 0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74]
    );
    assert_eq!(bytes[20..], 0x8182_8384_8586_8788_u64.to_be_bytes());
    assert_eq!(ReadRequest::parse(&bytes), request);
}

#[test]
fn the_last_segment_is_told_from_others() {
    for last in [false, true] {
        let header = TaggedHeader { last, ..TAGGED };
        assert_eq!(header.encode()[0], if last { 0xc1 } else { 0x81 });
        let bytes = header.encode();
        let parsed = DdpHeader::parse(&bytes).unwrap().0;
        assert_eq!(parsed, DdpHeader::Tagged(header));
    }
}

#[test]
fn each_opcode_is_of_one_kind_of_segment_only() {
    for opcode in 0..16 {
        let wrong = Some(TerminateCode::UNEXPECTED_OPCODE);
        let (tagged, untagged) = match opcode {
            0 | 2 => (None, wrong),
            1 | 3..=7 => (wrong, None),
            _ => (wrong, wrong),
        };
        assert_eq!(failure(0xc1, 0x40 | opcode), tagged, "{opcode}, tagged");
        assert_eq!(failure(0x41, 0x40 | opcode), untagged, "{opcode}, untagged");
    }
}

#[test]
fn versions_other_than_1_are_refused_by_the_code_of_the_layer() {
    for version in [0, 2, 3] {
        let tagged = failure(0xc0 | version, 0x40);
        assert_eq!(tagged, Some(TerminateCode::TAGGED_VERSION));
        let untagged = failure(0x40 | version, 0x43);
        assert_eq!(untagged, Some(TerminateCode::UNTAGGED_VERSION));
        let rdmap = failure(0x41, version << 6 | 0x03);
        assert_eq!(rdmap, Some(TerminateCode::RDMAP_VERSION));
    }
}

#[test]
fn reserved_bits_are_not_looked_at() {
    assert_eq!(failure(0x41 | 0x3c, 0x43 | 0x30), None);
}

#[test]
fn a_segment_shorter_than_its_header_fits_no_fpdu() {
    let too_short = Err(TerminateCode::FPDU_START);
    for end in 0..TAGGED_BYTES.len() {
        assert_eq!(DdpHeader::parse(&TAGGED_BYTES[..end]), too_short);
    }
    for end in 0..UNTAGGED_BYTES.len() {
        assert_eq!(DdpHeader::parse(&UNTAGGED_BYTES[..end]), too_short);
    }
}
