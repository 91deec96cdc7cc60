//! Memory of receive buffers that are idle is given back.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::*;
use crate::ring::lend::Lender;

super::on_every_ring! {
    an_idle_ring_has_nothing_left_to_give_back
}

/// Sockets that have something at once.
const BURST: u64 = 100;

fn an_idle_ring_has_nothing_left_to_give_back(ring: &mut AnyRing) {
    let mut pairs: Vec<_> = (0..BURST).map(|_| connect(ring)).collect();
    for _ in 0..2 {
        for (number, (socket, peer)) in (0..).zip(&mut pairs) {
            peer.write_all(&[7; 1000]).unwrap();
            ring.receive(*socket, Token(number));
        }
        // None is given back before all have come, or all buffers are taken.
        let (mut held, mut come) = (Vec::new(), 0);
        while come < BURST {
            ring.wait(Some(SHORT)).unwrap();
            let before = come;
            while let Some(event) = ring.next_event() {
                let RingEvent::Received { bytes, .. } = event else {
                    panic!("{event:?}");
                };
                held.push(bytes.unwrap());
                come += 1;
            }
            if come == before {
                held.clear();
            }
        }
        assert!(held.iter().all(|bytes| bytes[..] == [7; 1000]));
        drop(held);
        assert!(ring.has_idle());
        let trims = (0..10).take_while(|_| {
            ring.trim();
            ring.has_idle()
        });
        assert!(trims.count() < 10);
    }
}

/// What was received in a buffer is gone once its memory was given back.
#[test]
fn two_trims_give_back_a_buffer_that_is_not_needed() {
    let lender = Lender::new(4).unwrap();
    let (mut peer, socket) = UnixStream::pair().unwrap();
    peer.write_all(&[7; 1000]).unwrap();
    let (first, second) = (lender.take().unwrap(), lender.take().unwrap());
    assert!(!lender.has_idle(), "all that have memory are taken");
    assert_eq!(lender.top_up(second, 0, &socket.into()), 1000);
    lender.give_back(first);
    lender.give_back(second);
    lender.trim();
    assert!(lender.has_idle(), "they were needed since the last trim");

    let content = |id| {
        assert_eq!(lender.take(), Some(id));
        // SAFETY: it was taken, and is not lent again before this is dropped.
        let bytes = unsafe { lender.lend(id, 1000) };
        bytes.to_vec()
    };
    assert_eq!(content(second), [7; 1000]);
    lender.trim();
    assert_eq!(content(second), [7; 1000], "it was taken in between");
    lender.trim();
    lender.trim();
    assert!(!lender.has_idle());
    assert_eq!(content(second), [0; 1000]);
}
