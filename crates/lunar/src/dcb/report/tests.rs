//! Why FCoE is not lossless, by what is known of the card.

use std::time::Duration;

use runtime::lldp::{InterfaceDcb, LinkStatus, Lldp, LldpConfig, LldpMode};

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
        assert!(problem.contains("at the switch port"), "{problem}");
    }
}

#[test]
fn the_time_is_that_of_listening() {
    assert_eq!(DcbReport::of("eth0", &silent(None)).listened_s, 2);
}
