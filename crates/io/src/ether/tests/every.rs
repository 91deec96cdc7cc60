//! What every port does alike.

use std::sync::Arc;

use super::*;
use crate::ring::{AnyRing, Ring, RingEvent, RingKind, SocketRing, Token};

/// Makes a test of each story for each kind of port.
macro_rules! on_every_port {
    ($($story:ident)*) => {
        mod over_cable {
            $(#[test]
            fn $story() {
                super::$story(super::Pair::cable());
            })*
        }
        mod over_packet {
            use super::Pair;
            $(fn $story() {
                super::$story(Pair::veth(&Default::default()));
            })*
            mod inside {
                super::super::on_veth! { 2500: $($story)* }
            }
        }
        mod over_xdp {
            use super::Pair;
            $(fn $story() {
                super::$story(Pair::xdp());
            })*
            mod inside {
                super::super::on_veth_as_root! { 2500: $($story)* }
            }
        }
    };
}

on_every_port! {
    frames_of_all_lengths_go_both_ways
    nothing_comes_back
    only_fcoe_and_fip_come_in
    only_what_is_for_us_comes_in
    what_was_left_comes_in_no_more
    many_frames_keep_their_order
    a_batch_leaves_at_once
    a_frame_that_is_too_long_holds_nothing_up
    a_ring_is_told_that_a_frame_is_there
    the_rest_of_a_batch_is_told_of_again
    a_port_is_of_use_while_it_is_watched
    who_has_more_to_send_is_told_when_there_is_room
}

fn who_has_more_to_send_is_told_when_there_is_room(mut pair: Pair) {
    assert!(!ready(&pair.a, SHORT));
    pair.a.more_to_send().unwrap();
    assert!(ready(&pair.a, LONG));
    let to = pair.b.mac();
    send(&mut pair.a, &frame(to, FIP, 60));
    assert!(!ready(&pair.a, SHORT));
}

fn frames_of_all_lengths_go_both_ways(mut pair: Pair) {
    let (a, b) = (pair.a.mac(), pair.b.mac());
    for len in [60, 61, 98, 1514, 2172, 2514] {
        for ethertype in [FCOE, FIP] {
            let there = frame(b, ethertype, len);
            send(&mut pair.a, &there);
            assert_eq!(receive(&mut pair.b, 1), [(there, None)]);
            let back = frame(a, ethertype, len);
            send(&mut pair.b, &back);
            assert_eq!(receive(&mut pair.a, 1), [(back, None)]);
        }
    }
    assert_eq!(pair.a.drops().unwrap().ring_full, 0);
}

fn nothing_comes_back(mut pair: Pair) {
    let own = pair.a.mac();
    send(&mut pair.a, &frame(own, FCOE, 100));
    quiet(&mut pair.a);
}

fn only_fcoe_and_fip_come_in(mut pair: Pair) {
    let to = pair.b.mac();
    for other in [0x0800, 0x0806, 0x86dd, 0x8905, 0x8907, 0x8915, 0x0689] {
        send(&mut pair.a, &frame(to, other, 100));
    }
    let last = frame(to, FIP, 100);
    send(&mut pair.a, &last);
    assert_eq!(receive(&mut pair.b, 1), [(last, None)]);
}

fn only_what_is_for_us_comes_in(mut pair: Pair) {
    const OWN: EtherMac = [0x0e, 0xfd, 0x00, 0x00, 0x12, 0x34];
    const GROUP: EtherMac = [0x01, 0x10, 0x18, 0x01, 0x00, 0x04];
    for mac in [OWN, GROUP] {
        send(&mut pair.a, &frame(mac, FCOE, 100));
    }
    quiet(&mut pair.b);
    // Twice is as good as once.
    for mac in [OWN, GROUP, GROUP] {
        pair.b.join(mac).unwrap();
    }
    for mac in [OWN, GROUP] {
        let sent = frame(mac, FCOE, 100);
        send(&mut pair.a, &sent);
        assert_eq!(receive(&mut pair.b, 1), [(sent, None)]);
        let mut near = mac;
        near[5] ^= 1;
        send(&mut pair.a, &frame(near, FCOE, 100));
        near = mac;
        near[1] ^= 1;
        send(&mut pair.a, &frame(near, FCOE, 100));
    }
    quiet(&mut pair.b);
}

fn what_was_left_comes_in_no_more(mut pair: Pair) {
    let own = pair.b.mac();
    let address = |number: u8| [0x0e, 0xfd, 0, 0, 1, number];
    // As often as a port may come to another address, and more.
    for number in 0..200 {
        pair.b.join(address(number)).unwrap();
        let sent = frame(address(number), FCOE, 100);
        send(&mut pair.a, &sent);
        assert_eq!(receive(&mut pair.b, 1), [(sent.clone(), None)]);
        pair.b.leave(address(number)).unwrap();
        send(&mut pair.a, &sent);
    }
    // Neither is what was never joined, nor our own.
    pair.b.leave(address(0)).unwrap();
    pair.b.leave(own).unwrap();
    let last = frame(own, FCOE, 100);
    send(&mut pair.a, &last);
    assert_eq!(receive(&mut pair.b, 1), [(last, None)]);
}

