//! What is told of both ends, and why FCoE is not lossless.

use std::time::Duration;

use runtime::lldp::{
    DcbApp, DcbPfc, EthernetHeader, InterfaceDcb, LLDP, LinkStatus, Lldp, LldpConfig, LldpMode, Mac,
};

use super::super::text::written;
use super::*;

/// Nothing was heard at a port whose card has this.
fn silent(card: Option<InterfaceDcb>) -> LldpView {
    let config = LldpConfig {
        mode: LldpMode::Listen,
        mac: "02:00:00:00:00:01".parse().unwrap(),
        port_id: "eth0".to_owned(),
        port_description: String::new(),
        system_name: String::new(),
        system_description: String::new(),
        dcb: card.as_ref().map(runtime::lldp::settings),
    };
    LldpView {
        mac: config.mac,
        listened: Duration::from_millis(2900),
        link: LinkStatus {
            up: true,
            is_gone: false,
            mtu: 2500,
        },
        card,
        agent: Lldp::new(config, Duration::ZERO),
        violations: Vec::new(),
    }
}

fn card(dcbx: u8) -> InterfaceDcb {
    InterfaceDcb {
        dcbx,
        ..InterfaceDcb::default()
    }
}

#[test]
fn the_firmware_is_told_where_it_keeps_lldp() {
    let told = |card| DcbReport::of("eth0", &silent(card)).problem.unwrap();
    let kept = told(Some(card(InterfaceDcb::LLD_MANAGED | InterfaceDcb::IEEE)));
    assert!(
        kept.contains("the firmware of this NIC keeps LLDP"),
        "{kept}"
    );
    assert!(!kept.contains("switch"), "{kept}");
    for card in [None, Some(card(InterfaceDcb::HOST | InterfaceDcb::IEEE))] {
        let problem = told(card);
        assert!(problem.contains("at the other end"), "{problem}");
    }
}

#[test]
fn the_time_is_that_of_listening() {
    assert_eq!(DcbReport::of("eth0", &silent(None)).listened_s, 2);
}

/// What an LLDP agent of this address sends, with these TLVs of organizations.
fn lldpdu(number: u8, told: &[&[u8]]) -> Vec<u8> {
    let tlv = |kind: u8, value: &[u8]| [&[kind << 1, value.len() as u8], value].concat();
    let mut bytes = tlv(1, &[4, 2, 0, 0, 0, 0, number]);
    bytes.extend(tlv(2, &[5, b's', b'w', b'p', b'0' + number]));
    bytes.extend(tlv(3, &[0, 120]));
    told.iter().for_each(|value| bytes.extend(tlv(127, value)));
    bytes.extend([0, 0]);
    bytes
}

/// The same port, after it has heard these LLDPDUs, each of an agent of its own.
fn heard(told: &[&[&[u8]]]) -> LldpView {
    let mut view = silent(Some(lossless_card()));
    view.agent.link(Duration::ZERO, true);
    for (number, told) in (2..).zip(told) {
        let src = format!("02:00:00:00:00:0{number}").parse().unwrap();
        let header = EthernetHeader::new(src, Mac::NEAREST_BRIDGE, LLDP);
        let taken = view
            .agent
            .receive(Duration::ZERO, &header, &lldpdu(number, told));
        taken.unwrap();
    }
    view
}

/// A card that has PFC for priority 3, and FCoE there. It is not willing.
fn lossless_card() -> InterfaceDcb {
    InterfaceDcb {
        pfc: Some(DcbPfc {
            classes_max: 8,
            enabled: 8,
            ..DcbPfc::default()
        }),
        apps: vec![DcbApp {
            selector: 1,
            priority: 3,
            protocol: 0x8906,
        }],
        ..card(InterfaceDcb::HOST | InterfaceDcb::IEEE)
    }
}

/// PFC of priorities 3 and 4, and FCoE at priority 3 (IEEE 802.1Q).
const IEEE_TOLD: [&[u8]; 2] = [
    &[0, 0x80, 0xc2, 11, 8, 0x18],
    &[0, 0x80, 0xc2, 12, 0, 0x61, 0x89, 0x06],
];

/// Control; PFC enabled for priority 4, not willing; FCoE enabled at priority 3, not willing.
const CEE_TOLD: &[u8] = &[
    0, 0x1b, 0x21, 2, //
    2, 10, 0, 0, 0, 0, 0, 7, 0, 0, 0, 5, //
    6, 6, 0, 0, 0x80, 0, 0x10, 8, //
    8, 10, 0, 0, 0x80, 0, 0x89, 0x06, 0, 0x1b, 0x21, 8,
];

/// What `lunar dcb` prints below this heading.
fn section(view: &LldpView, heading: &str) -> String {
    let page = written(&DcbReport::of("eth0", view));
    let (_, rest) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("{heading:?} is not in {page}"));
    rest.split("\n\n").next().unwrap_or_default().to_owned()
}

#[test]
fn two_neighbours_are_named_and_nothing_is_operational() {
    let view = heard(&[&IEEE_TOLD, &[]]);
    let report = DcbReport::of("eth0", &view);
    let told = "several LLDP neighbors are heard, so DCBX is off: leave one at this link: \
                02:00:00:00:00:02 swp2 and 02:00:00:00:00:03 swp3";
    assert_eq!(report.problem.as_deref(), Some(told));
    assert!(report.operational.is_none());
    assert!(written(&report).contains(told));
}

#[test]
fn what_is_operational_is_shown_for_both_ends_in_the_dialect_of_ieee() {
    let view = heard(&[&IEEE_TOLD]);
    let expected = "    PFC Enabled             3
    PFC Enabled at Neighbor 3 4
    ETS
      Priority to Class     0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
      Class Bandwidth       0% 0% 0% 0% 0% 0% 0% 0%
      Class Selection       0:strict 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict
    Application             EtherType 8906h (FCoE), priority 3
    Application at Neighbor EtherType 8906h (FCoE), priority 3";
    assert_eq!(section(&view, "Operational (IEEE)").trim_end(), expected);
    assert_eq!(view.agent.dcbx().lossless(), Ok(3));
}

#[test]
fn features_of_cee_that_do_not_go_together_are_named() {
    let view = heard(&[&[CEE_TOLD]]);
    let operational = section(&view, "Operational (CEE)");
    for line in [
        "    PFC Enabled             none",
        "    PFC Enabled at Neighbor none",
        "    Application             EtherType 8906h (FCoE), priority 3",
        "    Application at Neighbor EtherType 8906h (FCoE), priority 3",
        "    Incompatible            PFC",
    ] {
        assert!(
            operational.lines().any(|it| it == line),
            "{line}: {operational}"
        );
    }
    let peer = section(&view, "Neighbor 02:00:00:00:00:02, CEE");
    assert!(peer.contains("    PFC Enabled             4\n"), "{peer}");
}
