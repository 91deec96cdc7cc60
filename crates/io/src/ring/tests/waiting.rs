//! How `wait` waits.

use super::*;

super::on_every_ring! {
    a_timeout_ends_the_wait_and_nothing_else_does
    a_zero_timeout_does_not_wait
    another_thread_wakes_it
    a_wake_before_the_wait_is_not_lost
    many_wakes_are_one_event
    a_wake_is_seen_by_a_ring_that_spins
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
    for _ in 0..20 {
        let waker = ring.waker();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            waker.wake();
        });
        ring.wait(None).unwrap();
        assert!(matches!(next(ring), Seen::Woken));
        thread.join().unwrap();
    }
    quiet(ring);
}

fn a_wake_before_the_wait_is_not_lost(ring: &mut AnyRing) {
    ring.waker().wake();
    ring.wait(None).unwrap();
    assert!(matches!(ring.next_event(), Some(Event::Woken)));
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
