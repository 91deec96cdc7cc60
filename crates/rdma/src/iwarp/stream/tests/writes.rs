//! RDMA Writes, both ways.

use scsi::medium::{HeapLease, Lease as _};

use super::rig::{Rig, send, tagged, write};
use crate::iwarp::ddp::Opcode;
use crate::test_support::{bytes_of, pattern};
use crate::verbs::{Access, QueuePair as _, Stag, Tag, Work};

#[test]
fn a_write_and_its_response_leave_in_order() {
    let mut rig = Rig::new();
    rig.post_write(&pattern(1000));
    rig.post_send(b"status", None);
    let lines = [
        "Write 77+1000: 492",
        "Write 77+1492: 492",
        "Write 77+1984: 16 last",
        "Send msn 2 mo 0: 6 last",
    ];
    assert_eq!(rig.sent(), lines);
    assert_eq!(rig.told(), ["written", "sent"]);
}

#[test]
fn an_empty_write_has_one_segment() {
    let mut rig = Rig::new();
    rig.post_write(&[]);
    assert_eq!(rig.sent(), ["Write 77+1000: 0 last"]);
}

#[test]
fn a_place_that_the_peer_made_up_is_for_the_peer_to_refuse() {
    let mut rig = Rig::new();
    rig.stream.post(Work::Write {
        to: Tag {
            stag: Stag(1),
            offset: u64::MAX - 99,
        },
        from: HeapLease::from_bytes(pattern(600)),
    });
    let lines = ["Write 1+18446744073709551516: 492", "Write 1+392: 108 last"];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn segments_are_placed_by_their_offsets() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 100]);
    let tag = rig.stream.advertise(&buffer, Access::Write);
    let data = pattern(100);
    rig.receive(&tagged(Opcode::WRITE, tag.plus(40), &data[40..], false));
    rig.receive(&tagged(Opcode::WRITE, tag, &data[..40], true));
    assert_eq!(bytes_of(&buffer), data);
    assert!(rig.told().is_empty(), "a write is not told");
}

#[test]
fn a_write_within_a_message_of_the_peer_does_no_harm() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 4]);
    let tag = rig.stream.advertise(&buffer, Access::Write);
    let first = super::rig::untagged(Opcode::SEND, 1, 0, false);
    let second = super::rig::untagged(Opcode::SEND, 1, 2, true);
    rig.receive(&super::rig::untagged_fpdu(&first, b"me"));
    rig.receive(&write(tag, b"data"));
    rig.receive(&super::rig::untagged_fpdu(&second, b"ssage"));
    assert_eq!(rig.told(), ["received 7"]);
    assert_eq!(bytes_of(&buffer), b"data");
}

#[test]
fn a_write_that_is_split_at_any_byte_is_placed_as_a_whole() {
    let stream = |tag| [write(tag, b"12345"), send(1, b"!")].concat();
    let len = stream(super::rig::THERE).len();
    for at in 0..=len {
        let mut rig = Rig::new();
        let buffer = HeapLease::from_bytes(vec![0; 5]);
        let bytes = stream(rig.stream.advertise(&buffer, Access::Write));
        rig.receive(&bytes[..at]);
        let placed = bytes_of(&buffer);
        assert!(placed == [0; 5] || placed == b"12345", "split at {at}");
        rig.receive(&bytes[at..]);
        assert_eq!(bytes_of(&buffer), b"12345", "split at {at}");
    }
}

#[test]
fn an_empty_write_is_to_nowhere() {
    let mut rig = Rig::new();
    let nowhere = Tag {
        stag: Stag(0),
        offset: u64::MAX,
    };
    rig.receive(&write(nowhere, b""));
    assert!(rig.told().is_empty());
}

#[test]
fn every_byte_of_a_buffer_can_be_written_any_number_of_times() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 8]);
    let tag = rig.stream.advertise(&buffer, Access::Write);
    for round in 0..20 {
        rig.receive(&write(tag, &[round; 8]));
    }
    assert_eq!(bytes_of(&buffer), [19; 8]);
}
