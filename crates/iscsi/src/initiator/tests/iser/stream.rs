//! Targets that break a rule of the queue pair, and queue pairs that end: the target is told the
//! rule, and each command fails once with an unknown fate.

use rdma::iwarp::ddp::{Opcode, QueueNumber, TaggedHeader, UntaggedHeader};
use rdma::test_support::{fpdu, tagged, untagged};
use rdma::verbs::{Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::wrong::{Story, begun, fail};
use crate::initiator::Data;
use crate::initiator::error::SessionEnd;
use crate::initiator::tests::rig::{IserRig as Rig, bytes_of, pattern};

/// The same, and the target is told which rule it was.
#[track_caller]
fn terminates(stories: &[Story]) {
    for (rule, story) in stories {
        let mut rig = begun();
        story(&mut rig);
        fail(&mut rig, rule, 0);
        assert_eq!(rig.terminated(), *rule);
        assert_eq!(rig.rule(), *rule);
        assert!(rig.got().is_empty(), "{rule}: nothing was read");
    }
}

fn write(rig: &mut Rig, to: Tag, len: usize) {
    let from = HeapLease::from_bytes(vec![0xdd; len]);
    rig.post(Work::Write { to, from });
}

#[test]
fn writes_to_where_there_is_nothing_to_write() {
    let invalid = "a tagged segment with an STag that is not valid";
    let bounds = "a tagged segment beyond its buffer";
    terminates(&[
        (invalid, |rig| {
            let to = Tag {
                stag: Stag(0x1234_5678),
                offset: 0,
            };
            write(rig, to, 1);
        }),
        (invalid, |rig| {
            let to = Tag {
                stag: Stag(0),
                offset: 0,
            };
            write(rig, to, 1);
        }),
        (invalid, |rig| write(rig, rig.tag(0x20001), 1)),
        (bounds, |rig| write(rig, rig.tag(0x10000).plus(2999), 2)),
        (bounds, |rig| write(rig, rig.tag(0x10000).plus(3000), 1)),
        (bounds, |rig| write(rig, rig.tag(0x10000).plus(1 << 32), 1)),
        (bounds, |rig| {
            write(rig, rig.tag(0x10000).plus(u64::MAX - 1), 1);
        }),
        ("a tagged segment whose Tagged Offset wraps", |rig| {
            write(rig, rig.tag(0x10000).plus(u64::MAX), 2);
        }),
    ]);
}

#[test]
fn reads_of_what_may_not_be_read() {
    let invalid = "an STag that is not valid";
    let bounds = "a base or bounds violation";
    terminates(&[
        (invalid, |rig| {
            let from = Tag {
                stag: Stag(0x1234_5678),
                offset: 0,
            };
            rig.get_from(from, 1);
        }),
        ("an access rights violation", |rig| {
            rig.get_from(rig.tag(0x10000), 1);
        }),
        (bounds, |rig| rig.get(0x20001, 1, 3000)),
        (bounds, |rig| rig.get(0x20001, 3000, 1)),
        ("a Tagged Offset that wraps", |rig| {
            rig.get_from(rig.tag(0x20001).plus(u64::MAX), 2);
        }),
        (
            "a catastrophic error, localized to the RDMAP stream",
            |rig| {
                for _ in 0..5 {
                    rig.get(0x20001, 0, 1);
                }
            },
        ),
        (
            "a catastrophic error, localized to the RDMAP stream",
            |rig| {
                for at in 0..66 {
                    let to = rig.tag(0x10000).plus(2 * at + 1);
                    rig.post(Work::Write {
                        to,
                        from: HeapLease::from_bytes(vec![0xee]),
                    });
                }
            },
        ),
    ]);
}

/// An STag of a command that was answered is dead, whether or not the target has invalidated it.
#[test]
fn stags_of_a_command_that_is_over() {
    for invalidates in [false, true] {
        let mut rig = begun();
        let tag = rig.tag(0x10000);
        rig.put(0x10000, 0, 3000);
        let pdu = rig.response_pdu(0x10000, 0);
        rig.give_pdu(pdu.encode(), &[], invalidates.then_some(tag.stag));
        let Data::In(into) = rig.done().data else {
            panic!("a read")
        };
        write(&mut rig, tag, 1);
        assert_eq!(rig.failed().id, 2);
        assert_eq!(
            rig.rule(),
            "a tagged segment with an STag that is not valid"
        );
        assert_eq!(bytes_of(&into), pattern(3000));
    }
}

#[test]
fn messages_that_no_stream_has() {
    let too_long = |rig: &mut Rig| rig.give_raw(&[0x10; 8269], None);
    let mut rig = begun();
    too_long(&mut rig);
    fail(&mut rig, "too long", 0);
    assert_eq!(rig.rule(), "a message too long for its buffer");

    let response = TaggedHeader {
        last: true,
        opcode: Opcode::READ_RESPONSE,
        to: Tag {
            stag: Stag(1),
            offset: 0,
        },
    };
    let send = UntaggedHeader {
        last: true,
        opcode: Opcode::SEND,
        invalidate: Stag(0),
        queue: QueueNumber::SEND,
        msn: 77,
        offset: 0,
    };
    let mut damaged = fpdu(&[0x41; 40]);
    damaged[20] ^= 1;
    let rows = [
        (tagged(&response, b"x"), "an unexpected RDMA opcode"),
        (
            untagged(&send, b"x"),
            "a message sequence number out of range",
        ),
        (damaged, "an FPDU with a wrong CRC"),
    ];
    for (bytes, rule) in rows {
        let mut rig = begun();
        rig.give(&bytes);
        fail(&mut rig, rule, 0);
        assert_eq!(rig.rule(), rule);
    }
}

#[test]
fn a_target_that_ends_the_stream() {
    let mut rig = begun();
    rig.carrier.theirs.end();
    rig.back();
    fail(&mut rig, "ended", 0);
    let end = rig.end();
    assert!(matches!(end, SessionEnd::Terminated(_)));
    assert_eq!(
        end.to_string(),
        "the target ended the connection: a Terminate of the peer (RDMAP, Local Catastrophic \
         Error): a local catastrophic error (RFC 5040 §4.8)"
    );
}

#[test]
fn our_own_end_of_the_stream() {
    let mut rig = begun();
    rig.carrier.ours.end();
    rig.give(&[]);
    fail(&mut rig, "ended", 0);
    assert_eq!(rig.end(), SessionEnd::GivenUp);
}

/// Memory is its user's again when the session has ended, whoever holds the queue pair.
#[test]
fn a_connection_that_is_lost() {
    let mut rig = begun();
    let to = rig.tag(0x10000);
    rig.initiator.lost();
    assert!(rig.initiator.settle(&mut rig.carrier.ours));
    write(&mut rig, to, 8);
    fail(&mut rig, "lost", 0);
    assert_eq!(rig.end(), SessionEnd::Lost);
}
