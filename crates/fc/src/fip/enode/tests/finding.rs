//! From a link that comes up to a login, and what keeps it.

use super::rig::{Rig, fcf, ms};
use crate::fip::enode::FabricConfig;

#[test]
fn solicitations_go_out_until_an_fcf_answers() {
    let mut rig = Rig::new(FabricConfig::default());
    assert_eq!(
        rig.run(ms(24_500)),
        [
            "    0 enode > FCFs Solicitation",
            " 1000 enode > FCFs Solicitation",
            " 2000 enode > FCFs Solicitation",
            " 4000 enode > FCFs Solicitation",
            " 8000 enode > FCFs Solicitation",
            "16000 enode > FCFs Solicitation",
            "24000 enode > FCFs Solicitation",
        ]
    );
}

#[test]
fn an_fcf_that_answers_is_logged_in_to_half_a_second_later() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.run(ms(40));
    rig.hear(&fcf(1).solicited().advertisement());
    assert_eq!(
        rig.run(ms(600)),
        ["  540 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    assert_eq!(
        rig.told(),
        ["claimed 010100", "found fffffe at 02:ff:00:00:00:01"]
    );
    let login = rig.enode.login().unwrap();
    assert_eq!(login.mac.to_string(), "0e:fc:00:01:01:00");
    assert_eq!((login.e_d_tov, login.r_a_tov), (ms(2000), ms(10_000)));
    assert_eq!(login.payload_max, 2048);
    assert_eq!(
        rig.notices(),
        ["logged in to fabric 20:98:02:ff:00:00:00:01 as 0x010100 by FCF 02:ff:00:00:00:01"]
    );
}

#[test]
fn an_fcf_that_advertises_by_itself_is_asked_first() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.run(ms(1500));
    rig.hear(&fcf(1).advertisement());
    assert_eq!(rig.sent(), [" 1500 enode > fcf1 Solicitation"]);
    // It does not answer: it is not logged in to.
    assert_eq!(rig.run(ms(3900)), [" 2000 enode > FCFs Solicitation"]);
    rig.hear(&fcf(1).solicited().advertisement());
    assert_eq!(
        rig.run(ms(4500)),
        [
            " 4000 enode > FCFs Solicitation",
            " 4400 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"
        ]
    );
}

#[test]
fn keep_alives_of_both_kinds_keep_the_login() {
    let mut rig = Rig::up();
    let mut lines = Vec::new();
    for second in (8..=100).step_by(8) {
        lines.extend(rig.run(ms(second * 1000)));
        rig.hear(&fcf(1).advertisement());
    }
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[0], " 8500 enode > fcf1 KeepAlive");
    assert_eq!(lines[1], "16500 enode > fcf1 KeepAlive");
    assert_eq!(lines[11], "90500 vn:010100 > fcf1 KeepAlive 010100");
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn an_fcf_that_wants_no_keep_alives_gets_none() {
    let quiet = super::rig::Says {
        disabled: true,
        ..fcf(1)
    };
    let mut rig = Rig::up_with(quiet);
    for second in (8..=200).step_by(8) {
        assert_eq!(rig.run(ms(second * 1000)).len(), 0);
        rig.hear(&quiet.advertisement());
    }
    assert_eq!(rig.told().len(), 0);
    // It wants some from now on.
    rig.hear(&fcf(1).advertisement());
    assert_eq!(rig.run(ms(208_000)), ["208000 enode > fcf1 KeepAlive"]);
}

#[test]
fn keep_alives_go_by_the_period_that_was_told_last() {
    let mut rig = Rig::up();
    let quick = super::rig::Says {
        period_ms: 250,
        ..fcf(1)
    };
    rig.hear(&quick.advertisement());
    assert_eq!(
        rig.run(ms(1000)),
        [
            "  750 enode > fcf1 KeepAlive",
            " 1000 enode > fcf1 KeepAlive"
        ]
    );
}

#[test]
fn that_no_fcf_is_heard_is_told_once_with_what_to_look_at() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.run(ms(3900));
    assert_eq!(rig.notices(), [""; 0]);
    rig.run(ms(60_000));
    assert_eq!(
        rig.notices(),
        [
            "no FCF is heard: is the switch up, and is its FCoE on a VLAN (vlan=auto asks for \
             it)? Ports that find each other without a switch need mode=vn2vn"
        ]
    );
}

/// The answer is as long as the longest frame, and does not pass.
#[test]
fn an_fcf_that_does_not_answer_a_solicitation_is_told() {
    let mut rig = Rig::new(FabricConfig::default());
    for second in 0..8 {
        rig.hear(&fcf(1).advertisement());
        rig.run(ms(second * 1000));
    }
    assert_eq!(
        rig.notices(),
        [
            "FCF 02:ff:00:00:00:01 advertises, but does not answer a Solicitation: its answer \
             has 2158 bytes, so look whether the MTU is as large everywhere on the way (lunar \
             doctor)"
        ]
    );
}
