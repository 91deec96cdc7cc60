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

/// What is not forwarded has a sixteenth of the time, whatever else comes in beside it.
#[test]
fn a_cable_is_throttled_for_what_is_not_forwarded() {
    let mut backpressure = Backpressure::new(2);
    let count = |forwarded, others| BatchCount { forwarded, others };
    backpressure.was_read(MS, 0, count(200, 32), MS);
    assert!(!backpressure.is_held(0), "it is what hosts do");
    backpressure.was_read(MS, 0, count(0, 256), MS);
    backpressure.was_read(MS, 1, count(128, 128), MS);
    assert!(backpressure.is_held(0) && backpressure.is_held(1));
    assert!(!backpressure.may_read(8 * MS, 1));
    assert!(
        backpressure.may_read(9 * MS, 1),
        "half of the time was its own"
    );
    assert!(!backpressure.may_read(15 * MS, 0));
    assert!(backpressure.may_read(16 * MS, 0));
    assert!(!backpressure.is_held(0) && !backpressure.is_held(1));
    backpressure.was_read(20 * MS, 0, count(0, 256), 50 * MS);
    assert!(backpressure.may_read(20 * MS + HOLD_MAX, 0), "not for ever");
}
