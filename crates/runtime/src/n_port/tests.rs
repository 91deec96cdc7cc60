//! What is told of frames that were lost, and of what is in their way.

use std::{env, fs};

use ::io::ether::Drops;
use fc::initiator::FcpInitiator;
use fc::wire::ethernet::{self, EthernetHeader};
use scsi::medium::HeapLease;

use super::*;

fn cable(name: &str) -> Place {
    let path = env::temp_dir().join(format!("lunar-n-port-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    Place::Cable(path)
}

fn port(place: &Place) -> NPort<FcpInitiator<HeapLease>> {
    let site = Attachment::open(place, &PortOwner::Initiator).unwrap();
    NPort::begin(
        site,
        FcpInitiator::new(fc::initiator::FcpInitiatorConfig::default()),
        Now::ZERO,
    )
}

/// Sends a message of FIP that nobody understands.
fn send(ether: &mut EtherPort) {
    let header = EthernetHeader {
        dst: Mac::ALL_VN2VN_ENODE,
        src: Mac(ether.mac()),
        vlan: None,
        ethertype: ethernet::FIP,
    };
    header
        .put(ether.slot(ethernet::MIN_LEN).unwrap())
        .fill(0xff);
    ether.commit(ethernet::MIN_LEN);
    assert!(ether.flush().unwrap());
}

#[test]
fn frames_are_polled_for_where_the_ring_cannot_wait_for_them() {
    let place = cable("deaf");
    let mut port = port(&place);
    let mut other = EtherPort::open(&place, &EtherOptions::default()).unwrap();
    for round in 1..=2 {
        let now = port.next_deadline().unwrap_or_default() + Duration::from_secs(round);
        port.is_watched(now, &Err(io::ErrorKind::OutOfMemory.into()));
        assert_eq!(port.listen(), PollInterest::NotYet);
        send(&mut other);
        let polled = port.next_deadline().unwrap();
        assert!(polled <= now + DEAF, "{polled:?} at {now:?}");
        port.expire(now + DEAF);
        assert_eq!(port.port().fip_statistics().received, round);
        assert_eq!(port.listen(), PollInterest::Now, "the ring is asked again");
    }
}

#[test]
fn a_port_that_is_flooded_rests_between_batches() {
    let place = cable("flooded");
    let mut port = port(&place);
    let mut other = EtherPort::open(&place, &EtherOptions::default()).unwrap();
    let now = Duration::from_secs(1);
    for _ in 0..512 {
        send(&mut other);
        port.receive(now);
        assert_eq!(port.listen(), PollInterest::Now);
    }
    send(&mut other);
    port.receive(now);
    assert_eq!(port.listen(), PollInterest::NotYet);
    assert!(port.next_deadline().is_some_and(|at| at <= now + FLOODED));
    port.expire(now + FLOODED);
    assert_eq!(port.listen(), PollInterest::Now);
}

#[test]
fn only_what_has_grown_is_told() {
    let before = FrameLosses(Drops {
        ring_full: 3,
        unsent: 2,
        received: 7,
        ..Drops::default()
    });
    let now = FrameLosses(Drops {
        ring_full: 5,
        missed: 1,
        received: 9,
        ..before.0
    });
    let told = "2 (receive ring full), 1 (no memory in the interface)";
    assert_eq!(now.told_since(&before).as_deref(), Some(told));
    assert_eq!(now.told_since(&now), None);
}

#[test]
fn the_worst_obstacle_is_named_with_what_mends_it() {
    let eth0 = Place::Interface("eth0".to_owned());
    let at = |up, mtu| LinkProblem::at(&eth0, LinkStatus { up, mtu });
    for (obstacle, is_barrier, ways) in [
        (at(true, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 302), true, ["down", "ip link set eth0 up"]),
        (
            at(true, 302),
            false,
            ["256 of 2112", "ip link set eth0 mtu"],
        ),
        (at(true, 2157), false, ["2108 of", "ip link set eth0 mtu"]),
    ] {
        let obstacle = obstacle.expect("an obstacle");
        let line = obstacle.to_string();
        assert_eq!(obstacle.is_barrier(), is_barrier, "{line}");
        assert!(ways.iter().all(|way| line.contains(way)), "{line}");
        assert!(line.starts_with("eth0: "), "{line}");
    }
    assert_eq!(at(true, 2158), None);
}
