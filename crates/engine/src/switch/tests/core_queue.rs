//! Queues from one core to another: in order, bounded, and taken whole.

use std::time::Duration;

use super::super::backlog::Backlog;
use super::super::backpressure::{Backpressure, HOLD_MAX};
use super::super::core_queue::CoreQueue;
use super::super::mail::LateMail;

const MS: Duration = Duration::from_millis(1);

fn push(queue: &CoreQueue<u8>, number: u8, len: usize) -> bool {
    queue.push(len, number, |room| room.fill(number))
}

#[test]
fn frames_are_taken_all_at_once_in_their_order() {
    let queue = CoreQueue::new(1000);
    let mut taken = Backlog::new(1000);
    for round in 0..3 {
        assert_eq!(queue.used(), 0);
        for number in 0..4 {
            assert!(push(&queue, number, 200));
        }
        // What is known of each counts, too.
        assert!(queue.used() > 800);
        queue.take(&mut taken);
        for number in 0..4 {
            assert_eq!(
                taken.front(),
                Some((&number, &[number; 200][..])),
                "{round}"
            );
            taken.pop();
        }
        assert!(taken.is_empty());
    }
}

#[test]
fn a_queue_that_is_full_takes_no_more_until_it_is_taken() {
    let queue = CoreQueue::new(500);
    assert!(push(&queue, 1, 300) && !push(&queue, 2, 300));
    // A change of a link has no bytes, and always fits.
    assert!(push(&queue, 3, 0));
    let mut taken = Backlog::new(500);
    queue.take(&mut taken);
    assert_eq!((taken.len(), queue.used()), (2, 0));
    assert!(push(&queue, 2, 300));
}

/// Whatever it is, as logins would be lost.
#[test]
fn a_port_whose_mail_is_full_is_held() {
    let mut backpressure = Backpressure::new(2);
    assert!(backpressure.is_unmailed(1, true) && backpressure.is_held(1));
    assert!(!backpressure.is_unmailed(1, true), "it is no news");
    assert!(!backpressure.is_held(0));
    assert!(backpressure.is_unmailed(1, false) && !backpressure.is_held(1));
}

/// Keep alives may wait in the mailbox or behind it.
#[test]
fn nothing_is_late_while_mail_waits_but_not_for_ever() {
    let mut late = LateMail::default();
    assert!(!late.may_wait(MS, false));
    assert!(late.may_wait(2 * MS, true) && late.is_any_unread());
    assert!(late.may_wait(MS + HOLD_MAX, true));
    assert!(!late.may_wait(2 * MS + HOLD_MAX, true), "a flood");
    assert!(!late.may_wait(3 * MS + HOLD_MAX, false));
    assert!(late.may_wait(4 * MS + HOLD_MAX, true));
}
