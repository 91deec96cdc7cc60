//! Reads of ours: their credits, their responses, and their ends before the time.

use scsi::medium::{HeapLease, Lease as _};

use super::rig::{Rig, response, tagged};
use crate::iwarp::ddp::Opcode;
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::test_support::{agreed, bytes_of, pattern};
use crate::verbs::{QueuePair as _, ReadId};

#[test]
fn a_read_is_asked_for_and_filled() {
    let mut rig = Rig::new();
    let into = rig.post_read(5, 100);
    let request = rig.sent_request();
    assert_eq!((request.size, request.source), (100, super::rig::THERE));
    assert_ne!(request.sink.stag.0, 0);
    assert!(rig.told().is_empty());
    let data = pattern(100);
    rig.receive(&tagged(
        Opcode::READ_RESPONSE,
        request.sink,
        &data[..60],
        false,
    ));
    assert!(rig.told().is_empty());
    rig.receive(&response(request.sink.plus(60), &data[60..]));
    assert_eq!(rig.told(), ["got 5: 100"]);
    assert_eq!(bytes_of(&into), data);
}

#[test]
fn reads_wait_for_credits_and_hold_back_what_is_behind() {
    let two = Agreed {
        ord: 2,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::with(two);
    let _first = rig.post_read(1, 8);
    let request = rig.sent_request();
    rig.post_read(2, 9);
    rig.post_read(3, 10);
    rig.post_send(b"after", None);
    assert_eq!(rig.sent(), ["Read Request msn 2: 9 from 77+1000"]);
    rig.receive(&response(request.sink, &pattern(8)));
    assert_eq!(rig.told(), ["got 1: 8"]);
    let lines = [
        "Read Request msn 3: 10 from 77+1000",
        "Send msn 2 mo 0: 5 last",
    ];
    assert_eq!(rig.sent(), lines);
}

#[test]
fn each_read_has_a_sink_of_its_own() {
    let mut rig = Rig::new();
    rig.post_read(1, 8);
    let first = rig.sent_request();
    rig.post_read(2, 8);
    let second = rig.sent_request();
    assert_ne!(first.sink.stag, second.sink.stag);
    // The responses come in the order of the requests.
    rig.receive(&response(second.sink, &pattern(8)));
    let told = rig.told();
    assert_eq!(
        told,
        ["broken: a tagged segment with an STag that is not valid"]
    );
}

#[test]
fn a_sink_cannot_be_written_to() {
    let mut rig = Rig::new();
    let into = rig.post_read(1, 8);
    let request = rig.sent_request();
    rig.receive(&super::rig::write(request.sink, &pattern(8)));
    let told = rig.told();
    assert_eq!(
        told,
        ["broken: a tagged segment with an STag that is not valid"]
    );
    assert_eq!(bytes_of(&into), [0; 8]);
}

#[test]
fn an_empty_read_is_answered_by_an_empty_segment() {
    let mut rig = Rig::new();
    rig.post_read(1, 0);
    assert_eq!(rig.sent(), ["Read Request msn 1: 0 from 77+1000"]);
    rig.receive(&response(super::rig::THERE, &[]));
    assert_eq!(rig.told(), ["got 1: 0"]);
}

#[test]
fn a_read_that_was_not_asked_for_yet_is_taken_back() {
    let none = Agreed {
        ord: 0,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::with(none);
    rig.post_read(1, 8);
    rig.post_send(b"after", None);
    assert!(rig.sent().is_empty());
    let given_back = rig.stream.cancel(ReadId(1));
    assert_eq!(given_back.map(|lease| lease.len()), Some(8));
    assert_eq!(rig.told(), ["drained 1"]);
    assert_eq!(rig.sent(), ["Send msn 2 mo 0: 5 last"]);
}

#[test]
fn what_comes_for_a_read_that_was_cancelled_is_dropped() {
    let mut rig = Rig::new();
    let into = rig.post_read(1, 100);
    let request = rig.sent_request();
    let data = pattern(100);
    rig.receive(&tagged(
        Opcode::READ_RESPONSE,
        request.sink,
        &data[..10],
        false,
    ));
    let given_back = rig.stream.cancel(ReadId(1)).unwrap();
    assert_eq!(given_back.difference(&into), None);
    assert!(rig.stream.cancel(ReadId(1)).is_none(), "it was given back");
    assert!(rig.told().is_empty());
    rig.receive(&response(request.sink.plus(10), &data[10..]));
    assert_eq!(rig.told(), ["drained 1"]);
    let placed = [&data[..10], &[0; 90]].concat();
    assert_eq!(bytes_of(&into), placed);
}

#[test]
fn a_read_that_was_cancelled_keeps_its_credit_until_it_is_over() {
    let one = Agreed {
        ord: 1,
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::with(one);
    rig.post_read(1, 8);
    let request = rig.sent_request();
    rig.stream.cancel(ReadId(1));
    rig.post_read(2, 9);
    assert!(rig.sent().is_empty());
    rig.receive(&response(request.sink, &pattern(8)));
    assert_eq!(rig.sent(), ["Read Request msn 2: 9 from 77+1000"]);
}

#[test]
fn the_response_to_a_read_that_was_cancelled_is_checked_all_the_same() {
    let mut rig = Rig::new();
    rig.post_read(1, 8);
    let request = rig.sent_request();
    rig.stream.cancel(ReadId(1));
    rig.receive(&response(request.sink, &pattern(9)));
    assert_eq!(rig.told(), ["broken: a tagged segment beyond its buffer"]);
}

#[test]
fn a_response_that_was_not_asked_for_ends_it() {
    let mut rig = Rig::new();
    let into: HeapLease = rig.post_read(1, 8);
    let request = rig.sent_request();
    rig.receive(&response(request.sink, &pattern(8)));
    assert_eq!(rig.told(), ["got 1: 8"]);
    rig.receive(&response(request.sink, &[0xee; 8]));
    assert_eq!(rig.told(), ["broken: an unexpected RDMA opcode"]);
    assert_eq!(bytes_of(&into), pattern(8));
}
