//! What the ENode of Linux 6.1 insists on (fcoe_ctlr.c), and what it was seen to send.

use super::rig::{
    Host, ask, fcf, fcoe_frame, frames, host, ms, open, quiet, receive, sent, switch, switch_of,
    told, vn,
};
use crate::fabric::{DropReason, Switch, SwitchConfig, Verdict};
use crate::fip::tests::captures;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::{FcId, Wwn};

/// The first frame that goes out at a port, when this has come in.
fn answer(switch: &mut Switch, port: u8, frame: &[u8]) -> Vec<u8> {
    receive(switch, 1, port, &mut frame.to_vec());
    frames(switch, port).remove(0)
}

fn message(frame: &[u8]) -> (EthernetHeader, FipMessage<'_>) {
    let (header, payload) = EthernetHeader::parse(frame).unwrap();
    (header, FipMessage::parse(payload).unwrap())
}

fn kinds(message: &FipMessage<'_>) -> Vec<u8> {
    let descriptors = message.descriptors().map(Result::unwrap);
    descriptors.map(|one| one.kind().0).collect()
}

/// Any other descriptor of a type below 128 spoils an Advertisement; without FP no FLOGI is sent,
/// and without S it is not usable.
#[test]
fn an_advertisement_has_five_descriptors_and_the_flags() {
    let mut switch = switch_of(1, &open(), 1);
    switch.expire(ms(0));
    let sent = frames(&mut switch, 0);
    let (_, cleared) = message(&sent[0]);
    assert_eq!(cleared.operation, FipOperation::ClearVirtualLinks);
    let (header, all) = message(&sent[1]);
    assert_eq!(header.dst, Mac::ALL_ENODE);
    let (flags, five) = (
        Flags::FPMA.with(Flags::AVAILABLE).with(Flags::F_PORT),
        [1, 2, 4, 5, 12],
    );
    assert_eq!((all.flags, kinds(&all)), (flags, five.to_vec()));
    let solicited = answer(&mut switch, 0, &host(0, 1).solicitation(2500));
    let (header, solicited) = message(&solicited);
    assert_eq!(header.dst, host(0, 1).mac);
    assert_eq!(solicited.flags, flags.with(Flags::SOLICITED));
    assert_eq!(kinds(&solicited), five);
}

/// Otherwise it selects none.
#[test]
fn all_ports_tell_the_same_fabric() {
    let mut switch = switch();
    let mut fabric = |port| {
        let frame = answer(&mut switch, port, &host(port, 1).solicitation(2500));
        let (_, message) = message(&frame);
        let mut all = message.descriptors().map(Result::unwrap);
        let fabric = all.find(|one| matches!(one, Descriptor::Fabric { .. }));
        format!("{:?}", fabric.unwrap())
    };
    assert_eq!(fabric(0), fabric(1));
}

/// The ELS is first, the address second, and a valid one in each LS_ACC, that of LOGO too.
#[test]
fn replies_have_the_els_and_then_the_address() {
    let mut switch = switch();
    let (host, fc_id) = (host(0, 1), FcId(0x01_0100));
    let requests = [
        (7, host.flogi(1), fc_id),
        (8, host.named(9).fdisc(2), FcId(0x01_0101)),
        (9, host.logo(fc_id, 3), fc_id),
    ];
    for (kind, request, granted) in requests {
        let frame = answer(&mut switch, 0, &request);
        let (header, reply) = message(&frame);
        assert_eq!((header.dst, header.src), (host.mac, fcf(1, 0)));
        assert_eq!(
            (reply.operation, kinds(&reply)),
            (FipOperation::ElsReply, vec![kind, 2])
        );
        let last = reply.descriptors().last().unwrap();
        assert_eq!(last, Ok(Descriptor::Mac(vn(granted))));
    }
}

/// FCoE comes from the FCF-MAC that it selected, to an address that ends in the D_ID.
#[test]
fn fcoe_comes_from_its_fcf_to_the_address_of_the_d_id() {
    let mut switch = switch();
    let (from, to) = (
        host(0, 1).log_in(&mut switch, 1),
        host(1, 2).log_in(&mut switch, 1),
    );
    let mut frame = fcoe_frame(0, from, to, 64);
    let Verdict::Forward(way) = receive(&mut switch, 2, 0, &mut frame) else {
        panic!();
    };
    assert_eq!(way.header.src, fcf(1, 1));
    assert_eq!(way.header.dst.0[3..6], to.bytes());
}

