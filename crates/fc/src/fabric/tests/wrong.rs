//! What breaks a rule is told and changes nothing; and nobody can keep the switch busy.

use super::rig::{Parts, ask, fcf, fip_frame, host, ms, receive, sent, switch, told};
use crate::fabric::Switch;
use crate::wire::els::{Code, Els};
use crate::wire::ethernet::Mac;
use crate::wire::fip::{Descriptor, DescriptorType, FipOperation, Flags};
use crate::wire::frame::OxId;
use crate::wire::names::{FcId, Wwn};

const FIRST: FcId = FcId(0x01_0100);

/// The rule that a message of host 1 breaks. It is answered by nothing.
fn rule(parts: Parts<'_>) -> String {
    let mut switch = switch();
    let lines = ask(&mut switch, 1, 0, &host(0, 1).frame(fcf(1, 0), parts));
    assert!(lines.is_empty(), "{lines:?}");
    told(&mut switch).join("; ")
}

#[test]
fn descriptors_are_there_once() {
    let (mac, name) = (Descriptor::Mac(host(0, 1).mac), Descriptor::Name(Wwn(1)));
    let size = Descriptor::MaxFcoeSize(2158);
    let missing = "eth0: host1: a FIP message to an FCF with a descriptor missing, twice, or out \
                   of place";
    let solicit = |parts: &[_]| rule((FipOperation::Solicitation, Flags::FPMA, parts));
    assert_eq!(solicit(&[mac, name]), missing);
    assert_eq!(solicit(&[mac, size]), missing);
    assert_eq!(solicit(&[name, size]), missing);
    assert_eq!(solicit(&[mac, mac, name, size]), missing);
    assert_eq!(solicit(&[mac, name, size, Descriptor::Vlan(1)]), missing);
    let small = Descriptor::MaxFcoeSize(301);
    let rule_of_size = "eth0: host1: a Max FCoE Size too small for 256 bytes of payload";
    assert_eq!(solicit(&[mac, name, small]), rule_of_size);
    let none = |operation| rule((operation, Flags::FPMA, &[]));
    assert_eq!(none(FipOperation::VlanRequest), missing);
    assert_eq!(none(FipOperation::KeepAlive), missing);
    let els = "eth0: host1: an ELS in FIP with a descriptor missing, twice, or out of place";
    assert_eq!(none(FipOperation::ElsRequest), els);
    assert!(
        none(FipOperation::ElsReply).is_empty(),
        "none was asked for"
    );
    assert!(none(FipOperation::Beacon).is_empty(), "VN2VN");
}

/// What a port may ignore does not spoil a message.
#[test]
fn unknown_descriptors_that_are_not_critical_are_ignored() {
    let mut switch = switch();
    let unknown = |number| Descriptor::Unknown {
        kind: DescriptorType(number),
        body: &[0; 6],
    };
    let host = host(0, 1);
    let parts = [Descriptor::Mac(host.mac), unknown(200), unknown(200)];
    let request = |parts| {
        host.frame(
            Mac::ALL_FCF,
            (FipOperation::VlanRequest, Flags::FPMA, parts),
        )
    };
    assert_eq!(ask(&mut switch, 1, 0, &request(&parts)).len(), 1);
    let parts = [Descriptor::Mac(host.mac), unknown(100)];
    assert!(ask(&mut switch, 1, 0, &request(&parts)).is_empty());
}

#[test]
fn an_address_in_a_message_is_its_senders() {
    let other = "eth0: host1: a FIP message from a MAC address other than the one in it";
    let mac = Descriptor::Mac(Mac([2, 0, 0, 0, 0, 7]));
    let parts = [mac, Descriptor::Name(Wwn(1)), Descriptor::MaxFcoeSize(2158)];
    assert_eq!(
        rule((FipOperation::Solicitation, Flags::FPMA, &parts)),
        other
    );
    assert_eq!(
        rule((FipOperation::KeepAlive, Flags::FPMA, &parts[..1])),
        other
    );
}

/// Keep alives of a VN_Port come from its address, which is the one of its N_Port_ID.
#[test]
fn a_vn_port_keep_alive_comes_from_the_vn_port() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1);
    let mut frame = host.port_keep_alive(FIRST);
    frame[11] ^= 1;
    ask(&mut switch, 2, 0, &frame);
    assert!(told(&mut switch)[0].ends_with("other than the one in it"));
}

