//! How pairs end, and what becomes of what they had.

use pretend_verbs::{Count, Order};

use super::rig::{Ends, bytes_of, end_of, message, pattern, read, told, write};
use crate::memory::Buffer;
use crate::rdma::sys::verbs::{
    IBV_EVENT_PORT_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR,
    IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR,
};
use crate::rdma::{RdmaDeviceEvent, RdmaDeviceEvents, RdmaEnd, RemoteAccess, RemoteAddress};

#[test]
fn what_came_before_the_peer_left_is_told() {
    let mut ends = Ends::new();
    ends.initiator.post(message(b"bye"));
    ends.initiator.flush();
    ends.initiator.end();
    assert_eq!(told(&mut ends.initiator), ["ended: this end asked for it"]);
    ends.target.wake();
    let expected = ["received bye", "ended: the peer disconnected"];
    assert_eq!(told(&mut ends.target), expected);
    assert_eq!(ends.target.limits().room, 0);
    // Whatever is asked for now changes nothing.
    ends.target.post(message(b"late"));
    ends.target.flush();
    ends.target.wake();
    ends.target.end();
    assert!(!ends.target.arm() && ends.target.poll().is_none());
}

#[test]
fn each_failed_completion_has_its_words() {
    let rows = [
        (
            IBV_WC_LOC_PROT_ERR,
            "does not know memory that was registered",
        ),
        (IBV_WC_WR_FLUSH_ERR, "the connection is gone"),
        (
            IBV_WC_REM_ACCESS_ERR,
            "the peer does not let its memory be reached",
        ),
        (
            IBV_WC_RETRY_EXC_ERR,
            "the peer acknowledges nothing any more",
        ),
        (
            IBV_WC_RNR_RETRY_EXC_ERR,
            "the peer has no receive for a message",
        ),
        (77, "the RDMA device gave up an operation"),
    ];
    for (status, words) in rows {
        let mut ends = Ends::new();
        ends.world.order(Order::FailStatus, i64::from(status));
        ends.world.order(Order::FailAfter, 1);
        for text in ["good", "bad", "flushed"] {
            ends.target.post(message(text.as_bytes()));
        }
        ends.target.flush();
        let told = told(&mut ends.target);
        assert_eq!(told[0], "sent");
        assert!(told[1].contains(words), "{told:?}");
        assert_eq!(told.len(), 2);
        // The other end sees that its receives are flushed.
        let gone = end_of(&mut ends.initiator).to_string();
        assert!(gone.contains("IBV_WC_WR_FLUSH_ERR") || gone.contains("disconnected"));
    }
}

#[test]
fn a_flush_after_the_peer_left_is_the_peers_doing() {
    let mut ends = Ends::new();
    ends.initiator.end();
    ends.target.post(message(b"nobody hears"));
    ends.target.flush();
    assert_eq!(end_of(&mut ends.target).to_string(), {
        "the peer acknowledges nothing any more (IBV_WC_RETRY_EXC_ERR)"
    });
}

#[test]
fn a_message_without_a_receive_waits_or_fails() {
    let mut ends = Ends::new();
    for _ in 0..19 {
        ends.target.post(message(b"x"));
    }
    ends.target.flush();
    assert_eq!(told(&mut ends.target).len(), 18, "one waits for a receive");
    let received = told(&mut ends.initiator);
    assert_eq!(received.len(), 19, "which comes as others are taken");
    let mut ends = Ends::new();
    ends.world.order(Order::RnrFails, 1);
    for _ in 0..19 {
        ends.target.post(message(b"x"));
    }
    ends.target.flush();
    let last = told(&mut ends.target).pop().unwrap();
    assert!(
        last.contains("the peer has no receive for a message"),
        "{last}"
    );
}

#[test]
fn keys_are_checked_by_the_device_of_the_other_end() {
    let wrong = |place: RemoteAddress| {
        let other = |key, address| RemoteAddress { key, address };
        [
            other(place.key + 1, place.address),
            other(place.key, place.address - 1),
            other(place.key, place.address + (16 << 10) - 4095),
            other(place.key, u64::MAX - 100),
        ]
    };
    for row in 0..4 {
        for access in [RemoteAccess::Read, RemoteAccess::Write] {
            let mut ends = Ends::new();
            let buffer = Buffer::from_vec(vec![7; 16 << 10]);
            let place = ends.initiator.advertise(&buffer, access).unwrap();
            let wrong = wrong(place)[row];
            let ours = Buffer::from_vec(vec![1; 4096]);
            ends.target.post(match access {
                RemoteAccess::Read => read(1, wrong, ours.clone()),
                RemoteAccess::Write => write(wrong, ours.clone()),
            });
            ends.target.flush();
            let end = end_of(&mut ends.target).to_string();
            assert!(
                end.contains("IBV_WC_REM_ACCESS_ERR"),
                "{row}, {access:?}: {end}"
            );
            assert_eq!(bytes_of(&ours), [1; 4096], "nothing came");
        }
    }
}

#[test]
fn a_key_reaches_in_one_direction() {
    for access in [RemoteAccess::Read, RemoteAccess::Write] {
        let mut ends = Ends::new();
        let buffer = Buffer::from_vec(vec![7; 512]);
        let place = ends.initiator.advertise(&buffer, access).unwrap();
        let ours = Buffer::from_vec(vec![1; 512]);
        ends.target.post(match access {
            RemoteAccess::Write => read(1, place, ours),
            RemoteAccess::Read => write(place, ours),
        });
        ends.target.flush();
        let end = end_of(&mut ends.target).to_string();
        assert!(end.contains("IBV_WC_REM_ACCESS_ERR"), "{end}");
    }
}