/// Its FCF-MAC as source and in the descriptor, its Switch_Name, and the port by address, ID and
/// WWPN.
#[test]
fn a_clear_virtual_links_names_the_switch_and_the_port() {
    let mut switch = switch();
    let (host, fc_id) = (host(0, 1), FcId(0x01_0100));
    let frame = answer(&mut switch, 0, &host.port_keep_alive(fc_id));
    let (header, clear) = message(&frame);
    assert_eq!((header.src, header.dst), (fcf(1, 0), host.mac));
    let expected = [
        Descriptor::Mac(fcf(1, 0)),
        Descriptor::Name(switch.switch_name()),
        Descriptor::VxPort {
            mac: vn(fc_id),
            fc_id,
            wwpn: host.wwpn,
        },
    ];
    assert!(clear.descriptors().eq(expected.map(Ok)));
}

/// Two kernels that hear no FCF for 8 s send FLOGI to this address. If each hears the other's, they
/// are in point-to-point mode until the link goes down. The address is the same in a fabric of
/// another FC-MAP, as the kernel knows none yet.
#[test]
fn an_flogi_without_fip_is_dropped_counted_and_told() {
    for fc_map in [Mac::FC_MAP, [0x0e, 0xfc, 7]] {
        let config = SwitchConfig { fc_map, ..open() };
        drops_flogi_without_fip(quiet(switch_of(1, &config, 2)));
    }
}

fn drops_flogi_without_fip(mut switch: Switch) {
    for _ in 0..2 {
        let mut frame = fcoe_frame(0, FcId::UNIDENTIFIED, FcId::FABRIC_F, 116);
        frame[..6].copy_from_slice(&[0x0e, 0xfc, 0, 0xff, 0xff, 0xfe]);
        frame[6..12].copy_from_slice(&host(0, 1).mac.0);
        let verdict = receive(&mut switch, 1, 0, &mut frame);
        assert_eq!(verdict, Verdict::Dropped(DropReason::PointToPoint));
    }
    let told = told(&mut switch);
    assert!(
        told[0].starts_with("eth0: host1: an FLOGI without FIP"),
        "{told:?}"
    );
    assert_eq!(told.len(), 1);
    let (_, _, counters) = switch.counters().next().unwrap();
    assert_eq!(counters.dropped(DropReason::PointToPoint), 2);
}

/// As it was captured: fipvlan, and the kernel that looks for a fabric on an interface and on a
/// VLAN of it.
#[test]
fn what_the_kernel_sent_is_answered() {
    let config = SwitchConfig {
        vlan: Some(100),
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    let all = captures::fabric();
    let lines: Vec<_> = all[..3]
        .iter()
        .map(|one| ask(&mut switch, 1, 0, &one.bytes))
        .collect();
    let host = "52:54:00:eb:d1:00";
    assert_eq!(lines[0], [format!("fcf1.0 > {host} VlanNotification 100")]);
    assert_eq!(
        lines[1],
        [format!("fcf1.0 > {host} Advertisement A S, 2172 bytes")]
    );
    assert!(
        lines[2].is_empty(),
        "a VLAN that this port does not speak: {lines:?}"
    );
    assert!(told(&mut switch).is_empty());
}

/// The Notification that fipvlan accepted, from another FCF.
#[test]
fn a_vlan_notification_is_the_one_that_fipvlan_accepts() {
    let config = SwitchConfig {
        vlan: Some(100),
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    let all = captures::fabric();
    let mut ours = answer(&mut switch, 0, &all[0].bytes);
    let theirs = &all[3].bytes;
    let their_fcf = [0x0e, 0xfc, 0xaa, 0, 0, 1];
    ours[6..12].copy_from_slice(&their_fcf);
    ours[26..32].copy_from_slice(&their_fcf);
    // It had no flags.
    ours[22..24].fill(0);
    assert_eq!(&ours, theirs);
}

/// NPIV: `vport_create` sends an FDISC from the ENode that has logged in.
#[test]
fn a_vport_is_logged_in() {
    let mut switch = switch();
    let host: Host = host(0, 1);
    host.log_in(&mut switch, 1);
    let vport = Host {
        wwpn: Wwn(0x2001_0200_0000_0001),
        ..host
    };
    let lines = ask(&mut switch, 2, 0, &vport.fdisc(4));
    assert_eq!(
        lines,
        ["fcf1.0 > host1 ElsReply LS_ACC of 0004 to 010101 vn:010101"]
    );
    assert!(sent(&mut switch, 1).is_empty());
}
