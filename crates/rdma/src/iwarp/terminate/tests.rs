//! Terminate messages and their codes.

use std::collections::BTreeSet;

use super::{Terminate, TerminateCode, TerminatedSegment};
use crate::iwarp::ddp::{Opcode, QueueNumber, ReadRequest, TaggedHeader, UntaggedHeader};
use crate::verbs::{Stag, Tag};

const WRITE: TaggedHeader = TaggedHeader {
    last: true,
    opcode: Opcode::WRITE,
    to: Tag {
        stag: Stag(0xabcd_ef01),
        offset: 64,
    },
};

const REQUEST_HEADER: UntaggedHeader = UntaggedHeader {
    last: true,
    opcode: Opcode::READ_REQUEST,
    invalidate: Stag(0),
    queue: QueueNumber::READ_REQUEST,
    msn: 3,
    offset: 0,
};

const REQUEST: ReadRequest = ReadRequest {
    sink: WRITE.to,
    size: 512,
    source: WRITE.to,
};

fn write() -> Vec<u8> {
    [&WRITE.encode()[..], &[0x55; 10]].concat()
}

fn request() -> Vec<u8> {
    [&REQUEST_HEADER.encode()[..], &REQUEST.encode()].concat()
}

#[test]
fn every_code_has_a_name_of_its_own_and_its_bits() {
    let mut names = BTreeSet::new();
    for (code, violation) in TerminateCode::ALL {
        assert_eq!(TerminateCode::from_bits(code.bits()), *code);
        assert_eq!(code.violation(), *violation);
        let by_peer = code.by_peer();
        assert!(by_peer.rule.starts_with("a Terminate of the peer ("));
        assert!(by_peer.rule.ends_with(violation.rule) && by_peer.clause == violation.clause);
        assert!(names.insert(violation.rule), "{violation}");
    }
    assert_eq!(names.len(), 33);
}

/// Layer and error type, then the error code.
#[test]
fn the_codes_are_those_of_the_standards() {
    type Code = TerminateCode;
    let rfc_5040_figure_9 = [
        // An error of this type has no code, and any may stand there.
        (Code::LOCAL_CATASTROPHIC, 0x0000),
        (Code::READ_INVALID_STAG, 0x0100),
        (Code::READ_BOUNDS, 0x0101),
        (Code::ACCESS_RIGHTS, 0x0102),
        (Code::READ_STAG_OF_OTHER_STREAM, 0x0103),
        (Code::READ_TO_WRAP, 0x0104),
        (Code::CANNOT_INVALIDATE, 0x0109),
        (Code::PROTECTION_UNSPECIFIED, 0x01ff),
        (Code::RDMAP_VERSION, 0x0205),
        (Code::UNEXPECTED_OPCODE, 0x0206),
        (Code::CATASTROPHIC_STREAM, 0x0207),
        (Code::CATASTROPHIC_GLOBAL, 0x0208),
        (Code::CANNOT_INVALIDATE_OPERATION, 0x0209),
        (Code::OPERATION_UNSPECIFIED, 0x02ff),
    ];
    let rfc_5041_section_7_2 = [
        (Code::DDP_CATASTROPHIC, 0x1000),
        (Code::INVALID_STAG, 0x1100),
        (Code::BOUNDS, 0x1101),
        (Code::STAG_OF_OTHER_STREAM, 0x1102),
        (Code::TO_WRAP, 0x1103),
        (Code::TAGGED_VERSION, 0x1104),
        (Code::INVALID_QN, 0x1201),
        (Code::NO_BUFFER, 0x1202),
        (Code::INVALID_MSN, 0x1203),
        (Code::INVALID_MO, 0x1204),
        (Code::TOO_LONG, 0x1205),
        (Code::UNTAGGED_VERSION, 0x1206),
    ];
    let rfc_5044_section_8 = [
        (Code::CLOSED, 0x2001),
        (Code::CRC, 0x2002),
        (Code::FPDU_START, 0x2003),
        (Code::STARTUP, 0x2004),
    ];
    let rfc_6581_section_8 = [
        (Code::MPA_CATASTROPHIC, 0x2005),
        (Code::INSUFFICIENT_IRD, 0x2006),
        (Code::NO_RTR, 0x2007),
    ];
    let rows = [
        &rfc_5040_figure_9[..],
        &rfc_5041_section_7_2,
        &rfc_5044_section_8,
        &rfc_6581_section_8,
    ]
    .concat();
    for (code, bits) in &rows {
        assert_eq!(code.bits(), *bits, "{}", code.violation());
    }
    let told: BTreeSet<u16> = rows.iter().map(|(_, bits)| *bits).collect();
    let known = TerminateCode::ALL.iter().map(|(code, _)| code.bits());
    assert_eq!(told, known.collect(), "all are here");
}

