//! Further N_Ports of an ENode, whose FLOGI is another machine's.

use super::rig::{Rig, WWPN, fcf, ms};
use crate::fip::enode::{FabricConfig, FcfPin};
use crate::wire::els::{Features, LsRejectReason, ServiceParameters};
use crate::wire::ethernet::Mac;
use crate::wire::frame::OxId;

/// What an FCF answers that grants more than one N_Port_ID.
fn parameters() -> ServiceParameters {
    ServiceParameters {
        features: Features::F_PORT.with(Features::NPIV),
        ..fcf(1).parameters()
    }
}

/// The ENode is granted 010100.
fn flogi_accepted(ox_id: u16) -> Vec<u8> {
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    fcf(1).accepts_with(0x01_0100, OxId(ox_id), mac, &parameters())
}

/// The FDISC is accepted, at 600 ms.
fn up() -> Rig {
    up_in(FabricConfig::default())
}

fn up_in(fabric: FabricConfig) -> Rig {
    let mut rig = Rig::further_in(1, fabric);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    rig.hear(&flogi_accepted(0));
    assert_eq!(
        rig.sent(),
        ["  500 enode > fcf1 ElsRequest FDISC 000000 > fffffe"]
    );
    rig.hear(&fcf(1).to_fdisc().accepts(0x01_0101, rig.ox_id));
    assert_eq!(
        rig.told(),
        ["claimed 010101", "found fffffe at 02:ff:00:00:00:01"]
    );
    rig
}

#[test]
fn an_fdisc_follows_the_flogi_of_the_enode() {
    let mut rig = up();
    assert_eq!(rig.enode.mac(), Some(Mac([0x0e, 0xfc, 0, 1, 1, 1])));
    // Its VN_Port alone is kept alive: the ENode is kept by who has sent the FLOGI.
    for second in 1..=91 {
        rig.hear(&fcf(1).advertisement());
        let sent = rig.run(ms(second * 1000));
        let kept = ["90500 vn:010101 > fcf1 KeepAlive 010101"];
        assert_eq!(sent, kept[..usize::from(second == 91)], "{second}");
    }
}

#[test]
fn answers_to_others_are_told_apart_by_ox_id() {
    let mut ids = Vec::new();
    for number in [0, 1, 2, 1022] {
        let mut rig = Rig::further(number);
        rig.hear(&fcf(1).solicited().advertisement());
        rig.run(ms(700));
        ids.push(rig.ox_id.0);
        rig.hear(&fcf(1).to_fdisc().accepts(0x01_0109, OxId(rig.ox_id.0 + 64)));
        rig.hear(&fcf(1).accepts(0x01_0109, rig.ox_id));
        assert_eq!(rig.told().len(), 0);
    }
    assert_eq!(ids, [0, 64, 128, 65408]);
}

#[test]
fn an_fdisc_that_comes_too_soon_is_sent_again_and_nothing_is_told() {
    let mut rig = Rig::further(1);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(600));
    let reject = LsRejectReason::NO_LOGIN;
    for _ in 0..3 {
        rig.hear(&fcf(1).to_fdisc().rejects(rig.ox_id, reject));
        let sent = rig.run(rig.now + ms(1600));
        assert!(sent.last().unwrap().ends_with("FDISC 000000 > fffffe"));
    }
    assert_eq!(rig.notices(), [""; 0]);
}

#[test]
fn a_second_flogi_of_the_enode_ends_the_login() {
    let mut rig = up();
    rig.hear(&flogi_accepted(0));
    assert_eq!(rig.told(), [""; 0], "the same one, twice");
    rig.hear(&flogi_accepted(1));
    assert_eq!(rig.told(), ["lost fffffe, Restarted", "released 010101"]);
    assert_eq!(
        rig.sent(),
        ["  500 enode > fcf1 ElsRequest FDISC 000000 > fffffe"]
    );
}

#[test]
fn answers_of_an_fcf_that_the_enode_cannot_have_chosen_are_ignored() {
    let pinned = FabricConfig {
        fcf: Some(FcfPin::Mac(fcf(1).mac)),
        ..FabricConfig::default()
    };
    let mut rig = up_in(pinned);
    rig.hear(&fcf(2).solicited().advertisement());
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    for ox_id in 1..4 {
        rig.hear(&fcf(2).accepts_with(0x01_0100, OxId(ox_id), mac, &parameters()));
        rig.hear(&fcf(2).accepts(0x01_0100, OxId(ox_id + 4)));
    }
    assert_eq!(rig.told(), [""; 0]);
    assert_eq!(rig.enode.login().map(|login| login.fcf), Some(fcf(1).mac));
    let notices = rig.notices();
    assert!(!notices.iter().any(|line| line.contains("NPIV")));
}

#[test]
fn while_logged_in_another_fcf_is_not_followed() {
    let mut rig = up();
    rig.hear(&fcf(2).solicited().advertisement());
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    rig.hear(&fcf(2).accepts_with(0x01_0100, OxId(1), mac, &parameters()));
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn answers_to_another_station_are_ignored() {
    let mut rig = up();
    let mut answer = flogi_accepted(1);
    answer[..6].copy_from_slice(&Mac::ALL_ENODE.0);
    rig.hear(&answer);
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn links_are_cleared_one_by_one() {
    let mut rig = up();
    rig.hear(&fcf(1).clears(&[(0x01_0100, WWPN)]));
    assert_eq!(rig.told(), [""; 0]);
    rig.hear(&fcf(1).clears(&[(0x01_0101, WWPN)]));
    assert_eq!(rig.told(), ["lost fffffe, Cleared", "released 010101"]);
}

#[test]
fn a_switch_without_npiv_is_told() {
    let mut rig = Rig::further(1);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    rig.hear(&fcf(1).accepts(0x01_0100, OxId(0)));
    assert_eq!(
        rig.notices(),
        [
            "FCF 02:ff:00:00:00:01 grants an ENode one N_Port_ID alone: turn on NPIV at the \
             switch, or leave npiv= out"
        ]
    );
}
