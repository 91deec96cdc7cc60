//! No more data is asked for than fits where it is received.

use crate::exchange::tests::pair::{Fate, Pair, REMOTE, all, peer};
use crate::initiator::{Config, Initiator};
use crate::target::{Limits, Target};

/// Octets of each command.
const LEN: usize = 8 << 10;

/// A pair that asks for two commands' worth of data at once.
fn narrow() -> Pair {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    let window = 2 * LEN as u64;
    pair.initiator = Initiator::new(Config {
        window,
        ..Config::default()
    });
    pair.target = Target::new(Limits {
        window,
        ..Limits::default()
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
    assert!(pair.disk[8 * LEN..9 * LEN].iter().all(|octet| *octet == 8));
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