#[test]
fn a_code_that_no_standard_has_is_told_all_the_same() {
    let code = TerminateCode::from_bits(0x3f7e);
    assert_eq!((code.layer, code.kind, code.code), (3, 15, 0x7e));
    let told = code.violation().to_string();
    assert_eq!(
        told,
        "a Terminate with a code that no standard has (RFC 5040 §4.8)"
    );
    let by_peer = code.by_peer().to_string();
    assert_eq!(
        by_peer,
        "a Terminate of the peer, with a code that no standard has (RFC 5040 §4.8)"
    );
}

#[test]
fn an_error_of_ddp_tells_the_header_and_the_length_of_its_segment() {
    let bytes = Terminate::new(TerminateCode::BOUNDS, &write()).encode();
    let control = [0x11, 0x01, 0xc0, 0x00, 0x00, 24];
    assert_eq!(bytes, [&control[..], &WRITE.encode()].concat());
}

#[test]
fn an_error_of_a_read_request_tells_the_request_too() {
    let bytes = Terminate::new(TerminateCode::READ_BOUNDS, &request()).encode();
    let control = [0x01, 0x01, 0xe0, 0x00, 0x00, 46];
    assert_eq!(bytes, [&control[..], &request()].concat());
}

#[test]
fn what_a_code_tells_of_the_segment_is_what_figure_10_has() {
    // Layer and error type; whether there is a DDP header, and the header of RDMAP.
    let rows = [
        (TerminateCode::LOCAL_CATASTROPHIC, false, false),
        (TerminateCode::READ_INVALID_STAG, true, true),
        (TerminateCode::CATASTROPHIC_STREAM, true, false),
        (TerminateCode::INVALID_MSN, true, false),
        (TerminateCode::CRC, false, false),
    ];
    for (code, has_header, has_request) in rows {
        let terminate = Terminate::new(code, &request());
        let segment = terminate.segment.as_ref();
        assert_eq!(segment.is_some(), has_header, "{code:?}");
        let told = segment.and_then(|segment| segment.request.as_ref());
        assert_eq!(told.is_some(), has_request, "{code:?}");
        assert_eq!(Terminate::parse(&terminate.encode()), Some(terminate));
    }
}

#[test]
fn a_send_that_cannot_invalidate_has_no_header_of_rdmap_to_tell() {
    let header = UntaggedHeader {
        opcode: Opcode::SEND_INVALIDATE,
        queue: QueueNumber::SEND,
        ..REQUEST_HEADER
    };
    let ulpdu = [&header.encode()[..], &[0x55; 40]].concat();
    let terminate = Terminate::new(TerminateCode::CANNOT_INVALIDATE, &ulpdu);
    let segment = TerminatedSegment {
        len: 58,
        header: header.encode().to_vec(),
        request: None,
    };
    assert_eq!(terminate.segment, Some(segment));
}

#[test]
fn a_segment_without_a_header_is_not_told() {
    let terminate = Terminate::new(TerminateCode::UNEXPECTED_OPCODE, &write()[..13]);
    assert_eq!(terminate.segment, None);
}

/// siw sets the flag of an RDMA header and sends none where an STag cannot be invalidated.
#[test]
fn the_code_of_one_that_is_cut_off_counts() {
    let bytes = Terminate::new(TerminateCode::READ_BOUNDS, &request()).encode();
    assert_eq!(bytes.len(), 52);
    let whole = Terminate::parse(&bytes).unwrap();
    assert!(whole.segment.is_some());
    for end in 0..bytes.len() {
        let cut_off = Terminate::parse(&bytes[..end]);
        let code = cut_off.as_ref().map(|one| one.code);
        assert_eq!(code, (end >= 4).then_some(whole.code), "after {end} bytes");
        assert!(cut_off.is_none_or(|one| one.segment.is_none()));
    }
}

#[test]
fn four_bytes_are_enough_for_one_without_a_segment() {
    let terminate = Terminate {
        code: TerminateCode::CRC,
        segment: None,
    };
    assert_eq!(terminate.encode(), [0x20, 0x02, 0, 0]);
    assert_eq!(Terminate::parse(&[0x20, 0x02, 0, 0]), Some(terminate));
}