#[test]
fn logins_that_cannot_be_served_are_rejected() {
    let host = host(0, 1);
    let reject = |els: &Els, kind| {
        let mut switch = switch();
        let frame = host.els(kind, FcId::UNIDENTIFIED, 1, els);
        let line = ask(&mut switch, 1, 0, &frame).remove(0);
        assert!(switch.logins().next().is_none());
        assert_eq!(switch.fip_statistics().rejected, 1);
        line.split(' ').nth(5).unwrap().to_owned()
    };
    let mut login = host.parameters();
    login.receive_size = 128;
    assert_eq!(reject(&Els::Flogi(login), DescriptorType::FLOGI), "03/07");
    login = host.parameters();
    login.class_3.options = 0;
    assert_eq!(reject(&Els::Flogi(login), DescriptorType::FLOGI), "03/07");
    for (wwpn, wwnn) in [(Wwn(0), Wwn(1)), (Wwn(1), Wwn(0))] {
        login = host.parameters();
        (login.wwpn, login.wwnn) = (wwpn, wwnn);
        assert_eq!(reject(&Els::Flogi(login), DescriptorType::FLOGI), "03/0d");
    }
    let flogi = Els::Flogi(host.parameters());
    assert_eq!(reject(&flogi, DescriptorType::FDISC), "0b/2c");
    assert_eq!(
        reject(&Els::Other(Code(0x10)), DescriptorType::ELP),
        "0b/2c"
    );
    let short = Els::Other(Code::FLOGI);
    assert_eq!(reject(&short, DescriptorType::FLOGI), "07/2d");
}

/// The N_Port_ID of another ENode is not logged out.
#[test]
fn a_logo_for_another_is_rejected() {
    let mut switch = switch();
    host(0, 1).log_in(&mut switch, 1);
    assert_eq!(
        ask(&mut switch, 2, 0, &host(0, 2).logo(FIRST, 1)),
        ["fcf1.0 > host2 ElsReply LS_RJT 03/00 of 0001 to 010100"]
    );
    assert!(told(&mut switch).is_empty());
}

#[test]
fn requests_are_to_the_fcf_and_to_the_f_port() {
    let mut switch = switch();
    let host = host(0, 1);
    let mut to_all = host.flogi(1);
    to_all[..6].copy_from_slice(&Mac::ALL_FCF.0);
    assert!(ask(&mut switch, 1, 0, &to_all).is_empty());
    let mut to_other = host.flogi(1);
    // D_ID of the ELS: behind two headers, and the head of its descriptor.
    to_other[14 + 10 + 4 + 3] = 0xfc;
    assert_eq!(
        ask(&mut switch, 1, 0, &to_other),
        ["fcf1.0 > host1 ElsReply LS_RJT 03/00 of 0001 to 000000"]
    );
}

/// More than 128 messages a second of one sender are not looked at, which is told once. Another
/// one is heard, and those with logins are.
#[test]
fn a_flood_does_not_silence_others() {
    let mut switch = switch();
    let quiet = host(0, 2);
    quiet.log_in(&mut switch, 1);
    for _ in 0..2_000 {
        receive(&mut switch, 2, 0, &mut host(0, 1).solicitation(2500));
    }
    assert_eq!(sent(&mut switch, 0).len(), 512);
    assert_eq!(told(&mut switch).len(), 1);
    assert_eq!(switch.fip_statistics().dropped, 2_000 - 512);
    for number in 0..=255 {
        for _ in 0..600 {
            let mac = Mac([2, 0, 0, 0, 1, number]);
            let parts = (FipOperation::VlanRequest, Flags::FPMA, &[][..]);
            receive(&mut switch, 3, 0, &mut fip_frame(mac, Mac::ALL_FCF, parts));
        }
    }
    told(&mut switch);
    receive(&mut switch, 10_000, 0, &mut quiet.keep_alive());
    switch.expire(ms(25_000));
    assert!(told(&mut switch).is_empty());
}

/// The number of the ELS comes back, whatever it is.
#[test]
fn answers_have_the_number_of_the_request() {
    let mut switch = switch();
    let host = host(0, 1);
    let kind = (DescriptorType::FLOGI, FcId::UNIDENTIFIED, OxId::UNASSIGNED);
    let frame = host.els_with(Flags::FPMA, kind, &Els::Flogi(host.parameters()));
    assert!(ask(&mut switch, 1, 0, &frame)[0].contains("of ffff"));
}

/// What waits to be sent is bounded, as no more is taken from a port.
#[test]
fn messages_that_are_not_taken_are_lost() {
    let mut switch: Switch = switch();
    for at in 0..10_000 {
        let number = (at % 250) as u8;
        receive(&mut switch, at * 10, 0, &mut host(0, number).vlan_request());
    }
    assert_eq!(sent(&mut switch, 0).len(), 4096 + 256);
}
