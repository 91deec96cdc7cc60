//! No more data is asked for than fits where it is received.

use crate::initiator::FcpInitiatorConfig;
use crate::port::Fc4Layer;
use crate::remote::RemoteId;
use crate::target::{FcpLimits, FcpTargetEvent};
use crate::tests::pair::{Pair, REMOTE, all, decode, lease, lost_if, peer, plain};
use crate::wire::names::FcId;

/// Bytes of each command.
const LEN: usize = 8 << 10;

/// A pair that asks for two commands' worth of data at once.
fn narrow() -> Pair {
    let window = 2 * LEN as u64;
    let config = FcpInitiatorConfig {
        window,
        ..FcpInitiatorConfig::default()
    };
    Pair::limited(all(), config, limits(window))
}

fn limits(window: u64) -> FcpLimits {
    FcpLimits {
        window,
        ..FcpLimits::default()
    }
}

fn count(trace: &[String], what: &str) -> usize {
    trace.iter().filter(|line| line.starts_with(what)).count()
}

/// How often more than two were open between what opens and what closes one.
fn most_open(trace: &[String], opens: &str, closes: &str) -> usize {
    let open = |end: usize| {
        let before = &trace[..end];
        count(before, opens).saturating_sub(count(before, closes))
    };
    (0..=trace.len()).map(open).max().unwrap_or(0)
}

#[test]
fn writes_are_asked_for_as_far_as_there_is_room() {
    let mut pair = narrow();
    for id in 0..9 {
        pair.write(id, 16 * id as u32, vec![id as u8; LEN]);
    }
    pair.until_told(9);
    let trace = pair.traced();
    assert_eq!(count(&trace, "< XFER_RDY"), 9);
    assert_eq!(most_open(&trace, "< XFER_RDY", "> DATA 6336"), 2);
    assert!(
        pair.disk.bytes[8 * LEN..9 * LEN]
            .iter()
            .all(|byte| *byte == 8)
    );
}

#[test]
fn reads_are_asked_for_as_far_as_there_is_room() {
    let mut pair = narrow();
    for id in 0..9 {
        pair.read(id, 16 * id as u32, 16);
    }
    pair.until_told(9);
    let trace = pair.traced();
    assert_eq!(count(&trace, "> CMND"), 9);
    assert_eq!(most_open(&trace, "> CMND", "< RSP"), 2);
}

#[test]
fn what_is_longer_than_the_window_goes_alone() {
    let mut pair = narrow();
    pair.read(1, 0, 64);
    pair.write(2, 100, vec![9; 4 * LEN]);
    pair.read(3, 0, 64);
    pair.until_told(3);
}

#[test]
fn an_initiator_that_sends_no_data_keeps_nobody_else_waiting() {
    let mut pair = Pair::limited(all(), FcpInitiatorConfig::default(), limits(LEN as u64));
    let other = RemoteId(9);
    pair.target.peer_up(other, peer(2, 5, all()));
    for id in 0..4 {
        pair.write(id, 0, vec![1; LEN]);
    }
    let sent = pair.sent();
    sent.iter().for_each(|frame| pair.deliver(frame));
    let asked = pair.answered();
    assert_eq!(asked.len(), 1, "its first write fills the window");
    pair.target.receive(pair.now, other, &decode(&sent[0]));
    let Some(FcpTargetEvent::Execute { remote, command }) = pair.target.poll() else {
        panic!("no command");
    };
    let into = lease(vec![0; LEN]);
    pair.target.receive_data_out(remote, command.tag, 0, into);
    let asked = pair.answered();
    assert_eq!(asked.len(), 1);
    assert_eq!(decode(&asked[0]).header.d_id, FcId(5));
}

/// Bytes that the initiator and the target expect.
fn expected(pair: &Pair) -> (u64, u64) {
    (pair.initiator.expected(), pair.target.expected())
}

#[test]
fn what_has_come_is_expected_no_longer() {
    let frame = u64::from(peer(1, 2, plain()).payload_max);
    let left = LEN as u64 - 2 * frame;
    // The command of a write and two frames of its data come; of a read two frames of data.
    let lost = |at: usize, to_target: bool| lost_if(at >= 2 + usize::from(to_target));
    let mut pair = Pair::with(plain(), lost);
    pair.write(1, 0, vec![7; LEN]);
    pair.settle();
    assert_eq!(expected(&pair), (0, left));
    pair.target.peer_down(REMOTE);
    assert_eq!(pair.target.expected(), 0);

    let mut pair = Pair::with(plain(), lost);
    pair.read(1, 100, 16);
    pair.settle();
    assert_eq!(expected(&pair), (left, 0));
    pair.initiator.peer_down(REMOTE);
    assert_eq!(pair.initiator.expected(), 0);
}

#[test]
fn nothing_is_expected_when_all_is_done() {
    // Every fifth frame is lost, and comes with what is asked for again.
    let mut pair = Pair::with(all(), |at, _| lost_if(at % 5 == 4));
    for id in 0..4 {
        pair.write(id, 16 * id as u32, vec![id as u8; LEN]);
        pair.read(4 + id, 100, 16);
    }
    pair.until_told(8);
    assert_eq!(expected(&pair), (0, 0));
}
