//! Messages, both ways.

use scsi::medium::{HeapLease, Lease as _};

use super::rig::{Rig, send, untagged, untagged_fpdu};
use crate::iwarp::ddp::Opcode;
use crate::iwarp::startup::MpaRole;
use crate::iwarp::stream::{Stream, StreamConfig};
use crate::test_support::{agreed, config, pattern, sent, ulpdus};
use crate::verbs::{Access, Completion, QueuePair as _, SendHeader, Stag, Work};

/// The messages that are told, as they are.
fn messages(rig: &mut Rig) -> Vec<Vec<u8>> {
    let told = std::iter::from_fn(|| rig.stream.poll());
    told.filter_map(|completion| match completion {
        Completion::Received { bytes, .. } => Some(bytes),
        _ => None,
    })
    .collect()
}

#[test]
fn a_message_is_cut_by_the_segment_of_tcp() {
    let mut rig = Rig::new();
    rig.post_send(&pattern(76), Some(&pattern(1000)));
    let lines = [
        "Send msn 2 mo 0: 488",
        "Send msn 2 mo 488: 488",
        "Send msn 2 mo 976: 100 last",
    ];
    assert_eq!(rig.sent(), lines);
    assert_eq!(rig.told(), ["sent"]);
}

#[test]
fn whether_the_peer_bears_invalidation_is_told() {
    for can_invalidate in [false, true] {
        let config = StreamConfig {
            can_invalidate,
            ..config()
        };
        let stream = Stream::<HeapLease>::new(agreed(MpaRole::Responder), &config);
        assert_eq!(stream.limits().can_invalidate, can_invalidate);
    }
}

#[test]
fn header_and_data_follow_each_other_wherever_they_are_cut() {
    // The smallest MULPDU: the header itself does not fit.
    let small = StreamConfig {
        segment_size: 0,
        ..config()
    };
    for (header, data) in [(152, 300), (110, 0), (110, 1), (109, 5), (0, 220), (0, 0)] {
        let mut rig = Rig::configured(agreed(MpaRole::Initiator), &small);
        let message = pattern(header + data);
        rig.post_send(&message[..header], Some(&message[header..]));
        let segments = ulpdus(&sent(&mut rig.stream));
        let sent: Vec<_> = segments
            .iter()
            .flat_map(|ulpdu| &ulpdu[18..])
            .copied()
            .collect();
        assert_eq!(sent, message, "{header} and {data}");
        let whole = (header + data).div_ceil(110).max(1);
        assert_eq!(segments.len(), whole, "{header} and {data}");
    }
}

#[test]
fn a_larger_segment_of_tcp_counts_from_the_next_fpdu_on() {
    let mut rig = Rig::new();
    rig.stream.set_segment_size(1460);
    rig.post_send(&[], Some(&pattern(1436)));
    assert_eq!(rig.sent(), ["Send msn 2 mo 0: 1436 last"]);
}

