//! Logins that are rejected are told, with the reason in words.

use super::rig::{ask, fcf, host, ms, open, quiet, receive, sent, switch, switch_of, told, vn};
use crate::fabric::{PortNumber, SwitchConfig};
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::fip::DescriptorType;
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use crate::wire::names::{FcId, Wwn};

/// What is told when this FLOGI of host 1 has come.
fn flogi(change: impl FnOnce(&mut crate::wire::els::ServiceParameters)) -> Vec<String> {
    let mut switch = switch();
    let mut login = host(0, 1).parameters();
    change(&mut login);
    let frame = host(0, 1).els(
        DescriptorType::FLOGI,
        FcId::UNIDENTIFIED,
        1,
        &Els::Flogi(login),
    );
    ask(&mut switch, 1, 0, &frame);
    told(&mut switch)
}

#[test]
fn an_flogi_that_cannot_be_served() {
    let of = |wwpn: u64, why: &str| [format!("eth0: host1: FLOGI of {}: {why}", Wwn(wwpn))];
    let wwpn = host(0, 1).wwpn.0;
    assert_eq!(
        flogi(|login| login.receive_size = 128),
        of(wwpn, "it has no class 3, or takes less than 256 bytes")
    );
    assert_eq!(
        flogi(|login| login.wwpn = Wwn(0)),
        of(0, "its WWPN or WWNN is zero")
    );
}

#[test]
fn a_wwpn_that_another_has_and_an_enode_without_a_login() {
    let mut switch = switch();
    let (one, other) = (host(0, 1), host(1, 2));
    one.log_in(&mut switch, 1);
    ask(&mut switch, 2, 1, &other.fdisc(1));
    let other = super::rig::Host {
        wwpn: one.wwpn,
        ..other
    };
    ask(&mut switch, 2, 1, &other.flogi(2));
    let expected = [
        "eth1: host2: FDISC of 20:00:02:00:00:00:00:02: its ENode has not logged in by FLOGI",
        "eth1: host2: FLOGI of 20:00:02:00:00:00:00:01: its WWPN is logged in already",
    ];
    assert_eq!(told(&mut switch), expected);
}

#[test]
fn a_standby_says_why() {
    let config = SwitchConfig {
        standby: true,
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 2));
    ask(&mut switch, 1, 0, &host(0, 1).flogi(1));
    assert!(told(&mut switch)[0].ends_with("this switch is a standby"));
}

/// The name in a PLOGI to a service is that of the login to the fabric.
#[test]
fn a_plogi_of_another_name() {
    let mut switch = switch();
    let one = host(0, 1);
    let fc_id = one.log_in(&mut switch, 1);
    let plogi = Els::Plogi(one.named(9).parameters()).encode();
    let ethernet = EthernetHeader::new(vn(fc_id), fcf(1, 0), ethernet::FCOE);
    let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
    let ids = (fc_id, FcId::DIRECTORY);
    let header = FrameHeader::request(kind, ids, OxId(3));
    let mut frame = crate::tests::frame(&ethernet, (Sof::I3, Eof::T), &header, &plogi);
    receive(&mut switch, 2, 0, &mut frame);
    let expected =
        ["eth0: vn:010100: PLOGI of 20:00:02:00:00:00:00:01: its WWPN is not that of its FLOGI"];
    assert_eq!(told(&mut switch), expected);
}

/// 16 at once, and one a second; the others are counted. Other ports of the switch have their own.
#[test]
fn many_rejected_logins_are_told_seldom() {
    let mut switch = switch();
    for at in 0..10_000 {
        receive(&mut switch, at, 0, &mut host(0, (at % 256) as u8).fdisc(1));
        sent(&mut switch, 0);
    }
    assert_eq!(told(&mut switch).len(), 16 + 9);
    assert_eq!(switch.fip_statistics().rejected, 10_000);
    switch.receive(ms(10_000), PortNumber(1), &{
        let mut frame = host(1, 1).fdisc(1);
        frame[..6].copy_from_slice(&fcf(1, 1).0);
        frame
    });
    assert_eq!(told(&mut switch).len(), 1);
}
