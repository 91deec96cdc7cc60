//! Ports at a cable.

use std::{env, fs};

use ::io::ether::EtherOptions;
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
