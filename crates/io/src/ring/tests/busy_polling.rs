//! A ring that has the kernel poll network cards before it sleeps. Over loopback there are none,
//! and all else is as without.

use std::io::{Read, Write};

use super::*;

super::on_every_ring! {
    bytes_go_both_ways
    another_thread_wakes_it
    a_timeout_ends_the_wait
}

/// Longer than all that these stories wait for.
const LIMIT: Duration = Duration::from_millis(50);

/// Whether the kernel does so.
fn polls(ring: &AnyRing) -> bool {
    let polls = ring.busy_poll(LIMIT);
    if let Err(cause) = &polls {
        eprintln!("SKIPPED: {cause}");
    }
    polls.is_ok()
}

fn bytes_go_both_ways(ring: &mut AnyRing) {
    if !polls(ring) {
        return;
    }
    let (socket, mut peer) = connect(ring);
    for round in 0..20_u8 {
        ring.receive(socket, Token(1));
        let mut writer = peer.try_clone().unwrap();
        let writer = std::thread::spawn(move || writer.write_all(&[round; 48]).unwrap());
        assert_eq!(received(ring, 1), [round; 48]);
        writer.join().unwrap();
        ring.send(socket, Token(2), batch_of(&[round; 48]));
        sent(ring, 2);
        let mut heard = [0; 48];
        peer.read_exact(&mut heard).unwrap();
        assert_eq!(heard, [round; 48]);
    }
    quiet(ring);
}

fn another_thread_wakes_it(ring: &mut AnyRing) {
    if polls(ring) {
        woken_by_a_thread(ring);
    }
}

fn a_timeout_ends_the_wait(ring: &mut AnyRing) {
    if polls(ring) {
        quiet(ring);
    }
}
