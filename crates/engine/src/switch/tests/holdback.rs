//! A cable waits for the port that its frames go to, but not for ever.

use std::sync::Arc;
use std::time::Duration;

use super::super::backlog::BACKLOG_MAX;
use super::super::holdback::{BatchCount, Holdback, PATIENCE};

const MS: Duration = Duration::from_millis(1);

/// Ports 0 and 1 are cables; frames of 0 fill the queue of 2.
fn full() -> Holdback {
    let mut holdback = Holdback::new(3, Arc::default());
    assert!(holdback.may_read(Duration::ZERO, 0));
    holdback.feeds(0, 2);
    holdback.waits(2, BACKLOG_MAX / 2);
    holdback
}

#[test]
fn a_cable_waits_until_the_queue_is_short_again() {
    let mut holdback = full();
    assert!(!holdback.may_read(MS, 0));
    assert!(holdback.is_held(0));
    holdback.waits(2, BACKLOG_MAX / 8);
    assert!(!holdback.may_read(2 * MS, 0), "not for each frame");
    holdback.waits(2, 1000);
    assert!(holdback.may_read(3 * MS, 0));
    assert!(!holdback.is_held(0));
}

#[test]
fn who_sends_elsewhere_is_not_held_back() {
    let mut holdback = full();
    holdback.feeds(1, 0);
    assert!(holdback.may_read(MS, 1));
    assert!(!holdback.is_held(1));
}

#[test]
fn a_port_that_does_not_read_holds_nobody_back_twice() {
    let mut holdback = full();
    assert!(!holdback.may_read(MS, 0));
    assert!(!holdback.may_read(PATIENCE, 0));
    assert!(holdback.may_read(PATIENCE + MS, 0), "its time is over");
    holdback.feeds(0, 2);
    holdback.waits(2, BACKLOG_MAX);
    assert!(holdback.may_read(PATIENCE + 2 * MS, 0), "no second time");
    holdback.feeds(0, 2);
    holdback.waits(2, 1000);
    holdback.waits(2, BACKLOG_MAX);
    assert!(
        holdback.may_read(PATIENCE + 3 * MS, 0),
        "it was never empty"
    );
    holdback.feeds(0, 2);
    holdback.waits(2, 0);
    holdback.waits(2, BACKLOG_MAX);
    assert!(!holdback.may_read(PATIENCE + 4 * MS, 0));
}

/// What is not forwarded has a sixteenth of the time, whatever else comes in beside it.
#[test]
fn a_cable_rests_from_what_is_not_forwarded() {
    let mut holdback = Holdback::new(2, Arc::default());
    let count = |forwarded, others| BatchCount { forwarded, others };
    holdback.was_read(MS, 0, count(200, 32), MS);
    assert!(!holdback.is_held(0), "it is what hosts do");
    holdback.was_read(MS, 0, count(0, 256), MS);
    holdback.was_read(MS, 1, count(128, 128), MS);
    assert!(holdback.is_held(0) && holdback.is_held(1));
    assert!(!holdback.may_read(8 * MS, 1));
    assert!(holdback.may_read(9 * MS, 1), "half of the time was its own");
    assert!(!holdback.may_read(15 * MS, 0));
    assert!(holdback.may_read(16 * MS, 0));
    assert!(!holdback.is_held(0) && !holdback.is_held(1));
    holdback.was_read(20 * MS, 0, count(0, 256), 50 * MS);
    assert!(holdback.may_read(20 * MS + PATIENCE, 0), "not for ever");
}