#[test]
fn long_fpdus_go_beyond_the_segment_of_tcp() {
    let long = crate::iwarp::startup::Agreed {
        long_fpdus: true,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::with(long);
    rig.post_send(&[], Some(&pattern(64_745)));
    let lines = ["Send msn 2 mo 0: 64744", "Send msn 2 mo 64744: 1 last"];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn a_peer_that_demands_markers_gets_them_from_the_first_byte_on() {
    let marked = crate::iwarp::startup::Agreed {
        markers: true,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::fresh(marked);
    rig.post_send(&[], Some(&pattern(600)));
    let bytes = sent(&mut rig.stream);
    // MULPDU is 502: 484 bytes of the message in the first FPDU.
    assert_eq!(bytes[..6], [0, 0, 0, 0, 0x01, 0xf6]);
    assert_eq!(bytes[512..518], [0, 0, 0, 0, 0, 134]);
}

#[test]
fn without_crcs_the_field_is_zero() {
    let plain = crate::iwarp::startup::Agreed {
        crc: false,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::fresh(plain);
    rig.post_send(b"abcd", None);
    let bytes = sent(&mut rig.stream);
    assert_eq!(bytes.len(), 28);
    assert_eq!(bytes[24..], [0; 4]);
}

#[test]
fn a_send_may_invalidate_an_stag_of_the_peer() {
    let mut rig = Rig::new();
    rig.stream.post(Work::Send {
        header: SendHeader::new(&[&pattern(500)[..100]]).unwrap(),
        data: Some(HeapLease::from_bytes(pattern(400))),
        invalidate: Some(Stag(0xbeef)),
    });
    let lines = [
        "Send with Invalidate of beef msn 2 mo 0: 488",
        "Send with Invalidate of beef msn 2 mo 488: 12 last",
    ];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn a_batch_that_is_full_stops_between_two_fpdus() {
    let mut rig = Rig::new();
    rig.post_send(&[], Some(&pattern(1000)));
    let mut sink = crate::test_support::Sink::limited(1);
    let mut lens = Vec::new();
    while rig.stream.transmit(&mut sink) {
        lens.push(ulpdus(&std::mem::take(&mut sink.bytes)).len());
    }
    assert_eq!(lens, [1, 1, 1]);
}

#[test]
fn a_message_is_told_when_it_is_whole() {
    let mut rig = Rig::new();
    let message = pattern(1000);
    let first = untagged(Opcode::SEND, 1, 0, false);
    let second = untagged(Opcode::SEND, 1, 600, true);
    rig.receive(&untagged_fpdu(&first, &message[..600]));
    assert!(rig.told().is_empty());
    rig.receive(&untagged_fpdu(&second, &message[600..]));
    assert_eq!(messages(&mut rig), [message]);
}

#[test]
fn nothing_behind_a_message_is_looked_at_before_it_was_taken() {
    let mut rig = Rig::new();
    let (one, two) = (send(1, b"one"), send(2, b"two"));
    let both = [&one[..], &two].concat();
    assert_eq!(rig.stream.receive(&both), one.len());
    assert_eq!(rig.stream.receive(&two), 0);
    assert_eq!(messages(&mut rig), [b"one"]);
    assert_eq!(rig.stream.receive(&two), two.len());
    assert_eq!(messages(&mut rig), [b"two"]);
}

#[test]
fn messages_that_are_split_at_any_byte() {
    let stream = [
        untagged_fpdu(&untagged(Opcode::SEND, 1, 0, false), b"on"),
        untagged_fpdu(&untagged(Opcode::SEND, 1, 2, true), b"e"),
        send(2, b""),
        send(3, b"three"),
    ]
    .concat();
    let expected = [&b"one"[..], b"", b"three"];
    for at in 0..=stream.len() {
        let mut rig = Rig::new();
        let mut got = Vec::new();
        for part in [&stream[..at], &stream[at..]] {
            let mut rest = part;
            while !rest.is_empty() {
                let used = rig.stream.receive(rest);
                assert!(used > 0, "split at {at}");
                rest = &rest[used..];
                got.extend(messages(&mut rig));
            }
        }
        assert_eq!(got, expected, "split at {at}");
    }
}

#[test]
fn each_kind_of_send_is_taken() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 8]);
    let tags = [(); 2].map(|()| rig.stream.advertise(&buffer, Access::Write).stag);
    let kinds = [
        (Opcode::SEND, None),
        (Opcode::SEND_INVALIDATE, Some(tags[0])),
        (Opcode::SEND_EVENT, None),
        (Opcode::SEND_EVENT_INVALIDATE, Some(tags[1])),
    ];
    for ((opcode, stag), msn) in kinds.into_iter().zip(1..) {
        let header = crate::iwarp::ddp::UntaggedHeader {
            // Where nothing is invalidated the field is ignored.
            invalidate: stag.unwrap_or(Stag(0x1234)),
            ..untagged(opcode, msn, 0, true)
        };
        rig.receive(&untagged_fpdu(&header, b"pdu"));
        let Some(Completion::Received { bytes, invalidated }) = rig.stream.poll() else {
            panic!("{opcode:?}");
        };
        assert_eq!((&bytes[..], invalidated), (&b"pdu"[..], stag));
    }
}

#[test]
fn where_nothing_is_invalidated_segments_may_differ_in_the_stag() {
    let mut rig = Rig::new();
    let first = untagged(Opcode::SEND, 1, 0, false);
    let second = crate::iwarp::ddp::UntaggedHeader {
        invalidate: Stag(9),
        ..untagged(Opcode::SEND, 1, 3, true)
    };
    rig.receive(&untagged_fpdu(&first, b"one"));
    rig.receive(&untagged_fpdu(&second, b"two"));
    assert_eq!(messages(&mut rig), [b"onetwo"]);
}

#[test]
fn an_stag_that_was_invalidated_is_dead() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 8]);
    let tag = rig.stream.advertise(&buffer, Access::Write);
    let header = crate::iwarp::ddp::UntaggedHeader {
        invalidate: tag.stag,
        ..untagged(Opcode::SEND_INVALIDATE, 1, 0, true)
    };
    rig.receive(&untagged_fpdu(&header, b"done"));
    assert_eq!(rig.told().len(), 1);
    rig.receive(&super::rig::write(tag, b"late"));
    let told = rig.told();
    assert_eq!(
        told,
        ["broken: a tagged segment with an STag that is not valid"]
    );
    assert_eq!(crate::test_support::bytes_of(&buffer), [0; 8]);
}

#[test]
fn the_longest_message_is_taken() {
    let mut rig = Rig::new();
    rig.receive(&send(1, &pattern(4096)));
    assert_eq!(messages(&mut rig), [pattern(4096)]);
}

#[test]
fn longer_messages_are_taken_when_that_was_agreed_upon() {
    let mut rig = Rig::new();
    rig.stream.set_max_receive(5000);
    rig.receive(&send(1, &pattern(5000)));
    assert_eq!(messages(&mut rig), [pattern(5000)]);
}

#[test]
fn memory_of_messages_is_used_again() {
    let mut rig = Rig::new();
    rig.receive(&send(1, &pattern(1000)));
    let first = messages(&mut rig).remove(0);
    let place = first.as_ptr();
    rig.stream.recycle(first);
    rig.receive(&send(2, &pattern(500)));
    let second = messages(&mut rig).remove(0);
    assert_eq!((second.as_ptr(), second), (place, pattern(500)));
}

#[test]
fn memory_is_given_back_and_nothing_else() {
    let mut rig = Rig::new();
    let message = send(1, &pattern(100));
    let (first, second) = message.split_at(50);
    rig.receive(first);
    rig.stream.trim();
    rig.receive(second);
    rig.stream.trim();
    assert_eq!(messages(&mut rig), [pattern(100)]);
    rig.receive(&send(2, b"more"));
    assert_eq!(messages(&mut rig), [b"more"]);
}

#[test]
fn a_header_that_is_too_long_is_none() {
    assert!(SendHeader::new(&[&[0; 76], &[0; 76]]).is_some());
    assert!(SendHeader::new(&[&[0; 76], &[0; 77]]).is_none());
    assert!(SendHeader::new(&[&[0; 300]]).is_none());
}

#[test]
fn room_is_for_what_was_not_sent() {
    let mut rig = Rig::new();
    let room = rig.stream.limits().room;
    rig.post_send(b"a", None);
    assert_eq!(rig.stream.limits().room, room - 1);
    rig.sent();
    assert_eq!(rig.stream.limits().room, room);
}
