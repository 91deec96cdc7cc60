//! Ports at a cable.

use std::{env, fs};

use ::io::ether::EtherOptions;
use fc::fip::enode::FabricConfig;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::port::config::PortMode;
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
        FcpInitiator::new(FcpInitiatorConfig::default()),
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

/// All ports of an ENode are at one place, and the log has to tell them apart.
#[test]
fn the_log_names_a_further_port_by_its_name() {
    let place = cable("further");
    let named = |further| {
        let mut site = Attachment::open(&place, &PortOwner::Initiator).unwrap();
        site.config.mode = PortMode::Fabric(FabricConfig::default());
        site.config.further = further;
        let fc4 = FcpInitiator::<HeapLease>::new(FcpInitiatorConfig::default());
        let port = NPort::begin(site, fc4, Now::ZERO);
        (port.named(), port.port().wwpn())
    };
    assert_eq!(named(None).0, place.to_string());
    let (told, wwpn) = named(Some(1));
    assert_eq!(told, format!("{place} ({wwpn})"));
}
