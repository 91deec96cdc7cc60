//! A command that comes twice.

use crate::exchange::tests::pair::{Fate, Pair, all, decode, peer, plain};
use crate::frame_sink::HeapFrames;
use crate::remote::Fcp;

/// Sends a command without data, lets it end, and sends the very same frame again.
fn executed_twice(fcp: Fcp) -> Pair {
    let mut pair = Pair::new(fcp, |_, _| Fate::Arrives);
    pair.test(1);
    let mut out = HeapFrames::default();
    pair.initiator.transmit(&mut out);
    for _ in 0..2 {
        let frame = decode(&out.frames[0]);
        pair.reach_target(frame.header, frame.payload);
        pair.settle();
    }
    pair
}

#[test]
fn a_second_copy_is_known_by_its_task_retry_identifier() {
    assert_eq!(executed_twice(all()).executed, 1);
}

#[test]
fn without_one_an_ox_id_may_begin_another_command_as_soon_as_the_last_has_ended() {
    assert_eq!(executed_twice(plain()).executed, 2);
}

#[test]
fn a_second_copy_of_a_command_under_way_is_always_known() {
    let mut pair = Pair::new(plain(), |_, to_target| {
        if to_target {
            Fate::ComesTwice
        } else {
            Fate::Arrives
        }
    });
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    assert_eq!(pair.executed, 1);
}

#[test]
fn an_ox_id_is_that_of_its_port() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    let other = crate::remote::RemoteId(9);
    pair.target.peer_up(other, peer(2, 5, all()));
    pair.test(1);
    let mut out = HeapFrames::default();
    pair.initiator.transmit(&mut out);
    let frame = decode(&out.frames[0]);
    pair.reach_target(frame.header, frame.payload);
    pair.target.receive(pair.now, other, &frame);
    assert!(pair.target.has_events());
}
