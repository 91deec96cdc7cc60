//! No more data is asked for than fits where it is received.

use scsi::medium::{HeapLease, Lease};

use crate::exchange::tests::pair::{Fate, Pair, REMOTE, all, decode, peer, plain};
use crate::frame_sink::HeapFrames;
use crate::initiator::{FcpInitiator, FcpInitiatorConfig};
use crate::remote::RemoteId;
use crate::target::{FcpLimits, FcpTarget, FcpTargetEvent};
use crate::wire::names::FcId;

/// Bytes of each command.
const LEN: usize = 8 << 10;

/// A pair that asks for two commands' worth of data at once.
fn narrow() -> Pair {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    let window = 2 * LEN as u64;
    pair.initiator = FcpInitiator::new(FcpInitiatorConfig {
        window,
        ..FcpInitiatorConfig::default()
    });
    pair.target = FcpTarget::new(FcpLimits {
        window,
        ..FcpLimits::default()
    });
    pair.initiator.peer_up(REMOTE, peer(1, 2, all()));
    pair.target.peer_up(REMOTE, peer(2, 1, all()));
    pair
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
    assert!(pair.disk[8 * LEN..9 * LEN].iter().all(|byte| *byte == 8));
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
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.target = FcpTarget::new(FcpLimits {
        window: LEN as u64,
        ..FcpLimits::default()
    });
    let other = RemoteId(9);
    pair.target.peer_up(REMOTE, peer(2, 1, all()));
    pair.target.peer_up(other, peer(2, 5, all()));
    for id in 0..4 {
        pair.write(id, 0, vec![1; LEN]);
    }
    let mut out = HeapFrames::default();
    pair.initiator.transmit(&mut out);
    for frame in &out.frames {
        let frame = decode(frame);
        pair.reach_target(frame.header, frame.payload);
    }
    let mut asked = HeapFrames::default();
    pair.target.transmit(&mut asked);
    assert_eq!(asked.frames.len(), 1, "its first write fills the window");
    let command = decode(&out.frames[0]);
    pair.target.receive(pair.now, other, &command);
    let Some(FcpTargetEvent::Execute { remote, command }) = pair.target.poll() else {
        panic!("no command");
    };
    let into = HeapLease::from_bytes(vec![0; LEN]);
    pair.target.receive_data_out(remote, command.tag, 0, into);
    pair.target.transmit(&mut asked);
    assert_eq!(asked.frames.len(), 2);
    assert_eq!(decode(&asked.frames[1]).header.d_id, FcId(5));
}

#[test]
fn what_has_come_is_expected_no_longer() {
    let frame = u64::from(peer(1, 2, plain()).payload_max);
    let left = LEN as u64 - 2 * frame;
    // The command of a write and two frames of its data come; of a read two frames of data.
    let lost = |at: usize, to_target: bool| {
        if at < 2 + usize::from(to_target) {
            Fate::Arrives
        } else {
            Fate::IsLost
        }
    };
    let mut pair = Pair::new(plain(), lost);
    pair.write(1, 0, vec![7; LEN]);
    pair.settle();
    assert_eq!(
        (pair.initiator.expected(), pair.target.expected()),
        (0, left)
    );
    pair.target.peer_down(REMOTE);
    assert_eq!(pair.target.expected(), 0);

    let mut pair = Pair::new(plain(), lost);
    pair.read(1, 100, 16);
    pair.settle();
    assert_eq!(
        (pair.initiator.expected(), pair.target.expected()),
        (left, 0)
    );
    pair.initiator.peer_down(REMOTE);
    assert_eq!(pair.initiator.expected(), 0);
}

#[test]
fn nothing_is_expected_when_all_is_done() {
    // Every fifth frame is lost, and comes with what is asked for again.
    let mut pair = Pair::new(all(), |at, _| match at % 5 {
        4 => Fate::IsLost,
        _ => Fate::Arrives,
    });
    for id in 0..4 {
        pair.write(id, 16 * id as u32, vec![id as u8; LEN]);
        pair.read(4 + id, 100, 16);
    }
    pair.until_told(8);
    assert_eq!((pair.initiator.expected(), pair.target.expected()), (0, 0));
}
