//! Interfaces: what the kernel does to a port, and what its program lets through.

use std::io;
use std::time::Instant;

use super::super::filter::{program, takes};
use super::super::interface_watch::InterfaceWatch;
use super::super::link;
use super::super::packet::Refusals;
use super::super::{EtherOpenError, LinkStatus, PacketPort};
use super::*;

mod mtu_2500 {
    super::on_veth! { 2500:
        a_tag_comes_besides_the_frame
        what_a_full_ring_does_not_take_is_counted
        frames_longer_than_asked_for_are_counted
        frames_go_again_once_the_link_is_back
        a_port_at_an_interface_that_is_down_waits_for_it
        an_interface_that_is_made_anew_is_taken_up
        an_interface_replaced_by_one_of_an_equal_link_is_news
        what_cannot_be_acted_on_is_tried_again_when_it_is_time
        a_change_of_the_mtu_is_news
        news_is_taken_from_what_was_told_without_asking
        news_of_which_too_much_came_is_asked_for
        what_the_kernel_refuses_does_not_stop_the_rest
        frames_longer_than_the_mtu_hold_nothing_up
        a_full_queue_is_tried_again_after_a_pause
        a_frame_that_is_refused_for_good_holds_nothing_up
        what_is_no_ethernet_interface_is_refused
        a_port_has_so_many_addresses
    }
}

mod mtu_1500 {
    super::on_veth! { 1500:
        a_full_frame_of_its_mtu_comes_whole
    }
}

fn link(up: bool, mtu: u32) -> LinkStatus {
    LinkStatus {
        up,
        mtu,
        ..LinkStatus::default()
    }
}

fn pair() -> Pair {
    Pair::veth(&EtherOptions::default())
}

fn a_tag_comes_besides_the_frame() {
    let mut pair = pair();
    let sent = frame(pair.b.mac(), FCOE, 2514);
    // Priority 3, VLAN 5; priority 3 alone.
    for tci in [0x6005, 0x6000] {
        let tag = [&0x8100_u16.to_be_bytes()[..], &u16::to_be_bytes(tci)].concat();
        send(&mut pair.a, &[&sent[..12], &tag, &sent[12..]].concat());
        assert_eq!(receive(&mut pair.b, 1), [(sent.clone(), Some(tci))]);
    }
}

fn what_a_full_ring_does_not_take_is_counted() {
    let ring = 256 << 10;
    let mut pair = Pair::veth(&EtherOptions {
        ring,
        ..EtherOptions::default()
    });
    let sent = frame(pair.b.mac(), FCOE, 2172);
    for _ in 0..1000 {
        send(&mut pair.a, &sent);
    }
    let mut count = 0;
    while pair.b.receive(|_, _| count += 1) > 0 {}
    assert!(count > 50, "{count}");
    assert_eq!(pair.b.drops().unwrap().ring_full, 1000 - count);
    // And told again when it is asked again.
    assert_eq!(pair.b.drops().unwrap().ring_full, 1000 - count);
}

fn a_full_queue_is_tried_again_after_a_pause() {
    let mut pair = pair();
    tc("qdisc replace dev va root pfifo limit 0");
    let sent = frame(pair.b.mac(), FCOE, 2172);
    put(&mut pair.a, &sent);
    // Whoever waits for it would spin.
    let rests = (0..1000).any(|_| !pair.a.flush().unwrap() && !ready(&pair.a, Duration::ZERO));
    assert!(rests, "it is ready all the time");
    tc("qdisc replace dev va root pfifo limit 100");
    assert!(ready(&pair.a, LONG));
    assert!(pair.a.flush().unwrap());
    assert_eq!(receive(&mut pair.b, 1), [(sent, None)]);
    assert!(!ready(&pair.a, SHORT), "there is nothing to wait for");
}

