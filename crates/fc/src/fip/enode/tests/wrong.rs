//! What FCFs must not say: it is told, and such an FCF is not used.

use super::rig::{ENODE, Rig, Says, fcf, ms};
use crate::fip::enode::FabricConfig;
use crate::wire::ethernet::Mac;
use crate::wire::fip::{Descriptor, FipOperation, Flags};
use crate::wire::names::Wwn;

/// Which rule an Advertisement breaks, and that nobody logs in for it.
#[track_caller]
fn refused(frame: &[u8], rule: &str) {
    let mut rig = Rig::new(FabricConfig::default());
    let violation = rig.try_hear(frame).unwrap_err();
    assert!(violation.rule.contains(rule), "{violation}");
    let lines = rig.run(ms(3000));
    assert!(
        lines.iter().all(|line| line.ends_with("Solicitation")),
        "{lines:?}"
    );
    assert_eq!(rig.enode.statistics().refused, 1);
}

#[test]
fn an_advertisement_of_values_that_cannot_work() {
    let good = fcf(1).solicited();
    for fc_map in [[0; 3], [0x0f, 0xfc, 0], [1, 0, 0]] {
        refused(&Says { fc_map, ..good }.advertisement(), "FC-MAP");
    }
    for period_ms in [0, 249, 90_001, u32::MAX] {
        refused(
            &Says { period_ms, ..good }.advertisement(),
            "FKA_ADV_PERIOD",
        );
    }
    let nameless = Wwn(0);
    let unnamed = Says {
        switch_name: nameless,
        ..good
    };
    refused(&unnamed.advertisement(), "Switch_Name");
    let unnamed = Says {
        fabric_name: nameless,
        ..good
    };
    refused(&unnamed.advertisement(), "Fabric_Name");
    let flags = Flags(4 | 2 | 1);
    refused(
        &Says { flags, ..good }.advertisement(),
        "neither fabric-provided",
    );
    let flags = Flags(0x8000 | 4 | 2);
    refused(&Says { flags, ..good }.advertisement(), "F flag");
}

#[test]
fn periods_at_the_ends_of_the_range_will_do() {
    for period_ms in [250, 90_000] {
        let says = Says {
            period_ms,
            ..fcf(1)
        };
        Rig::up_with(says);
    }
}

#[test]
fn an_advertisement_without_a_descriptor_or_with_one_twice() {
    let good = fcf(1).solicited();
    let all = good.descriptors();
    let send = |says: &[Descriptor<'_>]| {
        good.message(ENODE, FipOperation::Advertisement, good.flags, says)
    };
    for at in 0..all.len() {
        let mut some = all.to_vec();
        some.remove(at);
        refused(&send(&some), "missing, twice");
        refused(&send(&[&all[..], &all[at..=at]].concat()), "missing, twice");
    }
    refused(
        &send(&[&all[..], &[Descriptor::Vlan(5)]].concat()),
        "missing, twice",
    );
}

#[test]
fn an_advertisement_with_what_need_not_be_understood() {
    let good = fcf(1).solicited();
    let vendor = Descriptor::Vendor {
        id: [0; 8],
        data: &[],
    };
    let says = [&good.descriptors()[..], &[vendor]].concat();
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&good.message(ENODE, FipOperation::Advertisement, good.flags, &says));
    rig.run(ms(500));
    assert_eq!(rig.enode.fcfs().len(), 1);
}

#[test]
fn an_advertisement_of_another_address_than_its_sender() {
    let good = fcf(1).solicited();
    let says = good.descriptors();
    let liar = fcf(2).message(ENODE, FipOperation::Advertisement, good.flags, &says);
    refused(&liar, "MAC address other");
    let group = Says {
        mac: Mac([3, 0, 0, 0, 0, 1]),
        ..good
    };
    refused(&group.advertisement(), "MAC address other");
}

#[test]
fn an_fcf_that_takes_no_logins_is_not_logged_in_to() {
    let closed = Says {
        flags: Flags(0x8000 | 1),
        ..fcf(1)
    };
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&closed.solicited().advertisement());
    let lines = rig.run(ms(3000));
    assert!(
        lines.iter().all(|line| line.ends_with("Solicitation")),
        "{lines:?}"
    );
    // It does now.
    rig.hear(&fcf(1).advertisement());
    assert_eq!(
        rig.run(ms(3600)),
        [" 3500 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn links_that_are_cleared_the_wrong_way() {
    let operation = FipOperation::ClearVirtualLinks;
    let (mac, name) = (
        Descriptor::Mac(fcf(1).mac),
        Descriptor::Name(fcf(1).switch_name),
    );
    let wrong = [
        fcf(1).message(ENODE, operation, Flags::F_PORT, &[mac]),
        fcf(1).message(ENODE, operation, Flags::F_PORT, &[name]),
        fcf(1).message(ENODE, operation, Flags::F_PORT, &[mac, name, name]),
        fcf(1).message(
            ENODE,
            operation,
            Flags::F_PORT,
            &[mac, name, Descriptor::Vlan(1)],
        ),
        fcf(1).message(ENODE, operation, Flags::default(), &[mac, name]),
        fcf(2).message(ENODE, operation, Flags::F_PORT, &[mac, name]),
    ];
    let mut rig = Rig::up();
    for frame in wrong {
        assert!(rig.try_hear(&frame).is_err());
    }
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn no_more_than_32_fcfs_are_known_and_one_that_is_wanted_finds_room() {
    let wanted = fcf(99);
    let mut rig = Rig::new(FabricConfig {
        fcf: Some(crate::fip::enode::FcfPin::Mac(wanted.mac)),
        ..FabricConfig::default()
    });
    for number in 1..=40 {
        let heard = rig.try_hear(&fcf(number).solicited().advertisement());
        assert_eq!(heard.is_err(), number > 32, "{number}");
    }
    rig.hear(&wanted.solicited().advertisement());
    assert_eq!(rig.enode.fcfs().len(), 32);
    let lines = rig.run(ms(600));
    assert!(lines.last().unwrap().contains("fcf99 ElsRequest FLOGI"));
}
