//! Messages, writes and reads: in order, and the right bytes.

use super::rig::{Ends, World, asked, bytes_of, message, pair_options, pattern, read, told, write};
use crate::memory::Buffer;
use crate::rdma::{
    RdmaCompletion, RdmaHeader, RdmaListener, RdmaMemory, RdmaWork, RemoteAccess, RemoteAddress,
};
use pretend_verbs::{Count, Order};

#[test]
fn messages_arrive_in_order() {
    let mut ends = Ends::new();
    for text in ["one", "two", "three"] {
        ends.initiator.post(message(text.as_bytes()));
    }
    assert_eq!(told(&mut ends.target), Vec::<String>::new(), "not yet");
    ends.initiator.flush();
    let received = ["received one", "received two", "received three"];
    assert_eq!(told(&mut ends.target), received);
    assert_eq!(told(&mut ends.initiator), ["sent", "sent", "sent"]);
    assert_eq!(ends.world.count(Count::SendCalls), 1, "one doorbell");
}

#[test]
fn a_message_is_header_and_data_wherever_that_lies() {
    let mut ends = Ends::new();
    let of_pool = ends.filled(b" of a pool");
    let of_heap = Buffer::from_vec(b" of the heap".to_vec());
    for data in [of_pool, of_heap] {
        ends.target.post(RdmaWork::Send {
            header: RdmaHeader::new(b"data").unwrap(),
            data: Some(data),
            invalidate: None,
        });
    }
    ends.target.flush();
    let received = ["received data of a pool", "received data of the heap"];
    assert_eq!(told(&mut ends.initiator), received);
}

/// Lengths around a piece, a request of pieces, and several of these.
const LENGTHS: [usize; 9] = [0, 1, 512, 16383, 16384, 16385, 262_144, 262_145, 1 << 20];

#[test]
fn writes_move_exactly_the_bytes() {
    let mut ends = Ends::new();
    for len in LENGTHS {
        let sink = Buffer::from_vec(vec![0xee; len + 2]);
        let place = ends
            .initiator
            .advertise(&sink, RemoteAccess::Write)
            .unwrap();
        // All around is written first, as memory of a former use would show.
        let whole = Buffer::from_vec(vec![0xee; len + 2]);
        ends.target.post(write(place, whole));
        let inner = RemoteAddress {
            address: place.address + 1,
            ..place
        };
        let data = pattern(len);
        ends.target
            .post(write(inner, Buffer::from_vec(data.clone())));
        ends.target.flush();
        assert_eq!(told(&mut ends.target), ["written", "written"], "{len}");
        ends.initiator.withdraw(place.key);
        let expected = [&[0xee], &data[..], &[0xee]].concat();
        assert!(bytes_of(&sink) == expected, "{len} bytes");
    }
}

#[test]
fn reads_move_exactly_the_bytes() {
    let mut ends = Ends::new();
    for len in LENGTHS {
        let data = pattern(len);
        let source = Buffer::from_vec(data.clone());
        let place = ends
            .initiator
            .advertise(&source, RemoteAccess::Read)
            .unwrap();
        let whole = Buffer::from_vec(vec![0xee; len + 2]);
        ends.target.post(read(9, place, whole.slice(1, len)));
        ends.target.flush();
        assert_eq!(told(&mut ends.target), [format!("got 9, {len} bytes")]);
        let expected = [&[0xee], &data[..], &[0xee]].concat();
        assert!(bytes_of(&whole) == expected, "{len} bytes");
        ends.initiator.withdraw(place.key);
    }
}

#[test]
fn a_response_comes_behind_its_data() {
    let mut ends = Ends::new();
    let sink = Buffer::from_vec(vec![0; 4096]);
    let place = ends
        .initiator
        .advertise(&sink, RemoteAccess::Write)
        .unwrap();
    let data = ends.filled(&[7; 4096]);
    ends.target.post(write(place, data));
    ends.target.post(message(b"good"));
    ends.target.flush();
    assert_eq!(told(&mut ends.initiator), ["received good"]);
    ends.initiator.withdraw(place.key);
    assert_eq!(bytes_of(&sink), [7; 4096]);
    assert_eq!(told(&mut ends.target), ["written", "sent"]);
}

#[test]
fn an_invalidation_is_told_with_its_message() {
    let mut ends = Ends::new();
    assert!(ends.target.limits().can_invalidate);
    ends.target.post(RdmaWork::Send {
        header: RdmaHeader::new(b"x").unwrap(),
        data: None,
        invalidate: Some(77),
    });
    ends.target.flush();
    let Some(RdmaCompletion::Received { invalidated, .. }) = ends.initiator.poll() else {
        panic!("a message");
    };
    assert_eq!(invalidated, Some(77));
}

#[test]
fn what_the_queue_does_not_hold_waits_in_order() {
    let mut ends = Ends::new();
    ends.initiator.grow_receives(146).unwrap();
    for number in 0..600 {
        ends.target.post(message(format!("{number}").as_bytes()));
    }
    ends.target.flush();
    let (mut received, mut sent) = (Vec::new(), 0);
    while received.len() < 600 {
        received.extend(told(&mut ends.initiator));
        sent += told(&mut ends.target).len();
    }
    let expected: Vec<_> = (0..600)
        .map(|number| format!("received {number}"))
        .collect();
    assert_eq!(received, expected);
    sent += told(&mut ends.target).len();
    assert_eq!(sent, 600);
}

#[test]
fn a_message_longer_than_agreed_ends_the_pair() {
    let mut ends = Ends::new();
    ends.target.post(RdmaWork::Send {
        header: RdmaHeader::new(b"x").unwrap(),
        data: Some(Buffer::from_vec(vec![0; 9000])),
        invalidate: None,
    });
    ends.target.flush();
    let end = "ended: a message is longer than what was agreed (max_send)";
    assert_eq!(told(&mut ends.target), [end]);
}

#[test]
fn a_read_over_iwarp_goes_by_memory_of_its_own() {
    let world = World::new();
    // Listened on before the device was there.
    let any = "0.0.0.0:3260".parse().unwrap();
    let mut listener = RdmaListener::listen(&world.library, any).unwrap();
    world.order(Order::Devices, 3);
    let mut connector = world.connector("127.0.1.1:3260".parse().unwrap());
    assert!(connector.poll().is_none());
    let memory = RdmaMemory::new();
    let target = asked(&mut listener).accept(&memory, &pair_options(), &[]);
    let (mut target, mut initiator) = (target.unwrap(), connector.poll().unwrap().unwrap().pair);
    let data = pattern(1 << 20);
    let source = Buffer::from_vec(data.clone());
    let place = initiator.advertise(&source, RemoteAccess::Read).unwrap();
    let before = world.count(Count::Pinned);
    world.order(Order::Hold, 1);
    let into = Buffer::from_vec(vec![0; 1 << 20]);
    target.post(read(1, place, into.clone()));
    target.flush();
    assert_eq!(world.count(Count::Pinned) - before, 1 << 20);
    world.order(Order::Hold, 0);
    assert_eq!(told(&mut target), ["got 1, 1048576 bytes"]);
    assert!(bytes_of(&into) == data);
    assert_eq!(world.count(Count::Pinned), before, "it is closed at once");
    assert_eq!(memory.left(), 64 << 20);
}
