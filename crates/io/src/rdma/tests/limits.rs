//! Receives, rooms, and what a sleeping owner is woken by.

use std::os::fd::AsFd;

use pretend_verbs::Count;
use rustix::event::{PollFd, PollFlags, poll};

use super::rig::{Ends, World, asked, message, pair_options, told, write};
use crate::memory::Buffer;
use crate::rdma::{RdmaCompletion, RdmaHeader, RdmaMemory, RemoteAccess};

fn is_ready(fd: impl AsFd) -> bool {
    let now = rustix::time::Timespec::default();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[test]
fn receives_grow_with_the_window_up_to_their_bound() {
    let mut ends = Ends::new();
    assert_eq!(ends.world.count(Count::Receives), 36, "18 at each end");
    for (count, posted) in [(18, 36), (34, 52), (20, 52), (146, 164), (1000, 164)] {
        ends.target.grow_receives(count).unwrap();
        assert_eq!(ends.world.count(Count::Receives), posted);
    }
    for number in 0..300 {
        ends.initiator.post(message(format!("{number}").as_bytes()));
    }
    let mut received = Vec::new();
    while received.len() < 300 {
        ends.initiator.flush();
        told(&mut ends.initiator);
        received.extend(told(&mut ends.target));
    }
    let expected: Vec<_> = (0..300)
        .map(|number| format!("received {number}"))
        .collect();
    assert_eq!(received, expected);
    assert_eq!(ends.world.count(Count::Receives), 164, "all posted again");
}

#[test]
fn a_pair_that_is_not_polled_takes_no_more_than_its_receives() {
    let mut ends = Ends::new();
    for _ in 0..200 {
        ends.initiator.post(message(b"x"));
    }
    ends.initiator.flush();
    let sent = told(&mut ends.initiator);
    assert_eq!(sent.len(), 18);
}

#[test]
fn the_room_shrinks_with_work_and_grows_with_completions() {
    let mut ends = Ends::new();
    let room = ends.target.limits().room;
    assert_eq!(room, 256);
    for count in 1..4 {
        ends.target.post(message(b"x"));
        assert_eq!(ends.target.limits().room, room - count);
    }
    ends.target.flush();
    assert_eq!(ends.target.limits().room, room - 3, "not told yet");
    told(&mut ends.target);
    assert_eq!(ends.target.limits().room, room);
}

#[test]
fn who_sleeps_is_woken() {
    let mut ends = Ends::new();
    ends.target.wake();
    assert!(!ends.target.arm(), "nothing came in before");
    assert!(!is_ready(ends.target.descriptor()));
    ends.initiator.post(message(b"wake up"));
    ends.initiator.flush();
    assert!(is_ready(ends.target.descriptor()));
    ends.target.wake();
    assert_eq!(told(&mut ends.target), ["received wake up"]);
    assert!(!is_ready(ends.target.descriptor()));
}

#[test]
fn what_comes_before_the_queue_is_armed_is_seen() {
    let mut ends = Ends::new();
    assert!(ends.target.poll().is_none());
    ends.initiator.post(message(b"in between"));
    ends.initiator.flush();
    assert!(ends.target.arm(), "there is more to poll");
    assert_eq!(told(&mut ends.target), ["received in between"]);
}

#[test]
fn who_leaves_wakes_the_other() {
    let mut ends = Ends::new();
    ends.target.wake();
    assert!(!ends.target.arm());
    ends.initiator.end();
    assert!(is_ready(ends.target.descriptor()));
    ends.target.wake();
    assert_eq!(told(&mut ends.target), ["ended: the peer disconnected"]);
}

#[test]
fn a_header_has_160_bytes_at_most() {
    assert!(RdmaHeader::new(&[0; 160]).is_some());
    assert!(RdmaHeader::new(&[0; 161]).is_none());
    assert!(RdmaHeader::new(&[0; 70_000]).is_none());
}

#[test]
fn memory_of_messages_is_used_again() {
    let mut ends = Ends::new();
    let mut places = std::collections::HashSet::new();
    for _ in 0..100 {
        ends.initiator.post(message(&[7; 128]));
        ends.initiator.flush();
        told(&mut ends.initiator);
        let Some(RdmaCompletion::Received { bytes, .. }) = ends.target.poll() else {
            panic!("a message");
        };
        places.insert(bytes.as_ptr() as usize);
        ends.target.recycle(bytes);
    }
    assert_eq!(places.len(), 1);
}

#[test]
fn a_hundred_thousand_operations() {
    let mut ends = Ends::new();
    let sink = Buffer::from_vec(vec![0; 4096]);
    let place = ends
        .initiator
        .advertise(&sink, RemoteAccess::Write)
        .unwrap();
    let data = ends.filled(&[9; 4096]);
    let pinned = ends.world.count(Count::Pinned);
    let mut left = 50_000;
    while left > 0 {
        for _ in 0..8 {
            ends.target.post(write(place, data.clone()));
            ends.target.post(message(b"good"));
        }
        ends.target.flush();
        for _ in 0..8 {
            let Some(RdmaCompletion::Received { bytes, .. }) = ends.initiator.poll() else {
                panic!("a message");
            };
            ends.initiator.recycle(bytes);
        }
        while ends.target.poll().is_some() {}
        ends.initiator.flush();
        left -= 8;
    }
    let part = 2 << 20;
    assert_eq!(
        ends.world.count(Count::Pinned) - pinned,
        part,
        "of the pool"
    );
    let calls = ends.world.count(Count::SendCalls);
    assert_eq!(ends.world.count(Count::Requests), 16 * calls);
}

#[test]
fn a_message_longer_than_a_receive_ends_both() {
    let world = World::new();
    let mut listener = world.listener();
    let mut connector = world.connector(listener.portal());
    assert!(connector.poll().is_none());
    let memory = RdmaMemory::new();
    let mut options = pair_options();
    options.max_receive = 100;
    let target = asked(&mut listener).accept(&memory, &options, &[]);
    let (mut target, mut initiator) = (target.unwrap(), connector.poll().unwrap().unwrap().pair);
    for len in [100, 101] {
        initiator.post(message(&vec![b'x'; len]));
    }
    initiator.flush();
    let told_target = told(&mut target);
    assert_eq!(told_target.len(), 2);
    let words = "the peer sent a message longer than what was agreed";
    assert!(told_target[1].contains(words), "{told_target:?}");
    let last = told(&mut initiator).pop().unwrap();
    assert!(last.contains("IBV_WC_REM_INV_REQ_ERR"), "{last}");
}
