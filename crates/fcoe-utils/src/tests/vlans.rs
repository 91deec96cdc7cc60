//! VLAN discovery: what is sent when, and which answers count.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fc::wire::ethernet::{EthernetHeader, FIP, Mac, VlanTag};
use fc::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use io::ether::interfaces::EtherInterface;
use io::ether::{EtherOptions, EtherPort, Place};
use tempfile::TempDir;

use crate::change::FcoeMode;
use crate::vlan::interface::{VlanError, VlanInterface, existing, make, name};
use crate::vlan::ports::{DiscoveryOptions, QueriedPort, discover, take_some};
use crate::vlan::query::{FORWARDERS_MAX, VlanQuery};
use crate::vlan::{Forwarder, ForwarderKind, table};

const OURS: Mac = Mac([0x52, 0x54, 0, 0, 0, 1]);
const FCF: Mac = Mac([0x00, 0x0d, 0xec, 0x6d, 0x8f, 0x00]);
const OTHER: Mac = Mac([0x00, 0x0d, 0xec, 0x6d, 0x8f, 0x01]);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn query(mode: FcoeMode, retries: u32) -> VlanQuery {
    VlanQuery::new(mode, OURS, retries, ms(0))
}

/// A frame of FIP.
fn frame(to: Mac, operation: FipOperation, descriptors: &[Descriptor<'_>]) -> Vec<u8> {
    let message = fip::encode(operation, Flags::FPMA.with(Flags::F_PORT), descriptors);
    let header = EthernetHeader::new(FCF, to, FIP);
    let mut frame = vec![0; header.len() + message.len()];
    header.put(&mut frame).copy_from_slice(&message);
    frame
}

fn notification(from: Mac, vids: &[u16]) -> Vec<u8> {
    let vids = vids.iter().map(|vid| Descriptor::Vlan(*vid));
    let descriptors: Vec<_> = [Descriptor::Mac(from)].into_iter().chain(vids).collect();
    frame(OURS, FipOperation::VlanNotification, &descriptors)
}

fn found(query: &VlanQuery) -> Vec<(u16, Mac)> {
    query.found().iter().map(|one| (one.vid, one.mac)).collect()
}

#[test]
fn a_request_goes_to_all_forwarders_with_nothing_but_our_address() {
    for (mode, to) in [
        (FcoeMode::Fabric, Mac::ALL_FCF),
        (FcoeMode::Vn2vn, Mac::ALL_VN2VN_ENODE),
    ] {
        let frame = query(mode, 0).poll(ms(0)).unwrap();
        assert_eq!(frame.len(), 60);
        let (header, payload) = EthernetHeader::parse(&frame).unwrap();
        assert_eq!((header.src, header.dst, header.vlan), (OURS, to, None));
        let message = FipMessage::parse(payload).unwrap();
        assert_eq!(message.operation, FipOperation::VlanRequest);
        let descriptors: Vec<_> = message.descriptors().map(Result::unwrap).collect();
        assert_eq!(descriptors, [Descriptor::Mac(OURS)]);
    }
}

#[test]
fn without_an_answer_it_asks_each_second_and_ends() {
    let mut query = query(FcoeMode::Fabric, 2);
    let mut sent = Vec::new();
    while let Some(due) = query.due() {
        if query.poll(due).is_some() {
            sent.push(due);
            assert!(query.poll(due).is_none(), "once at a time");
        }
    }
    assert_eq!(sent, [ms(0), ms(1000), ms(2000)]);
    assert!(query.found().is_empty());
}

#[test]
fn after_the_first_answer_it_listens_for_others_and_asks_no_more() {
    let mut query = query(FcoeMode::Fabric, 20);
    query.poll(ms(0)).unwrap();
    query.receive(ms(30), &notification(FCF, &[152, 200]), None);
    assert_eq!(query.due(), Some(ms(530)));
    query.receive(ms(400), &notification(OTHER, &[152]), None);
    assert_eq!(query.due(), Some(ms(530)));
    assert!(query.poll(ms(530)).is_none());
    assert_eq!(query.due(), None);
    assert_eq!(found(&query), [(152, FCF), (200, FCF), (152, OTHER)]);
    // Too late.
    query.receive(ms(600), &notification(OTHER, &[7]), None);
    assert_eq!(found(&query).len(), 3);
}

#[test]
fn answers_that_come_twice_count_once() {
    let mut query = query(FcoeMode::Fabric, 0);
    for _ in 0..3 {
        query.receive(ms(1), &notification(FCF, &[152, 152, 0]), None);
    }
    assert_eq!(found(&query), [(152, FCF), (0, FCF)]);
}

#[test]
fn what_is_no_answer_is_left() {
    let mut query = query(FcoeMode::Fabric, 0);
    let good = notification(FCF, &[152]);
    let vlan = Descriptor::Vlan(152);
    let whole = [Descriptor::Mac(FCF), vlan];
    for wrong in [
        frame(OTHER, FipOperation::VlanNotification, &whole),
        frame(OURS, FipOperation::Vn2vnVlanNotification, &whole),
        frame(OURS, FipOperation::VlanRequest, &whole),
        frame(OURS, FipOperation::VlanNotification, &[vlan]),
        frame(OURS, FipOperation::VlanNotification, &whole[..1]),
        notification(FCF, &[4095, 0x1fff]),
        vec![],
    ] {
        query.receive(ms(1), &wrong, None);
    }
    // In a VLAN.
    query.receive(ms(1), &good, Some(0x6000 | 152));
    // Cut off anywhere.
    for len in 0..good.len() {
        query.receive(ms(1), &good[..len], None);
    }
    assert_eq!((found(&query), query.due()), (vec![], Some(ms(0))));
    // A tag with a priority alone is no VLAN.
    let tag = VlanTag {
        priority: 3,
        dei: false,
        vid: 0,
    };
    query.receive(ms(1), &good, Some(tag.encode()));
    assert_eq!(found(&query), [(152, FCF)]);
}

#[test]
fn ports_of_vn2vn_answer_by_another_message() {
    let mut query = query(FcoeMode::Vn2vn, 0);
    let told = [Descriptor::Mac(FCF), Descriptor::Vlan(7)];
    query.receive(
        ms(1),
        &frame(OURS, FipOperation::VlanNotification, &told),
        None,
    );
    assert!(query.found().is_empty());
    query.receive(
        ms(1),
        &frame(OURS, FipOperation::Vn2vnVlanNotification, &told),
        None,
    );
    assert_eq!(found(&query), [(7, FCF)]);
}

#[test]
fn no_more_forwarders_are_kept_than_there_is_room_for() {
    let mut query = query(FcoeMode::Fabric, 0);
    for last in 0..=255 {
        let vids: Vec<_> = (1..300).collect();
        let from = Mac([0, 0x0d, 0xec, 0, 0, last]);
        query.receive(ms(1), &notification(from, &vids), None);
    }
    assert_eq!(query.found().len(), FORWARDERS_MAX);
}

#[test]
fn forwarders_in_the_columns_of_fipvlan() {
    let found = [
        ("eth2", Forwarder { vid: 152, mac: FCF }),
        (
            "a-name-of-16-and",
            Forwarder {
                vid: 4094,
                mac: OTHER,
            },
        ),
    ];
    let expected = "Fibre Channel Forwarders Discovered
interface       | VLAN | FCF MAC
------------------------------------------
eth2            | 152  | 00:0d:ec:6d:8f:00
a-name-of-16-and| 4094 | 00:0d:ec:6d:8f:01

";
    assert_eq!(table(ForwarderKind::Fcf, &found), expected);
    let vn2vn = table(ForwarderKind::Vn2vn, &found[..1]);
    assert!(
        vn2vn.starts_with("VN2VN Responders Discovered\n"),
        "{vn2vn}"
    );
    assert!(vn2vn.contains("| VN2VN MAC\n"), "{vn2vn}");
}

fn interface(index: u32, name: &str, vlan: Option<(u32, u16)>) -> EtherInterface {
    EtherInterface {
        index,
        name: name.to_owned(),
        vlan,
        ..EtherInterface::default()
    }
}

#[test]
fn a_vlan_that_has_an_interface_keeps_it() {
    let all = [
        interface(2, "eth0", None),
        interface(3, "eth1", None),
        interface(4, "other", Some((3, 152))),
        interface(5, "san", Some((2, 152))),
    ];
    let at = |vid| existing(&all, &all[0], vid).map(|one| one.index);
    assert_eq!((at(152), at(0), at(7)), (Some(5), Some(2), None));
    let kept = make(&all, &all[0], 152, "-fcoe").unwrap();
    assert_eq!(kept, VlanInterface::Found("san".to_owned()));
}

#[test]
fn names_are_those_of_fcoe_utils_if_linux_takes_them() {
    assert_eq!(name("eth0", 152, "-fcoe").unwrap(), "eth0.152-fcoe");
    assert_eq!(name("enp130s0f0", 152, "").unwrap(), "enp130s0f0.152");
    let long = name("enp130s0f0", 152, "-fcoe");
    assert!(matches!(long, Err(VlanError::LongName(name)) if name == "enp130s0f0.152-fcoe"));
}

/// A forwarder at the other end of a cable answers one Request.
#[test]
fn a_port_asks_and_hears_the_answer() {
    let folder = TempDir::new().unwrap();
    let place = Place::Cable(folder.path().join("san"));
    let options = DiscoveryOptions {
        mode: FcoeMode::Fabric,
        retries: 20,
    };
    let mut switch = EtherPort::open(&place, &EtherOptions::default()).unwrap();
    switch.join(Mac::ALL_FCF.0).unwrap();
    let mut ports = [QueriedPort::open(&place.to_string(), options).unwrap()];
    let answering = std::thread::spawn(move || answer(&mut switch));
    discover(&mut ports, &AtomicBool::new(false)).unwrap();
    answering.join().unwrap();
    let expected = [152, 200].map(|vid| Forwarder { vid, mac: FCF });
    assert_eq!(ports[0].found(), expected);
    assert_eq!(ports[0].name(), place.to_string());
}

/// Someone sends all the time, faster than it can be heard.
#[test]
fn a_flood_keeps_no_discovery_from_ending() {
    let mut frames = 0;
    take_some(|| {
        frames += 1;
        256
    });
    assert!(frames > 0);
}

#[test]
fn a_discovery_that_is_told_to_stop_does() {
    let folder = TempDir::new().unwrap();
    let place = Place::Cable(folder.path().join("san"));
    let options = DiscoveryOptions {
        mode: FcoeMode::Fabric,
        retries: 3600,
    };
    let mut ports = [QueriedPort::open(&place.to_string(), options).unwrap()];
    discover(&mut ports, &AtomicBool::new(true)).unwrap();
}

/// Waits for a Request, and answers it.
fn answer(switch: &mut EtherPort) {
    let mut asked = None;
    while asked.is_none() {
        std::thread::yield_now();
        switch.receive(|frame, _| asked = Some(EthernetHeader::parse(frame).unwrap().0.src));
    }
    let told = [
        Descriptor::Mac(FCF),
        Descriptor::Vlan(152),
        Descriptor::Vlan(200),
    ];
    let answer = frame(asked.unwrap(), FipOperation::VlanNotification, &told);
    switch.slot(answer.len()).unwrap().copy_from_slice(&answer);
    switch.commit(answer.len());
    assert!(switch.flush().unwrap());
}
