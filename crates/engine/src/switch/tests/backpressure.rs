//! A cable waits for the port that its frames go to, but not for ever.

use std::time::Duration;

use super::super::backlog::BACKLOG_MAX;
use super::super::backpressure::{Backpressure, BatchCount, HOLD_MAX};

const MS: Duration = Duration::from_millis(1);

/// Ports 0 and 1 are cables; frames of 0 fill the queue of 2.
fn full() -> Backpressure {
    let mut backpressure = Backpressure::new(3);
    assert!(backpressure.may_read(Duration::ZERO, 0));
    backpressure.feeds(0, 2);
    backpressure.waits(2, BACKLOG_MAX / 2);
    backpressure
}

#[test]
fn a_cable_waits_until_the_queue_is_short_again() {
    let mut backpressure = full();
    assert!(!backpressure.may_read(MS, 0));
    assert!(backpressure.is_held(0));
    backpressure.waits(2, BACKLOG_MAX / 8);
    assert!(!backpressure.may_read(2 * MS, 0), "not for each frame");
    backpressure.waits(2, 1000);
    assert!(backpressure.may_read(3 * MS, 0));
    assert!(!backpressure.is_held(0));
}

#[test]
fn a_cable_that_feeds_other_ports_is_not_held_back() {
    let mut backpressure = full();
    backpressure.feeds(1, 0);
    assert!(backpressure.may_read(MS, 1));
    assert!(!backpressure.is_held(1));
}

#[test]
fn a_port_that_does_not_read_holds_a_cable_back_once() {
    let mut backpressure = full();
    assert!(!backpressure.may_read(MS, 0));
    assert!(!backpressure.may_read(HOLD_MAX, 0));
    assert!(backpressure.may_read(HOLD_MAX + MS, 0), "its time is over");
    backpressure.feeds(0, 2);
    backpressure.waits(2, BACKLOG_MAX);
    assert!(
        backpressure.may_read(HOLD_MAX + 2 * MS, 0),
        "no second time"
    );
    backpressure.feeds(0, 2);
    backpressure.waits(2, 1000);
    backpressure.waits(2, BACKLOG_MAX);
    assert!(
        backpressure.may_read(HOLD_MAX + 3 * MS, 0),
        "it was never empty"
    );
    backpressure.feeds(0, 2);
    backpressure.waits(2, 0);
    backpressure.waits(2, BACKLOG_MAX);
    assert!(!backpressure.may_read(HOLD_MAX + 4 * MS, 0));
}

/// What is not forwarded has a 32nd of the time, in batches of any size, once it has taken 2
/// ms.
#[test]
fn a_cable_is_throttled_for_what_is_not_forwarded() {
    let batches = |others, spent: Duration| {
        let mut backpressure = Backpressure::new(1);
        let count = BatchCount {
            forwarded: 128,
            others,
        };
        let (mut now, mut worked) = (Duration::ZERO, Duration::ZERO);
        while now < 2000 * MS {
            if backpressure.may_read(now, 0) {
                now += spent;
                worked += spent;
                backpressure.was_read(now, 0, count, spent);
            } else {
                assert!(backpressure.is_held(0));
                now += MS / 4;
            }
        }
        worked.as_millis()
    };
    assert_eq!(batches(0, MS), 2000, "all of it is forwarded");
    assert_eq!(batches(128, MS), 129, "half of it is");
    assert_eq!(batches(1, MS / 32), 2000, "a host does that");
    assert_eq!(batches(1280, MS / 32), 70);
}

#[test]
fn a_cable_is_left_unread_for_100_ms_at_the_most() {
    let mut backpressure = Backpressure::new(1);
    let count = BatchCount {
        forwarded: 0,
        others: 256,
    };
    backpressure.was_read(20 * MS, 0, BatchCount { others: 1, ..count }, 50 * MS);
    assert!(!backpressure.is_held(0), "it did not run");
    backpressure.was_read(20 * MS, 0, count, 50 * MS);
    assert!(!backpressure.may_read(19 * MS + HOLD_MAX, 0));
    assert!(backpressure.may_read(20 * MS + HOLD_MAX, 0));
}
