//! FCFs, ports that log in without FIP, and stations that send without end.

use std::time::Duration;

use super::rig::{OWN, Segment, probe};
use crate::path_probe::OUTSIDE_FIP;
use crate::tests::{config, fip_frame, frame, login};
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use crate::wire::names::{FcId, Wwn};

fn alone() -> Segment {
    let mut segment = Segment::new(probe(2500), Vec::new(), |_, _| true);
    segment.run(Duration::from_secs(2));
    segment
}

/// The FLOGI of Linux that has heard no FIP, from this station.
fn flogi(low: u16) -> Vec<u8> {
    let flogi = Els::Flogi(login(config(low).wwpn, config(low).wwnn));
    let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
    let ports = (FcId::UNIDENTIFIED, FcId::FABRIC_F);
    let header = FrameHeader::request(kind, ports, OxId(0));
    let ethernet = EthernetHeader::new(config(low).mac, OUTSIDE_FIP, ethernet::FCOE);
    frame(&ethernet, (Sof::I3, Eof::T), &header, &flogi.encode())
}

#[test]
fn an_flogi_outside_of_fip_is_noted() {
    let mut segment = alone();
    segment.comes(&flogi(0x41));
    segment.comes(&flogi(0x41));
    segment.comes(&flogi(0x42));
    let noted: Vec<_> = segment.probe.outside_fip().collect();
    let row = |low| (config(low).mac, config(low).wwpn);
    assert_eq!(noted, [row(0x41), row(0x42)]);
    assert_eq!(OUTSIDE_FIP.to_string(), "0e:fc:00:ff:ff:fe");
}

/// An Advertisement from this FCF-MAC, padded to so many bytes behind the Ethernet header.
fn advertisement(to: Mac, flags: Flags, len: usize) -> Vec<u8> {
    let descriptors = [
        Descriptor::Priority(128),
        Descriptor::Mac(Mac([2, 0, 0, 0, 0xf, 0xcf])),
        Descriptor::Name(Wwn(0x1000_0200_0000_0fcf)),
    ];
    let header = EthernetHeader::new(Mac([2, 0, 0, 0, 0xf, 0xcf]), to, ethernet::FIP);
    let mut frame = fip_frame(&header, (FipOperation::Advertisement, flags, &descriptors));
    frame.resize(frame.len().max(header.len() + len), 0);
    frame
}

#[test]
fn fcfs_are_solicited_and_the_length_of_their_answer_counts() {
    let mut segment = alone();
    let solicits = |frame: &&Vec<u8>| frame[..6] == [0x01, 0x10, 0x18, 0x01, 0x00, 0x02];
    assert!(segment.seen.iter().filter(solicits).count() >= 2);
    let group = Mac([0x01, 0x10, 0x18, 0x01, 0x00, 0x01]);
    segment.comes(&advertisement(group, Flags::F_PORT, 0));
    let fcf = |segment: &Segment| *segment.probe.fcfs().next().unwrap();
    assert_eq!(fcf(&segment).answer, None);
    assert_eq!(fcf(&segment).name, Some(Wwn(0x1000_0200_0000_0fcf)));
    let solicited = Flags(Flags::F_PORT.0 | Flags::SOLICITED.0);
    segment.comes(&advertisement(OWN, solicited, 2158));
    assert_eq!(fcf(&segment).answer, Some(2158));
    assert_eq!(segment.probe.fcfs().count(), 1);
}

/// An FCF of whose frames only short ones come in is heard of all the same.
#[test]
fn an_fcf_is_asked_for_a_short_answer_too() {
    let segment = alone();
    let to_fcfs = |frame: &&Vec<u8>| frame[..6] == [0x01, 0x10, 0x18, 0x01, 0x00, 0x02];
    let sizes = segment.seen.iter().filter(to_fcfs).map(|frame| {
        let (_, payload) = EthernetHeader::parse(frame).unwrap();
        let message = FipMessage::parse(payload).unwrap();
        let last = message.descriptors().last().unwrap().unwrap();
        let Descriptor::MaxFcoeSize(size) = last else {
            panic!("{last:?}");
        };
        size
    });
    let sizes: Vec<_> = sizes.take(3).collect();
    assert_eq!(sizes, [2158, 512, 2158][..sizes.len()]);
    assert!(sizes.len() >= 2);
    let mut segment = segment;
    let solicited = Flags(Flags::F_PORT.0 | Flags::SOLICITED.0);
    segment.comes(&advertisement(OWN, solicited, 512));
    let fcf = segment.probe.fcfs().next().unwrap();
    assert_eq!(fcf.answer, None, "full frames do not come in");
}

#[test]
fn stations_without_end_are_not_all_remembered() {
    let mut segment = alone();
    for low in 0x100..0x1000 {
        segment.comes(&flogi(low));
        let mut advertisement = advertisement(OWN, Flags::SOLICITED, 0);
        advertisement[10..12].copy_from_slice(&low.to_be_bytes());
        segment.comes(&advertisement);
    }
    assert_eq!(segment.probe.outside_fip().count(), 256);
    assert_eq!(segment.probe.fcfs().count(), 256);
}

#[test]
fn what_is_cut_short_anywhere_is_passed_over() {
    let mut segment = alone();
    for whole in [flogi(0x41), advertisement(OWN, Flags::SOLICITED, 60)] {
        for len in 0..whole.len() {
            segment
                .probe
                .receive(Duration::from_secs(9), &whole[..len], None);
        }
    }
    assert_eq!(segment.probe.outside_fip().count(), 0);
}
