//! Stations that say too much.

use super::rig::{Rig, Says, WWPN, fcf, ms};
use crate::fip::enode::FabricConfig;
use crate::wire::fip::{Descriptor, FipOperation, Flags};
use crate::wire::names::Wwn;

#[test]
fn a_flood_of_forged_addresses_does_not_make_the_fcf_seem_silent() {
    let mut rig = Rig::up();
    let mut frame = fcf(200).advertisement();
    for second in 1..=60 {
        rig.run(ms(second * 1000));
        for number in 0..20_000_u32 {
            frame[8..12].copy_from_slice(&number.to_be_bytes());
            let _ = rig.try_hear(&frame);
        }
        if second % 8 == 0 {
            rig.hear(&fcf(1).advertisement());
        }
    }
    assert!(rig.enode.statistics().dropped > 0);
    assert_eq!(rig.told().len(), 0);
}

/// The FCF of the login is silent, and the other one of its fabric is logged in to.
#[test]
fn a_flood_of_forged_addresses_does_not_hide_the_answer_of_the_next_fcf() {
    let mut rig = Rig::up_with(Says {
        period_ms: 1000,
        ..fcf(1)
    });
    rig.hear(&fcf(2).solicited().advertisement());
    let mut frame = fcf(200).advertisement();
    for step in 1..=3 {
        rig.run(ms(step * 1000));
        for number in 0..40_000_u32 {
            frame[8..12].copy_from_slice(&number.to_be_bytes());
            let _ = rig.try_hear(&frame);
        }
    }
    assert_eq!(rig.told(), ["lost fffffe, Silent", "released 010100"]);
    rig.hear(&fcf(2).accepts(0x02_0100, rig.ox_id));
    assert_eq!(rig.told()[0], "claimed 020100");
}

#[test]
fn what_a_message_costs_does_not_grow() {
    let mut rig = Rig::up();
    for round in 0..10_000_u64 {
        rig.now = ms(round * 10);
        let _ = rig.try_hear(&fcf((round % 200) as u8).solicited().advertisement());
        rig.hear(&fcf(1).advertisement());
        rig.enode.expire(rig.now);
        rig.sent();
    }
    assert!(rig.enode.fcfs().len() <= 32);
    assert!(rig.enode.records() <= 32 + 64, "{}", rig.enode.records());
}

/// Of other FCFs, or of other N_Ports.
#[test]
fn links_of_others_that_are_cleared_without_end_leave_ours() {
    let mut rig = Rig::up();
    let before = rig.enode.records();
    for number in 0..20_000_u64 {
        rig.now = ms(500 + number);
        let other = fcf((number % 250) as u8 + 2);
        let _ = rig.try_hear(&other.clears(&[(0x01_0100, WWPN)]));
        let _ = rig.try_hear(&fcf(1).clears(&[(0x01_0101, Wwn(number))]));
        assert!(rig.sent().is_empty());
    }
    assert_eq!(rig.told(), [""; 0]);
    assert_eq!(rig.enode.records(), before);
}

/// Each login that the FCF ends is made again, after rests of up to 10 s.
#[test]
fn our_link_that_is_cleared_without_end_is_made_again_seldom() {
    let mut rig = Rig::up();
    let (mut logins, mut most) = (0, 0);
    for round in 1..6_000 {
        let _ = rig.try_hear(&fcf(1).clears(&[(0x01_0100, WWPN)]));
        let _ = rig.try_hear(&fcf(1).solicited().advertisement());
        let sent = rig.run(ms(500 + round * 100));
        if sent.iter().any(|line| line.contains("FLOGI")) {
            logins += 1;
            rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
        }
        rig.told();
        rig.notices();
        most = most.max(rig.enode.records());
    }
    // 10 minutes.
    assert!((30..100).contains(&logins), "{logins}");
    assert!(most <= 8, "{most}");
}

#[test]
fn sixteen_of_all_vlans_are_tried() {
    let mut rig = Rig::new(FabricConfig {
        discovers_vlan: true,
        ..FabricConfig::default()
    });
    for vid in 1..4095 {
        let from = fcf((vid % 200) as u8);
        let says = [Descriptor::Mac(from.mac), Descriptor::Vlan(vid)];
        let operation = FipOperation::VlanNotification;
        let _ = rig.try_hear(&from.message(super::rig::ENODE, operation, Flags::F_PORT, &says));
    }
    rig.sent();
    assert_eq!(rig.enode.records(), 16);
}
