//! AF_XDP: what is peculiar to it.

use std::thread;

use super::super::xdp::take_turns;
use super::super::{BATCH, Drops, EtherOpenError, XdpPort};
use super::*;

mod mtu_2500 {
    super::on_veth_as_root! { 2500:
        both_kinds_of_ports_understand_each_other
        the_kernel_copies_where_the_driver_has_no_zero_copy
        a_tag_of_no_vlan_stays_in_the_frame
        frames_of_a_vlan_are_left_to_its_interface
        what_the_memory_does_not_take_is_counted
        frames_go_again_once_the_link_is_back
        a_frame_that_was_given_up_never_leaves
        an_interface_that_is_made_anew_is_taken_up
        what_could_not_be_taken_up_is_tried_again
        an_interface_has_one_such_port
        what_it_does_not_take_goes_its_usual_way
    }
}

mod mtu_1500 {
    super::on_veth_as_root! { 1500:
        a_full_frame_of_its_mtu_comes_whole
    }
}

fn both_kinds_of_ports_understand_each_other() {
    for places in [["xdp:va", "vb"], ["va", "xdp:vb"]] {
        let mut pair = Pair::at(places, &EtherOptions::default());
        let (a, b) = (pair.a.mac(), pair.b.mac());
        for len in [60, 1514, 2172] {
            send(&mut pair.a, &frame(b, FCOE, len));
            assert_eq!(receive(&mut pair.b, 1), [(frame(b, FCOE, len), None)]);
            send(&mut pair.b, &frame(a, FIP, len));
            assert_eq!(receive(&mut pair.a, 1), [(frame(a, FIP, len), None)]);
        }
    }
}

/// The driver of veth has no zero-copy.
fn the_kernel_copies_where_the_driver_has_no_zero_copy() {
    let mut pair = Pair::at(["xdp:va", "vb"], &EtherOptions::default());
    assert_eq!(pair.a.is_zero_copy(), Some(false));
    assert_eq!(pair.b.is_zero_copy(), None);
    let b = pair.b.mac();
    send(&mut pair.a, &frame(b, FCOE, 2172));
    assert_eq!(receive(&mut pair.b, 1), [(frame(b, FCOE, 2172), None)]);
}

fn tagged(plain: &[u8], tci: u16) -> Vec<u8> {
    [&plain[..12], &[0x81, 0], &tci.to_be_bytes(), &plain[12..]].concat()
}

fn a_tag_of_no_vlan_stays_in_the_frame() {
    let mut pair = Pair::xdp();
    let tagged = tagged(&frame(pair.b.mac(), FCOE, 2172), 0x6000);
    send(&mut pair.a, &tagged);
    assert_eq!(receive(&mut pair.b, 1), [(tagged, None)]);
}

/// What comes by `vb.5` is seen at `vb` by packet sockets too, before it goes on.
fn frames_of_a_vlan_are_left_to_its_interface() {
    let mut pair = Pair::xdp();
    let mut beside =
        EtherPort::open(&Place::Interface("vb".into()), &EtherOptions::default()).unwrap();
    for ethertype in [FCOE, FIP] {
        let plain = frame(pair.b.mac(), ethertype, 2172);
        send(&mut pair.a, &tagged(&plain, 0x6005));
        assert_eq!(receive(&mut beside, 1), [(plain, Some(0x6005))]);
    }
    quiet(&mut pair.b);
}

fn what_the_memory_does_not_take_is_counted() {
    let ring = 256 << 10;
    let options = EtherOptions {
        ring,
        ..EtherOptions::default()
    };
    let mut pair = Pair::at(["xdp:va", "xdp:vb"], &options);
    let sent = frame(pair.b.mac(), FCOE, 2172);
    for _ in 0..1000 {
        send(&mut pair.a, &sent);
    }
    let mut count = 0;
    while pair.b.receive(|_, _| count += 1) > 0 {}
    assert!(count >= 64, "{count}");
    let lost = |drops: Drops| drops.ring_full + drops.received;
    assert!(lost(pair.b.drops().unwrap()) >= 1000 - count);
}

fn frames_go_again_once_the_link_is_back() {
    let mut pair = Pair::xdp();
    let to = pair.b.mac();
    for round in 1..5 {
        ip("link set va down");
        assert!(!news(&mut pair.a).up);
        for _ in 0..3 {
            put(&mut pair.a, &frame(to, FCOE, 200));
        }
        assert!(pair.a.flush().unwrap());
        assert_eq!(pair.a.drops().unwrap().unsent, 3 * round);
        ip("link set va up");
        assert!(news(&mut pair.a).up);
        for len in 100..110 {
            send(&mut pair.a, &frame(to, FCOE, len));
        }
        let taken = receive(&mut pair.b, 10);
        assert_eq!(taken[0].0, frame(to, FCOE, 100));
        assert_eq!(taken[9].0, frame(to, FCOE, 109));
    }
}

