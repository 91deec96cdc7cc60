//! Logins that end, and data that was asked for and does not come.

use std::time::Duration;

use crate::initiator::{Fate as End, FcpInitiatorEvent};
use crate::port::Fc4Layer;
use crate::tests::pair::{Pair, REMOTE, all, decode, lease, lost_if, peer};

#[test]
fn nothing_is_sent_and_nothing_is_left_when_a_login_has_ended() {
    let mut pair = Pair::stopped(all());
    pair.read(1, 0, 64);
    pair.settle();
    let (tag, data) = (pair.tag(), lease(vec![1; 4096]));
    pair.target.send_data_in(REMOTE, tag, 0, data.clone());
    pair.target.peer_down(REMOTE);
    assert_eq!(pair.target.data_in_queued(REMOTE), 0);
    assert!(pair.answered().is_empty());
    pair.target.peer_up(REMOTE, peer(2, 1, all()));
    pair.target.send_data_in(REMOTE, tag, 0, data);
    pair.target.aborted(REMOTE, tag);
    let said = "what is still said of it is passed over";
    assert!(pair.answered().is_empty(), "{said}");
}

#[test]
fn commands_of_a_login_that_ends_are_unknown_or_were_never_sent() {
    let mut pair = Pair::stopped(all());
    pair.read(1, 0, 64);
    pair.settle();
    pair.read(2, 0, 64);
    pair.initiator.peer_down(REMOTE);
    pair.serve();
    let fate = |event: &_| match event {
        FcpInitiatorEvent::Failed(failed) => (failed.id, failed.fate),
        other => panic!("{other:?}"),
    };
    let fates: Vec<_> = pair.told.iter().map(fate).collect();
    assert_eq!(fates, [(1, End::Unknown), (2, End::NeverSent)]);
    assert!(pair.initiator.is_idle(REMOTE));
}

#[test]
fn a_write_whose_data_does_not_come_ends_at_the_device_server_after_r_a_tov() {
    let mut pair = Pair::with(all(), |at, to_target| lost_if(to_target && at > 0));
    pair.write(1, 0, vec![7; 4096]);
    pair.settle();
    assert!(pair.target.next_deadline().is_some());
    pair.now += Duration::from_secs(10);
    pair.target.expire(pair.now);
    pair.disk.is_stopped = true;
    pair.serve();
    pair.finish();
    assert!(!pair.traced().contains(&"< RSP 00".to_owned()));
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.target.next_deadline(), None, "it is forgotten");
    assert!(pair.disk.bytes[..512].iter().any(|byte| *byte != 7));
}

#[test]
fn what_brings_nothing_new_keeps_no_write_alive() {
    let mut pair = Pair::new(all());
    pair.write(1, 0, vec![7; 4096]);
    let sent = pair.sent();
    pair.deliver(&sent[0]);
    let asked = pair.answered();
    let ready = decode(&asked[0]);
    pair.reach_initiator(ready.header, ready.payload);
    let data = pair.sent();
    for _ in 0..4 {
        pair.now += Duration::from_secs(4);
        pair.target.expire(pair.now);
        pair.disk.is_stopped = true;
        pair.deliver(&data[0]);
    }
    let brought = "10 s after it brought something";
    assert!(pair.disk.is_aborting(), "{brought}");
}
