//! Logins that end.

use scsi::medium::{HeapLease, Lease};

use crate::exchange::tests::pair::{Fate, Pair, REMOTE, all, peer};
use crate::initiator::{Fate as End, FcpInitiatorEvent};

#[test]
fn nothing_is_sent_and_nothing_is_left_when_a_login_has_ended() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.read(1, 0, 64);
    pair.settle();
    let data = HeapLease::from_bytes(vec![1; 4096]);
    let tag = pair.stopped[0];
    pair.target.send_data_in(REMOTE, tag, 0, data.clone());
    pair.target.peer_down(REMOTE);
    assert_eq!(
        (pair.target.queued(), pair.target.data_in_queued(REMOTE)),
        (0, 0)
    );
    pair.target.peer_up(REMOTE, peer(2, 1, all()));
    pair.target.send_data_in(REMOTE, tag, 0, data);
    pair.target.aborted(REMOTE, tag);
    assert_eq!(
        pair.target.queued(),
        0,
        "what is still said of it is passed over"
    );
}

#[test]
fn commands_of_a_login_that_ends_are_unknown_or_were_never_sent() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.read(1, 0, 64);
    pair.settle();
    pair.read(2, 0, 64);
    pair.initiator.peer_down(REMOTE);
    let fates: Vec<_> = std::iter::from_fn(|| pair.initiator.poll())
        .map(|event| match event {
            FcpInitiatorEvent::Failed(failed) => (failed.id, failed.fate),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fates, [(1, End::Unknown), (2, End::NeverSent)]);
    assert!(pair.initiator.is_idle(REMOTE));
}
