//! How `wait` waits.

use std::io::Write;
use std::sync::Arc;

use super::*;

super::on_every_ring! {
    a_timeout_ends_the_wait_and_nothing_else_does
    a_zero_timeout_does_not_wait
    another_thread_wakes_it
    a_wake_before_the_wait_is_not_lost
    many_wakes_are_one_event
    a_wake_is_seen_by_a_ring_that_spins
    a_descriptor_is_watched_once
    what_is_wrong_with_a_descriptor_makes_it_ready
    many_descriptors_are_watched
    a_pause_ends_once
}

fn a_timeout_ends_the_wait_and_nothing_else_does(ring: &mut AnyRing) {
    let start = Instant::now();
    let mut waits = 0;
    while start.elapsed() < Duration::from_millis(100) {
        ring.wait(Some(Duration::from_millis(20))).unwrap();
        assert!(ring.next_event().is_none());
        waits += 1;
    }
    assert!(waits <= 5, "{waits} waits of 20 ms in 100 ms");
}

fn a_zero_timeout_does_not_wait(ring: &mut AnyRing) {
    // With nothing to wait for, a wait would never end.
    for _ in 0..1000 {
        ring.wait(Some(Duration::ZERO)).unwrap();
        assert!(ring.next_event().is_none());
    }
}

fn another_thread_wakes_it(ring: &mut AnyRing) {
    woken_by_a_thread(ring);
}

fn a_wake_before_the_wait_is_not_lost(ring: &mut AnyRing) {
    ring.waker().wake();
    ring.wait(None).unwrap();
    assert!(matches!(ring.next_event(), Some(RingEvent::Woken)));
}

fn many_wakes_are_one_event(ring: &mut AnyRing) {
    let waker = ring.waker();
    (0..1000).for_each(|_| waker.wake());
    assert!(matches!(next(ring), Seen::Woken));
    quiet(ring);
}

fn a_wake_is_seen_by_a_ring_that_spins(ring: &mut AnyRing) {
    let waker = ring.waker();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(2));
        waker.wake();
    });
    while ring.next_event().is_none() {
        ring.wait(Some(Duration::ZERO)).unwrap();
    }
    thread.join().unwrap();
}

fn a_descriptor_is_watched_once(ring: &mut AnyRing) {
    let (ours, mut theirs) = tcp_pair();
    let ours = Arc::new(OwnedFd::from(ours));
    ring.watch(&ours, Token(1)).unwrap();
    quiet(ring);
    theirs.write_all(b"!").unwrap();
    assert!(matches!(next(ring), Seen::Ready(Token(1))));
    quiet(ring);
    // Nobody has read: it is ready still.
    ring.watch(&ours, Token(2)).unwrap();
    assert!(matches!(next(ring), Seen::Ready(Token(2))));
}

fn what_is_wrong_with_a_descriptor_makes_it_ready(ring: &mut AnyRing) {
    let (ours, theirs) = tcp_pair();
    let ours = Arc::new(OwnedFd::from(ours));
    ring.watch(&ours, Token(1)).unwrap();
    quiet(ring);
    drop(theirs);
    assert!(matches!(next(ring), Seen::Ready(Token(1))));
}

fn many_descriptors_are_watched(ring: &mut AnyRing) {
    let (watched, mut far): (Vec<_>, Vec<_>) = (0..8)
        .map(|_| tcp_pair())
        .map(|(ours, theirs)| (Arc::new(OwnedFd::from(ours)), theirs))
        .unzip();
    for (token, fd) in watched.iter().enumerate() {
        ring.watch(fd, Token(token as u64)).unwrap();
    }
    for token in [5, 2, 7] {
        far[token].write_all(b"!").unwrap();
        assert!(matches!(next(ring), Seen::Ready(Token(at)) if at == token as u64));
    }
    quiet(ring);
}

fn a_pause_ends_once(ring: &mut AnyRing) {
    let (ours, mut theirs) = tcp_pair();
    let ours = Arc::new(OwnedFd::from(ours));
    theirs.write_all(b"!").unwrap();
    for token in 0..3 {
        ring.watch_later(&ours, Token(token)).unwrap();
        assert!(ring.pauses());
        assert!(matches!(next(ring), Seen::Ready(Token(at)) if at == token));
        assert!(!ring.pauses());
    }
    quiet(ring);
}
