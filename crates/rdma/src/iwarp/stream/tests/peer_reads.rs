//! Reads of the peer: what they get, in which order, and what they do not get.

use scsi::medium::{HeapLease, Lease as _};

use super::rig::{Rig, THERE, read};
use crate::iwarp::ddp::{DdpHeader, Opcode, ReadRequest};
use crate::iwarp::terminate::{TerminateCode, TerminatedSegment};
use crate::test_support::{Sink, pattern, sent, ulpdus};
use crate::verbs::{Access, QueuePair as _, Stag, Tag};

/// A buffer with a pattern that the peer may read.
fn advertise(rig: &mut Rig, len: usize) -> Tag {
    let buffer = HeapLease::from_bytes(pattern(len));
    rig.stream.advertise(&buffer, Access::Read)
}

#[test]
fn a_read_is_answered_with_what_it_asked_for() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 2000);
    rig.receive(&read(1, tag.plus(100), 1000));
    let segments = ulpdus(&sent(&mut rig.stream));
    let mut data = Vec::new();
    for segment in &segments {
        let (DdpHeader::Tagged(header), payload) = DdpHeader::parse(segment).unwrap() else {
            panic!("an untagged segment");
        };
        assert_eq!(header.opcode, Opcode::READ_RESPONSE);
        assert_eq!(header.to, THERE.plus(data.len() as u64));
        data.extend_from_slice(payload);
        assert_eq!(header.last, data.len() == 1000);
    }
    assert_eq!(data, pattern(2000)[100..1100]);
    assert!(rig.told().is_empty(), "a read is not told");
}

#[test]
fn reads_are_answered_in_order() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 64);
    for (msn, size) in [(1, 10), (2, 0), (3, 30)] {
        rig.receive(&read(msn, tag, size));
    }
    let lines = [
        "Read Response 77+1000: 10 last",
        "Read Response 77+1000: 0 last",
        "Read Response 77+1000: 30 last",
    ];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn responses_take_turns_with_what_was_posted() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 1000);
    rig.receive(&read(1, tag, 600));
    rig.receive(&read(2, tag, 7));
    rig.post_write(&pattern(600));
    rig.post_send(b"status", None);
    let lines = [
        "Read Response 77+1000: 492",
        "Read Response 77+1492: 108 last",
        "Write 77+1000: 492",
        "Write 77+1492: 108 last",
        "Read Response 77+1000: 7 last",
        "Send msn 2 mo 0: 6 last",
    ];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn an_empty_read_is_from_nowhere() {
    let mut rig = Rig::new();
    let nowhere = Tag {
        stag: Stag(0),
        offset: u64::MAX,
    };
    rig.receive(&read(1, nowhere, 0));
    assert_eq!(rig.sent(), ["Read Response 77+1000: 0 last"]);
}

#[test]
fn as_many_as_ird_may_be_outstanding() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 64);
    for msn in 1..=4 {
        rig.receive(&read(msn, tag, 8));
    }
    assert_eq!(rig.sent().len(), 4);
    for msn in 5..=8 {
        rig.receive(&read(msn, tag, 8));
    }
    assert!(rig.told().is_empty());
    rig.receive(&read(9, tag, 8));
    let told = rig.told();
    assert_eq!(
        told,
        ["broken: a catastrophic error, localized to the RDMAP stream"]
    );
    assert_eq!(
        rig.sent_terminate().code,
        TerminateCode::CATASTROPHIC_STREAM
    );
}

#[test]
fn the_same_bytes_over_and_over_end_it() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 64);
    for msn in 1..=4 {
        rig.receive(&read(msn, tag, 64));
        assert_eq!(rig.sent(), ["Read Response 77+1000: 64 last"]);
    }
    rig.receive(&read(5, tag, 1));
    assert_eq!(
        rig.sent_terminate().code,
        TerminateCode::CATASTROPHIC_STREAM
    );
}

#[test]
fn memory_that_was_withdrawn_is_not_sent_though_it_was_asked_for_before() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 64);
    rig.receive(&read(1, tag, 64));
    rig.stream.withdraw(tag.stag);
    let terminate = rig.sent_terminate();
    assert_eq!(terminate.code, TerminateCode::READ_INVALID_STAG);
    assert_eq!(rig.told(), ["broken: an STag that is not valid"]);
}

#[test]
fn a_read_that_ends_in_the_middle_tells_what_was_left_of_it() {
    let mut rig = Rig::new();
    let tag = advertise(&mut rig, 1000);
    rig.receive(&read(1, tag.plus(8), 900));
    let mut one = Sink::limited(1);
    assert!(rig.stream.transmit(&mut one));
    rig.stream.withdraw(tag.stag);
    let segment = TerminatedSegment {
        len: 46,
        header: super::rig::untagged(Opcode::READ_REQUEST, 1, 0, true)
            .encode()
            .to_vec(),
        request: Some(ReadRequest {
            sink: THERE.plus(492),
            size: 408,
            source: tag.plus(500),
        }),
    };
    assert_eq!(rig.sent_terminate().segment, Some(segment));
}

#[test]
fn what_the_peer_reads_is_what_is_there_when_it_leaves() {
    let mut rig = Rig::new();
    let mut buffer = HeapLease::from_bytes(vec![0; 4]);
    let tag = rig.stream.advertise(&buffer, Access::Read);
    rig.receive(&read(1, tag, 4));
    buffer.copy_in(0, b"late");
    assert_eq!(ulpdus(&sent(&mut rig.stream))[0][14..], *b"late");
}
