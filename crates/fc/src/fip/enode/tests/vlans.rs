//! FIP VLAN discovery.

use super::rig::{ENODE, Rig, fcf, ms};
use crate::fip::enode::FabricConfig;
use crate::wire::els::LsRejectReason;
use crate::wire::fip::{Descriptor, FipOperation, Flags};

const AUTO: FabricConfig = FabricConfig {
    discovers_vlan: true,
    fcf: None,
    fabric: None,
};

/// FCF 1 tells these VLANs.
fn notification(vlans: &[u16]) -> Vec<u8> {
    let mut says = vec![Descriptor::Mac(fcf(1).mac)];
    says.extend(vlans.iter().map(|vid| Descriptor::Vlan(*vid)));
    let flags = Flags::FPMA.with(Flags::F_PORT);
    fcf(1).message(ENODE, FipOperation::VlanNotification, flags, &says)
}

#[test]
fn the_vlans_that_are_told_are_tried_in_their_order() {
    let mut rig = Rig::new(AUTO);
    rig.run(ms(600));
    rig.hear(&notification(&[152, 153]));
    assert_eq!(
        rig.run(ms(1200)),
        [
            " 1000 enode > FCFs VlanRequest",
            " 1100 enode > FCFs Solicitation, VLAN 152"
        ]
    );
    assert_eq!(
        rig.enode.tag().map(|tag| (tag.vid, tag.priority)),
        Some((152, 3))
    );
    // Nothing there: the next one after 4 s.
    assert_eq!(
        rig.run(ms(5200)),
        [
            " 2100 enode > FCFs Solicitation, VLAN 152",
            " 3100 enode > FCFs Solicitation, VLAN 152",
            " 5100 enode > FCFs Solicitation, VLAN 153"
        ]
    );
    rig.hear(&fcf(1).solicited().advertisement());
    assert_eq!(
        rig.run(ms(5800)),
        [" 5700 enode > fcf1 ElsRequest FLOGI 000000 > fffffe, VLAN 153"]
    );
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    assert_eq!(
        rig.notices(),
        [
            "no FCF is heard on VLAN 152, which an FCF has told: is that VLAN allowed at the \
             switch port?",
            "logged in to fabric 20:98:02:ff:00:00:00:01 as 0x010100 by FCF 02:ff:00:00:00:01 \
             on VLAN 153"
        ]
    );
}

#[test]
fn a_further_port_leaves_a_vlan_where_the_enode_has_not_logged_in() {
    let mut rig = Rig::further_in(1, AUTO);
    rig.hear(&notification(&[152, 153]));
    rig.run(ms(500));
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(1100));
    let reject = LsRejectReason::NO_LOGIN;
    rig.hear(&fcf(1).to_fdisc().rejects(rig.ox_id, reject));
    assert_eq!(rig.run(ms(2200)), [" 2100 enode > FCFs VlanRequest"]);
    rig.hear(&notification(&[152, 153]));
    assert_eq!(
        rig.run(ms(2700)),
        [
            " 2600 enode > FCFs VlanRequest",
            " 2700 enode > FCFs Solicitation, VLAN 153"
        ]
    );
    assert_eq!(rig.notices(), [""; 0]);
}

#[test]
fn without_an_answer_no_vlan_is_tried_and_that_is_told_once() {
    let mut rig = Rig::new(AUTO);
    let lines = rig.run(ms(20_000));
    let no_tag = |line: &&String| line.ends_with("Solicitation");
    let solicitations: Vec<_> = lines.iter().filter(no_tag).collect();
    assert_eq!(solicitations[0], " 5000 enode > FCFs Solicitation");
    // After 4 s VLANs are asked for again.
    assert!(lines.contains(&" 9000 enode > FCFs VlanRequest".to_owned()));
    assert_eq!(
        rig.notices(),
        [
            "no FCF has answered a FIP VLAN request in 5 s: trying without a VLAN; name it with \
             vlan=VID if the switch does not answer such requests",
            "no FCF is heard, neither on a VLAN nor without: is the switch up? Ports that find \
             each other without a switch need mode=vn2vn"
        ]
    );
}