fn a_frame_that_was_given_up_never_leaves() {
    // So many frames that the link goes down while the kernel is at them.
    let options = EtherOptions {
        payload_max: 1500,
        ring: 32 << 20,
    };
    let mut pair = Pair::at(["xdp:va", "vb"], &options);
    let to = pair.b.mac();
    let numbered = |number: u32| [&frame(to, FCOE, 196)[..], &number.to_be_bytes()].concat();
    let mut numbers = 1..;
    let mut last = 0;
    for _ in 0..5 {
        let down = thread::spawn(|| ip("link set va down"));
        while !down.is_finished() {
            for number in numbers.by_ref().take(15_000) {
                put(&mut pair.a, &numbered(number));
            }
            pair.a.flush().unwrap();
        }
        down.join().unwrap();
        assert!(!news(&mut pair.a).up);
        ip("link set va up");
        assert!(news(&mut pair.a).up);
        let (end, deadline) = (numbers.start, Instant::now() + LONG);
        while last < end {
            assert!(Instant::now() < deadline, "{last}, and nothing after it");
            // One that finds the other's ring full is lost.
            send(&mut pair.a, &numbered(numbers.next().unwrap()));
            ready(&pair.b, SHORT);
            pair.b.receive(|taken, _| {
                let number = u32::from_be_bytes(*taken.last_chunk().unwrap());
                assert!(last < number, "{number} after {last}");
                last = number;
            });
        }
        quiet(&mut pair.b);
    }
}

fn an_interface_that_is_made_anew_is_taken_up() {
    let mut pair = Pair::xdp();
    let (a, b) = (pair.a.mac(), pair.b.mac());
    ip("link del va");
    assert!(!news(&mut pair.b).up);
    put(&mut pair.b, &frame(a, FCOE, 100));
    assert!(pair.b.flush().unwrap());
    ip("link add va mtu 2500 type veth peer name vb mtu 2500");
    ip("link set va up");
    ip("link set vb up");
    while !news(&mut pair.b).up {}
    pair.a = EtherPort::open(&Place::Xdp("va".into()), &EtherOptions::default()).unwrap();
    send(&mut pair.a, &frame(b, FCOE, 100));
    assert_eq!(receive(&mut pair.b, 1), [(frame(b, FCOE, 100), None)]);
}

fn what_could_not_be_taken_up_is_tried_again() {
    let mut pair = Pair::xdp();
    ip("link del va");
    assert!(!news(&mut pair.b).up);
    ip("link add va mtu 2500 type veth peer name vb mtu 2500");
    ip("link set va up");
    ip("link set vb up");
    // Somebody was faster.
    let other = XdpPort::open("vb", &EtherOptions::default()).unwrap();
    let mut look = || {
        assert!(ready(&pair.b, LONG));
        let refused = pair.b.news().err();
        let refused = refused.and_then(|cause| cause.raw_os_error());
        assert!(matches!(refused, None | Some(libc::EBUSY)), "{refused:?}");
        (refused.is_some(), pair.b.link().up)
    };
    while look() != (true, false) {}
    drop(other);
    // The kernel may take a while to give back what the other one had.
    while look() != (false, true) {}
    pair.a = EtherPort::open(&Place::Xdp("va".into()), &EtherOptions::default()).unwrap();
    let sent = frame(pair.a.mac(), FCOE, 100);
    send(&mut pair.b, &sent);
    assert_eq!(receive(&mut pair.a, 1), [(sent, None)]);
}

fn an_interface_has_one_such_port() {
    let pair = Pair::xdp();
    let second = XdpPort::open("va", &EtherOptions::default()).unwrap_err();
    assert!(matches!(second, EtherOpenError::Occupied(at) if at == "va"));
    drop(pair);
    Pair::xdp();
}

fn what_it_does_not_take_goes_its_usual_way() {
    let mut pair = Pair::xdp();
    let to = pair.b.mac();
    send(&mut pair.a, &frame(to, FCOE, 100));
    send(&mut pair.a, &frame(to, 0x88b5, 100));
    // Whose EtherType nobody knows is dropped behind us.
    assert_eq!(pair.b.drops().unwrap().received, 1);
    assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 100), None)]);
}

fn a_full_frame_of_its_mtu_comes_whole() {
    let mut pair = Pair::xdp();
    let full = frame(pair.b.mac(), FCOE, 1514);
    send(&mut pair.a, &full);
    assert_eq!(receive(&mut pair.b, 1), [(full, None)]);
    send(&mut pair.a, &frame(pair.b.mac(), FCOE, 2172));
    assert_eq!(pair.a.drops().unwrap().oversize, 1);
}

/// Of three queues one has more than can be taken, as it may be any.
#[test]
fn a_busy_queue_starves_no_other() {
    for busy in 0..3 {
        let mut queues = [1; 3];
        queues[busy] = 100 * BATCH;
        let mut first = 0;
        for _ in 0..3 {
            let count = take_turns(&mut queues, &mut first, |queue, max| {
                let count = max.min(*queue);
                *queue -= count;
                count
            });
            assert_eq!(count, BATCH);
        }
        queues[busy] = 0;
        assert_eq!(queues, [0; 3], "behind {busy}");
    }
}
