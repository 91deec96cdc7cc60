//! FLOGIs that are rejected, not answered, or answered in a way that is of no use.

use super::rig::{Rig, fcf, ms};
use crate::fip::enode::FabricConfig;
use crate::wire::els::{Features, LsRejectReason, ServiceParameters};
use crate::wire::ethernet::Mac;
use crate::wire::frame::OxId;

/// The FLOGI to the FCF 1 is on its way, at 500 ms.
fn asking() -> Rig {
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    rig
}

/// It has not been logged in, rests, and has told why.
fn resting(mut rig: Rig, told: &str) {
    assert_eq!(rig.told().len(), 0);
    assert_eq!(rig.notices(), [told]);
    let begin = rig.now;
    for second in 0..9 {
        assert_eq!(rig.run(begin + ms(second * 1000)).len(), 0);
        rig.hear(&fcf(1).advertisement());
    }
    let lines = rig.run(begin + ms(10_600));
    assert!(lines[0].ends_with("enode > FCFs Solicitation"), "{lines:?}");
    assert!(lines[1].ends_with("FLOGI 000000 > fffffe"), "{lines:?}");
}

/// The N_Port_ID of a login that is not used.
const GIVEN_BACK: &str = "  500 enode > fcf1 ElsRequest LOGO 010100 > fffffe";

#[test]
fn a_rejected_login_is_told_in_words_and_tried_again_after_a_rest() {
    let mut rig = asking();
    let reject = LsRejectReason::new(0x09, 0x0d);
    rig.hear(&fcf(1).rejects(rig.ox_id, reject));
    resting(
        rig,
        "FCF 02:ff:00:00:00:01 rejects the login (FLOGI): unable to perform, invalid N_Port name \
         (LS_RJT 09h/0dh): another port may have this WWPN, or the switch does not allow it",
    );
}

#[test]
fn silence_is_asked_three_times() {
    let mut rig = asking();
    let flogi = "enode > fcf1 ElsRequest FLOGI 000000 > fffffe";
    let lines = rig.run(ms(6400));
    assert_eq!(lines, [format!(" 2500 {flogi}"), format!(" 4500 {flogi}")]);
    rig.run(ms(6500));
    resting(
        rig,
        "FCF 02:ff:00:00:00:01 advertises, but does not answer a login (FLOGI)",
    );
}

#[test]
fn the_next_fcf_is_tried_at_once() {
    let mut rig = asking();
    rig.hear(&fcf(2).solicited().advertisement());
    rig.hear(&fcf(1).rejects(rig.ox_id, LsRejectReason::new(5, 0)));
    assert_eq!(
        rig.sent(),
        ["  500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"]
    );
    // The answer of the first one comes late.
    rig.hear(&fcf(1).accepts(0x01_0100, OxId(0)));
    assert_eq!(rig.told().len(), 0);
    rig.hear(&fcf(2).accepts(0x02_0100, rig.ox_id));
    assert_eq!(rig.told()[0], "claimed 020100");
}

#[test]
fn an_address_that_is_not_fabric_provided_is_not_used() {
    let expected = "0e:fc:00:01:01:00";
    let granted = [
        (
            Some(Mac([2, 0, 0, 0, 0, 1])),
            "the MAC address 02:00:00:00:00:01",
        ),
        (None, "no MAC address"),
        (Some(Mac([0; 6])), "the MAC address 00:00:00:00:00:00"),
    ];
    for (mac, words) in granted {
        let mut rig = asking();
        let parameters = fcf(1).parameters();
        rig.hear(&fcf(1).accepts_with(0x01_0100, rig.ox_id, mac, &parameters));
        assert_eq!(rig.sent(), [GIVEN_BACK]);
        resting(
            rig,
            &format!(
                "FCF 02:ff:00:00:00:01 grants N_Port_ID 0x010100 with {words} instead of \
                 {expected}; the login is not used"
            ),
        );
    }
}

#[test]
fn no_n_port_has_the_address_of_a_service_or_none() {
    for fc_id in [0, 0xff_fffc] {
        let mut rig = asking();
        rig.hear(&fcf(1).accepts(fc_id, rig.ox_id));
        assert_eq!(rig.told().len(), 0, "{fc_id:x}");
        assert_eq!(rig.sent().len(), 0, "there is nothing to give back");
        assert_eq!(rig.notices().len(), 1);
    }
}

#[test]
fn what_is_no_f_port_is_no_fabric() {
    let mut rig = asking();
    let says = ServiceParameters {
        features: Features::default(),
        ..fcf(1).parameters()
    };
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    rig.hear(&fcf(1).accepts_with(0x01_0100, rig.ox_id, mac, &says));
    assert_eq!(rig.sent(), [GIVEN_BACK]);
    resting(
        rig,
        "02:ff:00:00:00:01 accepts a login (FLOGI), but is not an F_Port",
    );
}

#[test]
fn frames_too_small_for_fibre_channel_are_told() {
    let mut rig = asking();
    let says = ServiceParameters {
        receive_size: 128,
        ..fcf(1).parameters()
    };
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    rig.hear(&fcf(1).accepts_with(0x01_0100, rig.ox_id, mac, &says));
    assert_eq!(rig.sent(), [GIVEN_BACK]);
    resting(
        rig,
        "FCF 02:ff:00:00:00:01 takes 128 bytes of payload: 256 are needed",
    );
}

#[test]
fn times_that_cannot_work_are_not_believed() {
    let mut rig = asking();
    let says = ServiceParameters {
        e_d_tov: u32::MAX,
        total_sequences: u16::MAX,
        ..fcf(1).parameters()
    };
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    rig.hear(&fcf(1).accepts_with(0x01_0100, rig.ox_id, mac, &says));
    let login = rig.enode.login().unwrap();
    assert_eq!((login.e_d_tov, login.r_a_tov), (ms(10_000), ms(120_000)));
}

/// For R_A_TOV a PLOGI waits for the name server, and copies of it are known as such.
#[test]
fn an_r_a_tov_of_less_than_two_e_d_tov_is_not_believed() {
    let mut rig = asking();
    let says = ServiceParameters {
        relative_offset: 1,
        ..fcf(1).parameters()
    };
    let mac = Some(Mac([0x0e, 0xfc, 0, 1, 1, 0]));
    rig.hear(&fcf(1).accepts_with(0x01_0100, rig.ox_id, mac, &says));
    let login = rig.enode.login().unwrap();
    assert_eq!((login.e_d_tov, login.r_a_tov), (ms(2000), ms(4000)));
}

#[test]
fn answers_to_another_request_or_of_another_station_are_passed_over() {
    let mut rig = asking();
    rig.hear(&fcf(1).accepts(0x01_0100, OxId(rig.ox_id.0 + 1)));
    rig.hear(&fcf(2).accepts(0x01_0100, rig.ox_id));
    assert_eq!(rig.told().len(), 0);
    assert_eq!(rig.notices().len(), 0);
}