fn many_frames_keep_their_order(mut pair: Pair) {
    let to = pair.b.mac();
    // Over the end of a ring, more than once.
    for round in 0..200_u32 {
        let len = 60 + round as usize * 11;
        let mut sent: Vec<_> = (0..100).map(|_| frame(to, FCOE, len)).collect();
        for (number, frame) in (100 * round..).zip(&mut sent) {
            frame[20..24].copy_from_slice(&number.to_be_bytes());
        }
        let mut taken = Vec::new();
        let mut left = sent.iter();
        while taken.len() < sent.len() {
            // A cable takes few at a time.
            while let Some(slot) = pair.a.slot(len) {
                let Some(frame) = left.next() else { break };
                slot.copy_from_slice(frame);
                pair.a.commit(len);
            }
            pair.a.flush().unwrap();
            assert!(ready(&pair.b, LONG));
            pair.b.receive(|frame, _| taken.push(frame.to_vec()));
        }
        assert_eq!(taken, sent);
    }
    assert_eq!(pair.b.drops().unwrap().ring_full, 0);
}

fn a_batch_leaves_at_once(mut pair: Pair) {
    let sent = frame(pair.b.mac(), FCOE, 2172);
    for _ in 0..8 {
        put(&mut pair.a, &sent);
    }
    quiet(&mut pair.b);
    assert!(pair.a.flush().unwrap());
    assert_eq!(receive(&mut pair.b, 8), vec![(sent, None); 8]);
}

fn a_frame_that_is_too_long_holds_nothing_up(mut pair: Pair) {
    let to = pair.b.mac();
    let oversize = |port: &mut EtherPort| port.drops().unwrap().oversize;
    for len in [2500 + 19, 9000, 100] {
        put(&mut pair.a, &frame(to, FCOE, len));
    }
    assert!(pair.a.flush().unwrap());
    assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 100), None)]);
    assert_eq!(oversize(&mut pair.a), 2);
    // That was not committed.
    pair.a.slot(2500 + 19).unwrap();
    send(&mut pair.a, &frame(to, FCOE, 101));
    assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 101), None)]);
    assert_eq!(oversize(&mut pair.a), 2);
}

fn rings() -> [AnyRing; 2] {
    [RingKind::Uring, RingKind::Epoll].map(|kind| AnyRing::open(kind).unwrap().0)
}

/// Whether the ring tells of this token within that time, and of nothing else.
#[track_caller]
fn told(ring: &mut AnyRing, token: u64, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    loop {
        match ring.next_event() {
            Some(RingEvent::Ready { token: at }) if at == Token(token) => return true,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            return false;
        };
        ring.wait(Some(left)).unwrap();
    }
}

fn a_ring_is_told_that_a_frame_is_there(mut pair: Pair) {
    let sent = frame(pair.b.mac(), FCOE, 100);
    for mut ring in rings() {
        ring.watch(pair.b.waited(), Token(7)).unwrap();
        assert!(!told(&mut ring, 7, SHORT));
        send(&mut pair.a, &sent);
        assert!(told(&mut ring, 7, LONG));
        // Once, whatever comes then.
        send(&mut pair.a, &sent);
        assert!(!told(&mut ring, 7, SHORT));
        assert_eq!(receive(&mut pair.b, 2).len(), 2);
        ring.watch(pair.b.waited(), Token(8)).unwrap();
        assert!(!told(&mut ring, 8, SHORT));
    }
}

fn the_rest_of_a_batch_is_told_of_again(mut pair: Pair) {
    let sent = frame(pair.b.mac(), FCOE, 100);
    for mut ring in rings() {
        for _ in 0..3 {
            send(&mut pair.a, &sent);
        }
        for token in 0..3 {
            ring.watch(pair.b.waited(), Token(token)).unwrap();
            assert!(told(&mut ring, token, LONG));
        }
        assert_eq!(receive(&mut pair.b, 3).len(), 3);
    }
}

fn a_port_is_of_use_while_it_is_watched(pair: Pair) {
    let Pair { a, b, _folder } = pair;
    for mut ring in rings() {
        ring.watch(b.waited(), Token(1)).unwrap();
        assert!(!told(&mut ring, 1, Duration::ZERO));
        // A ring that is dropped lets go of what it watches.
        drop(ring);
        assert_eq!(Arc::strong_count(b.waited()), 1);
    }
    drop((a, b));
}
