//! Which FCF is chosen of several.

use super::rig::{Rig, Says, fcf, ms};
use crate::fip::enode::{FabricConfig, FcfPin};
use crate::wire::names::Wwn;

/// An FCF of another fabric.
fn other_fabric(number: u8) -> Says {
    Says {
        fabric_name: Wwn(0x2099_02ff_0000_0002),
        ..fcf(number)
    }
}

/// To which FCF the FLOGI goes when these have answered.
fn chosen(fabric: FabricConfig, heard: &[Says]) -> (Vec<String>, Vec<String>) {
    let mut rig = Rig::new(fabric);
    rig.sent();
    for says in heard {
        rig.hear(&says.solicited().advertisement());
    }
    (rig.run(ms(600)), rig.notices())
}

#[test]
fn the_lowest_priority_value_then_the_lowest_address() {
    let better = Says {
        priority: 1,
        ..fcf(3)
    };
    let any = FabricConfig::default();
    let (sent, _) = chosen(any, &[fcf(2), better, fcf(1)]);
    assert_eq!(
        sent,
        ["  500 enode > fcf3 ElsRequest FLOGI 000000 > fffffe"]
    );
    let (sent, _) = chosen(any, &[fcf(2), fcf(1)]);
    assert_eq!(
        sent,
        ["  500 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn a_better_one_that_comes_later_is_not_changed_over_to() {
    let mut rig = Rig::up_with(fcf(2));
    let better = Says {
        priority: 0,
        ..fcf(1)
    };
    rig.hear(&better.solicited().advertisement());
    assert_eq!(rig.run(ms(5000)).len(), 0);
    assert_eq!(rig.told().len(), 0);
    rig.hear(&fcf(2).clears(&[]));
    assert_eq!(
        rig.sent(),
        [" 5000 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn of_two_fabrics_none_is_taken_and_both_are_named() {
    let (sent, notices) = chosen(FabricConfig::default(), &[fcf(1), other_fabric(2)]);
    assert_eq!(sent.len(), 0);
    assert_eq!(
        notices,
        [
            "2 fabrics on this Ethernet: choose by fabric=20:98:02:ff:00:00:00:01 or \
             fcf=02:ff:00:00:00:01; fabric=20:99:02:ff:00:00:00:02 or fcf=02:ff:00:00:00:02"
        ]
    );
}

#[test]
fn two_fabrics_are_told_once_until_one_is_gone() {
    let mut rig = Rig::new(FabricConfig::default());
    for second in 0..30 {
        rig.run(ms(second * 1000));
        rig.hear(&fcf(1).solicited().advertisement());
        rig.hear(&other_fabric(2).solicited().advertisement());
    }
    assert_eq!(rig.notices().len(), 1);
    let mut lines = Vec::new();
    for second in 30..60 {
        lines.extend(rig.run(ms(second * 1000)));
        rig.hear(&fcf(1).advertisement());
    }
    // The other one has been silent for 20 s.
    let flogi = lines.iter().find(|line| line.contains("FLOGI"));
    assert_eq!(
        flogi.unwrap(),
        "49500 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"
    );
}

#[test]
fn fc_maps_that_differ_are_two_fabrics() {
    let other = Says {
        fc_map: [0x0e, 0xfc, 1],
        ..fcf(2)
    };
    let (sent, notices) = chosen(FabricConfig::default(), &[fcf(1), other]);
    assert_eq!((sent.len(), notices.len()), (0, 1));
}

#[test]
fn what_is_configured_is_taken_whatever_else_there_is() {
    let pins = [
        (Some(FcfPin::Mac(fcf(2).mac)), None),
        (Some(FcfPin::Switch(fcf(2).switch_name)), None),
        (None, Some(other_fabric(2).fabric_name)),
    ];
    for (fcf_pin, fabric) in pins {
        let config = FabricConfig {
            discovers_vlan: false,
            fcf: fcf_pin,
            fabric,
        };
        let (sent, notices) = chosen(config, &[fcf(1), other_fabric(2), fcf(3)]);
        assert_eq!(
            sent,
            ["  500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"],
            "{config:?}"
        );
        assert_eq!(notices.len(), 0);
    }
}

#[test]
fn what_is_configured_and_not_there_is_told_with_what_is_there() {
    let config = FabricConfig {
        fcf: Some(FcfPin::Mac(fcf(9).mac)),
        ..FabricConfig::default()
    };
    let (sent, notices) = chosen(config, &[fcf(1)]);
    assert_eq!(sent.len(), 0);
    assert_eq!(
        notices,
        [
            "no FCF with fcf=02:ff:00:00:00:09; there is fabric=20:98:02:ff:00:00:00:01 or \
             fcf=02:ff:00:00:00:01"
        ]
    );
}

#[test]
fn fcfs_are_named_by_address_or_name() {
    let by_mac = "00:0d:ec:6d:8f:00".parse();
    assert_eq!(by_mac, Ok(FcfPin::Mac("000dec6d8f00".parse().unwrap())));
    let by_name = "20:98:00:0d:ec:6d:8f:01".parse();
    assert_eq!(by_name, Ok(FcfPin::Switch(Wwn(0x2098_000d_ec6d_8f01))));
    assert!("switch".parse::<FcfPin>().is_err());
}