/// As veth refuses what is longer than the MTU of its other end.
fn a_frame_that_is_refused_for_good_holds_nothing_up() {
    let mut pair = pair();
    ip("link set vb mtu 1500");
    let (long, short) = (
        frame(pair.b.mac(), FCOE, 2172),
        frame(pair.b.mac(), FCOE, 60),
    );
    for sent in [&long, &long, &short] {
        put(&mut pair.a, sent);
    }
    while !pair.a.flush().unwrap() {
        assert!(ready(&pair.a, LONG));
    }
    assert_eq!(receive(&mut pair.b, 1), [(short, None)]);
    assert_eq!(pair.a.drops().unwrap().refused, 2);
}

/// A queue that lets some through is only full.
#[test]
fn a_frame_is_refused_for_a_while_before_it_is_given_up() {
    let mut refusals = Refusals::default();
    let begun = Instant::now();
    let mut gives_up =
        |ms, first| refusals.gives_up(begun + Duration::from_millis(ms), Some(first));
    assert!(!gives_up(0, (0, 2172)) && !gives_up(99, (0, 2172)));
    assert!(!gives_up(150, (1, 2172)), "the one before has left");
    assert!(!gives_up(249, (1, 2172)));
    assert!(gives_up(250, (1, 2172)));
    assert!(gives_up(251, (2, 2172)), "as long");
    assert!(!gives_up(252, (3, 60)), "shorter");
    assert!(!gives_up(2250, (4, 2172)), "it may have been the queue");
}

fn frames_longer_than_asked_for_are_counted() {
    let mut pair = pair();
    let options = EtherOptions {
        payload_max: 1000,
        ..EtherOptions::default()
    };
    pair.b = EtherPort::open(&Place::Interface("vb".into()), &options).unwrap();
    let to = pair.b.mac();
    for len in [2514, 1014] {
        send(&mut pair.a, &frame(to, FCOE, len));
    }
    assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 1014), None)]);
    assert_eq!(pair.b.drops().unwrap().too_long, 1);
}

fn frames_go_again_once_the_link_is_back() {
    let mut pair = pair();
    let to = pair.b.mac();
    let sent = frame(to, FCOE, 200);
    // Each time the ring stands somewhere else.
    for round in 0..5 {
        ip("link set va down");
        assert_eq!(news(&mut pair.a), link(false, 2500));
        assert_eq!(news(&mut pair.b), link(false, 2500));
        for _ in 0..3 {
            put(&mut pair.a, &sent);
        }
        assert!(pair.a.flush().unwrap());
        assert_eq!(pair.a.drops().unwrap().unsent, 3 * (round + 1));
        quiet(&mut pair.b);
        ip("link set va up");
        assert_eq!(news(&mut pair.a), link(true, 2500));
        assert_eq!(news(&mut pair.b), link(true, 2500));
        for len in 100..110 {
            send(&mut pair.a, &frame(to, FCOE, len));
        }
        let taken = receive(&mut pair.b, 10);
        assert_eq!(taken[0].0, frame(to, FCOE, 100));
        assert_eq!(taken[9].0, frame(to, FCOE, 109));
    }
}

fn a_port_at_an_interface_that_is_down_waits_for_it() {
    ip("link set va down");
    let mut port =
        EtherPort::open(&Place::Interface("va".into()), &EtherOptions::default()).unwrap();
    // Of what was done above more may be told a moment later.
    let deadline = Instant::now() + LONG;
    while ready(&port, SHORT) {
        assert!(Instant::now() < deadline, "it is ready again and again");
        port.receive(|_, _| {});
        assert_eq!(port.news().unwrap(), None);
    }
    ip("link set va up");
    assert_eq!(news(&mut port), link(true, 2500));
}

