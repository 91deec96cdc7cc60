//! Data that was asked for and does not come.

use std::time::Duration;

use crate::exchange::tests::pair::{Fate, Pair, all, decode};
use crate::frame_sink::HeapFrames;

#[test]
fn a_write_whose_data_does_not_come_ends_at_the_device_server_after_r_a_tov() {
    let mut pair = Pair::new(all(), |at, to_target| {
        if to_target && at > 0 {
            Fate::IsLost
        } else {
            Fate::Arrives
        }
    });
    pair.write(1, 0, vec![7; 4096]);
    pair.settle();
    assert!(pair.target.next_deadline().is_some());
    pair.now += Duration::from_secs(10);
    pair.target.expire(pair.now);
    pair.is_stopped = true;
    pair.serve();
    pair.finish_aborts();
    pair.settle();
    assert!(!pair.traced().contains(&"< RSP 00".to_owned()));
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.target.next_deadline(), None, "it is forgotten");
    assert!(pair.disk[..512].iter().any(|byte| *byte != 7));
}

#[test]
fn what_brings_nothing_new_keeps_no_write_alive() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.write(1, 0, vec![7; 4096]);
    let (mut sent, mut asked) = (HeapFrames::default(), HeapFrames::default());
    pair.initiator.transmit(&mut sent);
    let command = decode(&sent.frames[0]);
    pair.reach_target(command.header, command.payload);
    pair.target.transmit(&mut asked);
    let ready = decode(&asked.frames[0]);
    pair.reach_initiator(ready.header, ready.payload);
    pair.initiator.transmit(&mut sent);
    let first = decode(&sent.frames[1]);
    for _ in 0..4 {
        pair.now += Duration::from_secs(4);
        pair.target.expire(pair.now);
        pair.is_stopped = true;
        pair.reach_target(first.header, first.payload);
    }
    assert!(pair.is_aborting(), "10 s after it brought something");
}
