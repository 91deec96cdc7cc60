//! How an ENode finds the fabric.

use super::rig::{
    Host, ask, fcf, fip_frame, frames, host, ms, open, port_config, quiet, sent, switch, switch_of,
    tag, told, wait,
};
use crate::fabric::{PortNumber, Switch, SwitchConfig, SwitchPortConfig};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::Wwn;

#[test]
fn each_port_advertises_at_once_and_each_period() {
    let mut switch = switch_of(1, &open(), 2);
    let both = [
        "fcf1.1 > enodes Advertisement A",
        "fcf1.1 > fcfs Advertisement A",
    ];
    let at_once = wait(&mut switch, 7_999, 1);
    assert_eq!(at_once[0], "fcf1.1 > enodes ClearVirtualLinks");
    assert_eq!(at_once[1..], both);
    let second = switch.next_deadline().unwrap();
    assert!((ms(8_000)..ms(8_100)).contains(&second), "{second:?}");
    assert_eq!(wait(&mut switch, 8_100, 1), both);
    assert!(wait(&mut switch, 16_000, 1).is_empty());
}

#[test]
fn a_port_whose_link_is_down_says_nothing() {
    let mut switch = switch();
    switch.link(ms(1), PortNumber(1), false);
    assert!(wait(&mut switch, 9_000, 1).is_empty());
    switch.link(ms(9_000), PortNumber(1), true);
    assert_eq!(wait(&mut switch, 9_000, 1).len(), 2);
}

/// What arrives of it shows what passes the Ethernet between.
#[test]
fn a_solicited_advertisement_is_as_long_as_the_longest_frame_that_both_take() {
    let mut switch = switch();
    let lines = |switch: &mut Switch, mtu| ask(switch, 1, 0, &host(0, 1).solicitation(mtu));
    let full = "fcf1.0 > host1 Advertisement A S, 2172 bytes";
    assert_eq!(lines(&mut switch, 2500), [full]);
    assert_eq!(lines(&mut switch, 9000), [full]);
    let short = "fcf1.0 > host1 Advertisement A S, 1512 bytes";
    assert_eq!(lines(&mut switch, 1500), [short]);
}

#[test]
fn an_advertisement_says_what_the_switch_is() {
    let config = SwitchConfig {
        priority: 7,
        fka_adv_period: ms(1_500),
        vlan: Some(152),
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    super::rig::receive(&mut switch, 1, 0, &mut host(0, 1).solicitation(2500));
    let frame = frames(&mut switch, 0).remove(0);
    let (_, payload) = EthernetHeader::parse(&frame).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    let descriptors: Vec<_> = message.descriptors().map(Result::unwrap).collect();
    let expected = [
        Descriptor::Priority(7),
        Descriptor::Mac(fcf(1, 0)),
        Descriptor::Name(Wwn(0x1000_0200_00fc_0100)),
        Descriptor::Fabric {
            vf_id: 0,
            fc_map: [0x0e, 0xfc, 0],
            name: Wwn(0x2098_0200_00fc_0100),
        },
        Descriptor::FkaAdvPeriod {
            disabled: false,
            period_ms: 1_500,
        },
    ];
    assert_eq!(descriptors, expected);
    assert_eq!(message.flags, Flags(0x8007));
}

/// A VLAN Request and its answer carry no tag, whatever all else carries.
#[test]
fn a_vlan_request_is_answered_without_a_tag() {
    let mut switch = Switch::new(&open(), ms(0), [1; 8]);
    let config = SwitchPortConfig {
        tag: Some(tag(152)),
        ..port_config(1, 0)
    };
    let port = switch.add_port(config);
    switch.link(ms(0), port, true);
    assert_eq!(
        wait(&mut switch, 0, 0)[1],
        "fcf1.0 > enodes Advertisement A, VLAN 152"
    );
    let asked = ask(&mut switch, 1, 0, &host(0, 1).vlan_request());
    assert_eq!(asked, ["fcf1.0 > host1 VlanNotification 152"]);
    let asked = ask(&mut switch, 1, 0, &host(0, 1).solicitation(2500));
    assert!(asked.is_empty(), "it has no tag");
    let told = ask(
        &mut switch,
        1,
        0,
        &tagged(&host(0, 1).solicitation(2500), 152),
    );
    assert_eq!(
        told,
        ["fcf1.0 > host1 Advertisement A S, VLAN 152, 2176 bytes"]
    );
}

fn tagged(frame: &[u8], vid: u16) -> Vec<u8> {
    let [high, low] = tag(vid).encode().to_be_bytes();
    [&frame[..12], &[0x81, 0, high, low], &frame[12..]].concat()
}

#[test]
fn the_vlan_of_the_fabric_goes_before_that_of_the_port() {
    let vlan = |vlan| {
        let mut switch = quiet(switch_of(1, &SwitchConfig { vlan, ..open() }, 1));
        ask(&mut switch, 1, 0, &host(0, 1).vlan_request()).remove(0)
    };
    assert_eq!(vlan(Some(100)), "fcf1.0 > host1 VlanNotification 100");
    assert_eq!(vlan(None), "fcf1.0 > host1 VlanNotification 0");
}

/// An FCF of others, as it presents itself.
fn other(number: u8, fabric: u64) -> Vec<u8> {
    let mac = Mac([2, 0, 0, 1, 0, number]);
    let parts = [
        Descriptor::Priority(1),
        Descriptor::Mac(mac),
        Descriptor::Name(Wwn(0x1000_0200_0001_0000 | u64::from(number))),
        Descriptor::Fabric {
            vf_id: 0,
            fc_map: Mac::FC_MAP,
            name: Wwn(fabric),
        },
        Descriptor::FkaAdvPeriod {
            disabled: false,
            period_ms: 8_000,
        },
    ];
    let flags = Flags::FPMA.with(Flags::AVAILABLE).with(Flags::F_PORT);
    fip_frame(
        mac,
        Mac::ALL_ENODE,
        (FipOperation::Advertisement, flags, &parts),
    )
}

#[test]
fn other_fcfs_on_the_ethernet_are_told_once() {
    let mut switch = switch();
    ask(&mut switch, 1, 0, &other(1, 9));
    ask(&mut switch, 8_001, 0, &other(1, 9));
    let rule = "an FCF of another fabric on this Ethernet; Linux then chooses neither";
    assert_eq!(
        told(&mut switch),
        [format!("eth0: 02:00:00:01:00:01: {rule}")]
    );
    let same = switch.fabric_name();
    ask(&mut switch, 8_002, 1, &other(2, same.0));
    let rule = "another FCF of this fabric; there is no link to it, so its ports are not seen here";
    assert_eq!(
        told(&mut switch),
        [format!("eth1: 02:00:00:01:00:02: {rule}")]
    );
    ask(&mut switch, 400_000, 0, &other(1, 9));
    assert_eq!(told(&mut switch).len(), 1, "it was away");
    for number in 0..=255 {
        ask(&mut switch, 400_001, 0, &other(number, 9));
    }
    assert_eq!(told(&mut switch).len(), 15, "more are not told");
}

/// Our own ports on one Ethernet are one switch.
#[test]
fn its_own_advertisements_say_nothing_to_it() {
    let mut switch = switch_of(1, &open(), 2);
    switch.expire(ms(0));
    for frame in frames(&mut switch, 0) {
        ask(&mut switch, 1, 1, &frame);
    }
    assert!(told(&mut switch).is_empty());
    assert!(switch.is_active());
    let mine: Host = host(0, 1);
    assert_eq!(sent(&mut switch, mine.port).len(), 0);
}