fn an_interface_that_is_made_anew_is_taken_up() {
    const GROUP: EtherMac = [0x01, 0x10, 0x18, 0x01, 0x00, 0x04];
    let mut pair = pair();
    pair.b.join(GROUP).unwrap();
    let (a, b) = (pair.a.mac(), pair.b.mac());
    ip("link del va");
    // It may be told before that the link is down.
    let told = std::iter::repeat_with(|| news(&mut pair.b)).find(|told| told.is_gone);
    assert!(!told.unwrap().up);
    put(&mut pair.b, &frame(a, FCOE, 100));
    assert!(pair.b.flush().unwrap());
    assert_eq!(pair.b.drops().unwrap().unsent, 1);
    ip("link add va mtu 2000 type veth peer name vb mtu 2000");
    ip("link set va up");
    ip("link set vb up");
    // It may be told before of an interface that is not up yet.
    let mut told = news(&mut pair.b);
    while told != link(true, 2000) {
        assert!(!told.up && !told.is_gone, "{told:?}");
        told = news(&mut pair.b);
    }
    pair.a = EtherPort::open(&Place::Interface("va".into()), &EtherOptions::default()).unwrap();
    assert_eq!(pair.b.mac(), b, "a port keeps its address");
    for to in [b, GROUP] {
        send(&mut pair.a, &frame(to, FCOE, 100));
        assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 100), None)]);
    }
    let to = pair.a.mac();
    send(&mut pair.b, &frame(to, FCOE, 100));
    assert_eq!(receive(&mut pair.a, 1), [(frame(to, FCOE, 100), None)]);
}

/// As where all that was told in between was read at once: what forwards by its number has to know.
fn an_interface_replaced_by_one_of_an_equal_link_is_news() {
    let mut pair = pair();
    ip("link del va");
    ip("link add va mtu 2500 type veth peer name vb mtu 2500");
    ip("link set va up");
    ip("link set vb up");
    let deadline = Instant::now() + LONG;
    while !link::look("vb").unwrap().link.up {
        assert!(Instant::now() < deadline, "it does not come up");
    }
    // That it is up is told a moment after it is seen.
    std::thread::sleep(SHORT);
    while news(&mut pair.b) != link(true, 2500) {}
}

/// And not at each wake of the reactor, which has other sockets.
fn what_cannot_be_acted_on_is_tried_again_when_it_is_time() {
    let mut station = InterfaceWatch::open("va").unwrap();
    ip("link set va mtu 2000");
    let mut fail = || {
        let fails = |_: &InterfaceWatch, _| Err(io::ErrorKind::OutOfMemory.into());
        station.may_have_changed().unwrap() && station.look(fails).is_err()
    };
    // More may be told meanwhile of what was done before.
    let failed = (0..1000).filter(|_| fail()).count();
    assert!((1..10).contains(&failed), "{failed} of 1,000 wakes");
    let deadline = Instant::now() + LONG;
    while !station.may_have_changed().unwrap() {
        let [news, timer] = station.waited().map(|fd| PollFd::new(fd, PollFlags::IN));
        assert!(Instant::now() < deadline, "it is never tried again");
        poll(&mut [news, timer], Some(&Timespec::try_from(LONG).unwrap())).unwrap();
    }
    let told = station.look(|_, _| Ok(())).unwrap();
    assert_eq!(told, Some(link(true, 2000)));
}

fn a_change_of_the_mtu_is_news() {
    let mut pair = pair();
    ip("link set vb mtu 1500");
    assert_eq!(news(&mut pair.b), link(true, 1500));
    ip("link set vb mtu 3000");
    assert_eq!(news(&mut pair.b), link(true, 3000));
    assert_eq!(pair.a.news().unwrap(), None);
}

/// To ask takes a socket, and may take the time that the reset of another card does.
fn news_is_taken_from_what_was_told_without_asking() {
    let mut pair = pair();
    ip("link set vb down");
    let others = no_more_descriptors();
    let refused = pair.a.sender(&EtherOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("ulimit -n"), "{refused}");
    assert_eq!(news(&mut pair.a), link(false, 2500));
    drop(others);
    ip("link set vb up");
    assert_eq!(news(&mut pair.a), link(true, 2500));
}