#[test]
fn a_device_that_is_taken_away_ends_its_pairs() {
    let mut ends = Ends::new();
    let mut events = RdmaDeviceEvents::new(ends.target.domain()).unwrap();
    ends.world.order(Order::Remove, 0);
    for pair in [&mut ends.target, &mut ends.initiator] {
        let end = end_of(pair).to_string();
        assert_eq!(
            end,
            "the RDMA device was taken away (RDMA_CM_EVENT_DEVICE_REMOVAL)"
        );
    }
    assert_eq!(events.poll(), Some(RdmaDeviceEvent::Broken));
    assert_eq!(events.poll(), None);
}

#[test]
fn work_for_a_device_that_is_gone_is_refused() {
    let mut ends = Ends::new();
    ends.world.order(Order::Remove, 0);
    ends.target.post(message(b"x"));
    ends.target.flush();
    let end = end_of(&mut ends.target).to_string();
    assert_eq!(end, "the RDMA device takes no more work (ibv_post_send)");
}

#[test]
fn what_a_port_tells_is_for_the_log() {
    let ends = Ends::new();
    let mut events = RdmaDeviceEvents::new(ends.target.domain()).unwrap();
    ends.world
        .order(Order::AsyncEvent, i64::from(IBV_EVENT_PORT_ERR));
    ends.world.order(Order::AsyncEvent, 17);
    assert_eq!(events.poll(), Some(RdmaDeviceEvent::PortDown));
    assert_eq!(events.poll(), Some(RdmaDeviceEvent::Other(17)));
    assert_eq!(events.poll(), None);
}

#[test]
fn a_read_that_the_device_knows_keeps_its_memory_until_it_is_complete() {
    let mut ends = Ends::new();
    let source = Buffer::from_vec(pattern(4096));
    let place = ends
        .initiator
        .advertise(&source, RemoteAccess::Read)
        .unwrap();
    ends.world.order(Order::Hold, 1);
    let copied = Buffer::from_vec(vec![1; 4096]);
    let direct = ends.filled(&[1; 4096]);
    ends.target.post(read(1, place, copied.clone()));
    ends.target.post(read(2, place, direct));
    ends.target.flush();
    assert!(ends.target.cancel(1).is_none() && ends.target.cancel(2).is_none());
    assert_eq!(told(&mut ends.target), Vec::<String>::new());
    ends.world.order(Order::Hold, 0);
    assert_eq!(
        told(&mut ends.target),
        ["got 1, 4096 bytes", "got 2, 4096 bytes"]
    );
    assert_eq!(bytes_of(&copied), [1; 4096], "it was not wanted");
}

#[test]
fn a_read_that_the_device_does_not_know_is_given_back() {
    let mut ends = Ends::new();
    let place = RemoteAddress { key: 1, address: 0 };
    ends.target
        .post(read(5, place, Buffer::from_vec(vec![0; 512])));
    assert_eq!(ends.target.cancel(5).unwrap().len(), 512);
    assert!(ends.target.cancel(5).is_none());
    ends.target.flush();
    assert_eq!(told(&mut ends.target), ["drained 5"]);
}

#[test]
fn a_read_that_is_partly_known_ends_with_that_part() {
    let mut ends = Ends::new();
    let source = Buffer::from_vec(pattern(8 << 20));
    let place = ends
        .initiator
        .advertise(&source, RemoteAccess::Read)
        .unwrap();
    ends.world.order(Order::Hold, 1);
    // Twice as much as there are pieces for. Of the third, one piece of the pair's own is known.
    let into = Buffer::from_vec(vec![0; 8 << 20]);
    for id in 0..4 {
        ends.target.post(read(id, place, into.clone()));
    }
    ends.target.flush();
    for id in 0..3 {
        assert!(ends.target.cancel(id).is_none(), "{id}");
    }
    assert_eq!(ends.target.cancel(3).unwrap().len(), 8 << 20);
    ends.world.order(Order::Hold, 0);
    let got = (0..3).map(|id| format!("got {id}, 8388608 bytes"));
    let expected: Vec<_> = std::iter::once("drained 3".to_owned()).chain(got).collect();
    assert_eq!(told(&mut ends.target), expected);
    assert_eq!(told(&mut ends.target), Vec::<String>::new());
}

#[test]
fn a_pair_that_is_dropped_with_work_gives_all_back() {
    let mut ends = Ends::new();
    ends.world.order(Order::Hold, 1);
    let place = RemoteAddress { key: 1, address: 0 };
    let held = ends.filled(&[1; 4096]);
    ends.target.post(read(1, place, held));
    ends.target
        .post(write(place, Buffer::from_vec(vec![0; 100_000])));
    ends.target.flush();
    assert_eq!(ends.pool.in_use(), 4096);
    ends.target.end();
    assert_eq!(ends.pool.in_use(), 0);
    assert_eq!(
        told(&mut ends.target),
        [format!("ended: {}", RdmaEnd::Requested)]
    );
    assert_eq!(
        ends.world.count(Count::Receives),
        18,
        "those of the other end"
    );
}