#[test]
fn a_fabric_that_is_lost_is_looked_for_on_its_vlan_first() {
    let mut rig = Rig::new(AUTO);
    rig.hear(&notification(&[152]));
    rig.run(ms(600));
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(1100));
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    rig.hear(&fcf(1).clears(&[]));
    let lines = rig.run(ms(5200));
    assert_eq!(lines[0], " 1100 enode > FCFs Solicitation, VLAN 152");
    assert_eq!(lines.last().unwrap(), " 5100 enode > FCFs VlanRequest");
}

#[test]
fn notifications_that_make_no_sense_are_refused() {
    let flags = Flags::FPMA.with(Flags::F_PORT);
    let operation = FipOperation::VlanNotification;
    let (mac, vlan) = (Descriptor::Mac(fcf(1).mac), Descriptor::Vlan(5));
    let wrong = [
        fcf(1).message(ENODE, operation, flags, &[vlan]),
        fcf(1).message(ENODE, operation, flags, &[mac, mac, vlan]),
        fcf(2).message(ENODE, operation, flags, &[mac, vlan]),
        fcf(1).message(ENODE, operation, Flags::FPMA, &[mac, vlan]),
        fcf(1).message(
            ENODE,
            operation,
            flags,
            &[mac, vlan, Descriptor::Priority(1)],
        ),
    ];
    for frame in wrong {
        let mut rig = Rig::new(AUTO);
        assert!(rig.try_hear(&frame).is_err());
        assert!(
            rig.run(ms(4900))
                .iter()
                .all(|line| line.contains("VlanRequest"))
        );
    }
    // No VLAN has these numbers.
    let mut rig = Rig::new(AUTO);
    rig.hear(&notification(&[4095]));
    assert!(
        rig.run(ms(4900))
            .iter()
            .all(|line| line.contains("VlanRequest"))
    );
}

#[test]
fn no_more_than_16_vlans_are_tried() {
    let mut rig = Rig::new(AUTO);
    let vlans: Vec<u16> = (1..=200).collect();
    rig.hear(&notification(&vlans));
    let lines = rig.run(ms(500 + 16 * 4000 + 5000));
    let mut tags: Vec<_> = lines
        .iter()
        .filter_map(|line| line.split_once(", "))
        .collect();
    tags.dedup_by_key(|(_, tag)| tag.to_owned());
    assert_eq!(tags.len(), 16);
}

#[test]
fn vlans_are_of_no_interest_where_the_vlan_is_given() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&notification(&[152]));
    let lines = rig.run(ms(5000));
    assert!(
        lines.iter().all(|line| line.ends_with("Solicitation")),
        "{lines:?}"
    );
}

/// So says a switch whose ports have no VLAN.
#[test]
fn vlan_0_is_none() {
    let mut rig = Rig::new(AUTO);
    rig.hear(&notification(&[0]));
    assert_eq!(rig.run(ms(600))[1..], ["  500 enode > FCFs Solicitation"]);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(1100));
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    assert_eq!(rig.enode.tag(), None);
    assert_eq!(rig.told()[0], "claimed 010100");
}

/// FCF 1 is on both VLANs, and takes logins on the second one alone.
#[test]
fn a_vlan_whose_fcfs_refuse_is_left_for_the_next_one() {
    let mut rig = Rig::new(AUTO);
    rig.hear(&notification(&[152, 153]));
    rig.run(ms(500));
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(1000));
    rig.hear(&fcf(1).rejects(rig.ox_id, LsRejectReason::new(9, 0x0d)));
    assert_eq!(rig.sent(), [" 1000 enode > FCFs Solicitation, VLAN 153"]);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(1500));
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    assert_eq!(rig.enode.tag().map(|tag| tag.vid), Some(153));
}

#[test]
fn after_the_last_vlan_that_refuses_there_is_a_rest() {
    let mut rig = Rig::new(AUTO);
    for round in 0..2 {
        let begin = ms(round * 12_000);
        rig.run(begin);
        rig.hear(&notification(&[152, 153]));
        for _ in 0..2 {
            rig.run(rig.now + ms(500));
            rig.hear(&fcf(1).solicited().advertisement());
            rig.run(rig.now + ms(500));
            rig.hear(&fcf(1).rejects(rig.ox_id, LsRejectReason::new(9, 0x0d)));
        }
        let lines = rig.run(begin + ms(12_000));
        let after: Vec<_> = lines.iter().map(|line| &line[6..]).collect();
        assert_eq!(after, ["enode > FCFs VlanRequest"; 1], "{round}");
    }
    assert_eq!(rig.notices().len(), 1, "told once");
}