fn news_of_which_too_much_came_is_asked_for() {
    let mut pair = pair();
    for round in 0..200 {
        ip(&format!("link set vb mtu {}", 1000 + round));
    }
    let deadline = Instant::now() + LONG;
    while pair.b.link() != link(true, 1199) {
        let left = deadline.checked_duration_since(Instant::now());
        ready(&pair.b, left.expect("the last MTU in time"));
        pair.b.receive(|_, _| {});
        pair.b.news().unwrap();
    }
}

fn what_the_kernel_refuses_does_not_stop_the_rest() {
    let mut pair = pair();
    let sent = frame(pair.b.mac(), FCOE, 100);
    // It has no whole Ethernet header.
    put(&mut pair.a, &sent[..10]);
    put(&mut pair.a, &sent);
    let refused = pair.a.flush().unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    assert_eq!(pair.a.drops().unwrap().unsent, 2);
    send(&mut pair.a, &sent);
    assert_eq!(receive(&mut pair.b, 1), [(sent, None)]);
}

fn frames_longer_than_the_mtu_hold_nothing_up() {
    let mut pair = pair();
    ip("link set va mtu 1500");
    let to = pair.b.mac();
    // The kernel has heard of it, and we have not; then we have.
    for round in 1..3 {
        for len in [2172, 1514] {
            send(&mut pair.a, &frame(to, FCOE, len));
        }
        assert_eq!(receive(&mut pair.b, 1), [(frame(to, FCOE, 1514), None)]);
        assert_eq!(pair.a.drops().unwrap().oversize, round);
        if round == 1 {
            assert_eq!(news(&mut pair.a), link(true, 1500));
        }
    }
}

fn what_is_no_ethernet_interface_is_refused() {
    let open = |name: &str| PacketPort::open(name, &EtherOptions::default()).unwrap_err();
    for name in ["nosuch", "", "a-name-that-is-far-too-long-for-one", "a\0"] {
        assert!(matches!(open(name), EtherOpenError::Missing(at) if at == name));
    }
    assert!(matches!(open("lo"), EtherOpenError::NotEthernet(at) if at == "lo"));
}

fn a_port_has_so_many_addresses() {
    let mut pair = pair();
    for last in 1..super::super::ADDRESSES_MAX as u8 {
        pair.a.join([2, 0, 0, 0, 1, last]).unwrap();
    }
    pair.a.join([2, 0, 0, 0, 2, 0]).unwrap_err();
    let last = frame([2, 0, 0, 0, 1, 63], FCOE, 100);
    send(&mut pair.b, &last);
    assert_eq!(receive(&mut pair.a, 1), [(last, None)]);
}

fn a_full_frame_of_its_mtu_comes_whole() {
    let mut pair = pair();
    let to = pair.b.mac();
    let full = frame(to, FCOE, 1514);
    send(&mut pair.a, &full);
    assert_eq!(receive(&mut pair.b, 1), [(full, None)]);
}

#[test]
fn a_program_for_all_addresses_is_one_that_the_kernel_takes() {
    let addresses: Vec<EtherMac> = (0..64).map(|last| [2, 0, 0, 0, 0, last]).collect();
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    super::super::raw::filter(&socket.into(), &program(&addresses)).unwrap();
}

#[test]
fn short_frames_and_tags_are_looked_at() {
    let own = [2, 0, 0, 0, 0, 1];
    let whole = frame(own, FCOE, 60);
    assert!(takes(&[own], &whole));
    for len in 0..14 {
        assert!(!takes(&[own], &whole[..len]));
    }
    let tagged = [&whole[..12], &[0x81, 0x00, 0x60, 0x05], &whole[12..]].concat();
    assert!(takes(&[own], &tagged));
    for len in 0..18 {
        assert!(!takes(&[own], &tagged[..len]));
    }
}
