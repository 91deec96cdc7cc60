//! An FCF is lost while another one of its fabric is heard.

use super::rig::{Rig, Says, fcf, ms};
use crate::fip::enode::FabricConfig;
use crate::wire::els::{Features, ServiceParameters};
use crate::wire::ethernet::Mac;
use crate::wire::fip::Flags;
use crate::wire::frame::OxId;
use crate::wire::names::Wwn;

/// FKA_ADV_PERIOD is 1 s.
fn quick(number: u8) -> Says {
    Says {
        period_ms: 1000,
        ..fcf(number)
    }
}

/// It takes no logins.
fn standby(number: u8) -> Says {
    let flags = Flags(Flags::FPMA.0 | Flags::F_PORT.0);
    Says {
        flags,
        ..quick(number)
    }
}

/// Logged in to FCF 1, which is heard at 500 ms for the last time. The others are heard each
/// second. Returns what is sent at the end of that time, but for keep alives.
fn silent_beside(others: &[Says]) -> (Rig, Vec<String>) {
    let mut rig = Rig::up_with(quick(1));
    for other in others {
        rig.hear(&other.solicited().advertisement());
    }
    let mut lines = Vec::new();
    for second in 1..=3 {
        lines.extend(rig.run(ms(second * 1000)));
        for other in others {
            rig.hear(&other.advertisement());
        }
    }
    lines.retain(|line| !line.ends_with("KeepAlive"));
    (rig, lines)
}

#[test]
fn the_other_fcf_is_logged_in_to_when_the_first_has_been_silent_for_too_long() {
    let (mut rig, lines) = silent_beside(&[quick(2)]);
    let flogi = [" 2500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"];
    assert_eq!(lines, flogi);
    rig.hear(&quick(2).accepts(0x02_0100, rig.ox_id));
    let expected = [
        "lost fffffe, Silent",
        "released 010100",
        "claimed 020100",
        "found fffffe at 02:ff:00:00:00:02",
    ];
    assert_eq!(rig.told(), expected);
}

#[test]
fn a_standby_is_logged_in_to_as_soon_as_it_takes_logins() {
    let (mut rig, lines) = silent_beside(&[standby(2)]);
    assert_eq!(lines, [" 2500 enode > FCFs Solicitation"]);
    rig.run(ms(3100));
    rig.hear(&quick(2).advertisement());
    let flogi = [" 3100 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"];
    assert_eq!(rig.run(ms(3100)), flogi);
}

#[test]
fn a_standby_that_takes_over_first_is_logged_in_to_when_the_link_is_cleared() {
    let mut rig = Rig::up_with(quick(1));
    rig.hear(&standby(2).solicited().advertisement());
    rig.hear(&standby(1).advertisement());
    rig.hear(&quick(2).advertisement());
    assert_eq!(
        rig.told(),
        [""; 0],
        "a login outlives that no other is taken"
    );
    rig.hear(&quick(1).clears(&[]));
    let flogi = ["  500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"];
    assert_eq!(rig.sent(), flogi);
}

#[test]
fn the_best_of_the_others_is_taken() {
    let better = Says {
        priority: 1,
        ..quick(3)
    };
    let (_, lines) = silent_beside(&[quick(2), better]);
    let flogi = [" 2500 enode > fcf3 ElsRequest FLOGI 000000 > fffffe"];
    assert_eq!(lines, flogi);
}

/// The first FCF that answers then may be neither the best one, nor of the only fabric.
#[test]
fn answers_are_collected_when_all_fcfs_were_lost() {
    let (mut rig, lines) = silent_beside(&[]);
    assert_eq!(lines, [" 2500 enode > FCFs Solicitation"]);
    rig.hear(&quick(2).solicited().advertisement());
    let flogi = [" 3500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"];
    assert_eq!(rig.run(ms(3499)), [""; 0]);
    assert_eq!(rig.run(ms(3500)), flogi);
}

#[test]
fn answers_are_collected_where_another_fabric_alone_is_heard() {
    let elsewhere = [
        Says {
            fabric_name: Wwn(0x2099_02ff_0000_0002),
            ..quick(2)
        },
        Says {
            fc_map: [0x0e, 0xfc, 1],
            ..quick(2)
        },
        Says {
            vf_id: 7,
            ..quick(2)
        },
    ];
    for other in elsewhere {
        let (_, lines) = silent_beside(&[other]);
        let expected = [
            " 2500 enode > FCFs Solicitation",
            " 3000 enode > fcf2 ElsRequest FLOGI 000000 > fffffe",
        ];
        assert_eq!(lines, expected);
    }
}

#[test]
fn an_fcf_that_is_not_pinned_is_not_gone_on_with() {
    let pinned = FabricConfig {
        fcf: Some(crate::fip::enode::FcfPin::Mac(fcf(1).mac)),
        ..FabricConfig::default()
    };
    let mut rig = Rig::new(pinned);
    rig.hear(&fcf(1).solicited().advertisement());
    rig.hear(&fcf(2).solicited().advertisement());
    rig.run(ms(500));
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    rig.hear(&fcf(1).clears(&[]));
    assert_eq!(rig.sent(), ["  500 enode > FCFs Solicitation"]);
}

/// Two FCFs that take logins and clear them are no reason to log in without end.
#[test]
fn logins_that_are_ended_in_turns_have_rests_between_them() {
    let mut rig = Rig::up_with(fcf(1));
    rig.hear(&fcf(2).solicited().advertisement());
    let mut flogis = 0;
    for _ in 0..20 {
        let ours = rig.enode.login().map_or(1, |login| login.fcf.0[5]);
        rig.hear(&fcf(ours).clears(&[]));
        rig.hear(&fcf(ours).solicited().advertisement());
        let lines = rig.run(rig.now + ms(600));
        let is_flogi = |line: &String| line.contains("FLOGI");
        let Some(line) = lines.into_iter().find(is_flogi) else {
            continue;
        };
        flogis += 1;
        let to = if line.contains("> fcf2") { 2 } else { 1 };
        rig.hear(&fcf(to).accepts(0x01_0100, rig.ox_id));
    }
    assert!((3..8).contains(&flogis), "{flogis}");
}

/// An FDISC needs the FLOGI of its ENode, which is sent at the same moment.
#[test]
fn further_ports_follow_100_ms_later_or_by_the_answer_to_the_flogi() {
    for answered in [false, true] {
        let mut rig = Rig::further(1);
        rig.hear(&quick(1).solicited().advertisement());
        rig.run(ms(700));
        rig.hear(&quick(1).to_fdisc().accepts(0x01_0101, rig.ox_id));
        rig.hear(&quick(2).solicited().advertisement());
        rig.sent();
        rig.hear(&quick(1).clears(&[]));
        assert_eq!(rig.sent(), ["  700 enode > FCFs Solicitation"]);
        if answered {
            let mac = Some(Mac([0x0e, 0xfc, 0, 2, 1, 0]));
            let grants = ServiceParameters {
                features: Features::F_PORT.with(Features::NPIV),
                ..quick(2).parameters()
            };
            rig.hear(&quick(2).accepts_with(0x02_0100, OxId(9), mac, &grants));
        }
        let at = if answered { 700 } else { 800 };
        let fdisc = format!("{at:5} enode > fcf2 ElsRequest FDISC 000000 > fffffe");
        assert_eq!(rig.run(ms(850)), [fdisc]);
    }
}
