//! How a login ends, and what comes after.

use super::rig::{ENODE, Rig, Says, WWPN, config, fcf, ms};
use crate::fip::enode::{Enode, EnodeState, FabricConfig};
use crate::fip::tests::rig::frames;
use crate::tests::HeapFrames;
use crate::wire::els::{Els, Logo, LsRejectReason};
use crate::wire::fip::{Descriptor, DescriptorType, Encapsulated, FipOperation, Flags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

#[test]
fn an_fcf_that_is_silent_for_two_periods_and_a_half_is_lost() {
    let mut rig = Rig::up();
    let lines = rig.run(ms(19_999));
    assert!(lines.iter().all(|line| line.ends_with("KeepAlive")));
    assert_eq!(rig.told().len(), 0);
    assert_eq!(rig.run(ms(20_000)), ["20000 enode > FCFs Solicitation"]);
    assert_eq!(rig.told(), ["lost fffffe, Silent", "released 010100"]);
    assert_eq!(
        rig.notices(),
        ["left the fabric: its FCF has been silent for 2.5 periods"]
    );
    assert_eq!(rig.enode.statistics().link_failures, 1);
    // It is back, and gives another N_Port_ID.
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(20_500));
    rig.hear(&fcf(1).accepts(0x01_0200, rig.ox_id));
    assert_eq!(rig.told()[0], "claimed 010200");
}

#[test]
fn cleared_links_are_logged_in_anew_once_the_fcf_answers_again() {
    for ports in [&[][..], &[(0x01_0999, Wwn(1)), (0x01_0100, WWPN)]] {
        let mut rig = Rig::up();
        rig.hear(&fcf(1).clears(ports));
        assert_eq!(rig.told(), ["lost fffffe, Cleared", "released 010100"]);
        assert_eq!(rig.run(ms(1400)), ["  500 enode > FCFs Solicitation"]);
        rig.hear(&fcf(1).solicited().advertisement());
        assert_eq!(
            rig.run(ms(1950))[1..],
            [" 1900 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
        );
    }
}

/// The FCF has heard the first FLOGI last, and what was registered is gone.
#[test]
fn a_flogi_that_was_given_up_and_is_accepted_late_ends_the_login() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    let first = rig.ox_id;
    rig.run(ms(2500));
    assert_ne!(rig.ox_id, first, "it was given up");
    rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
    rig.told();
    for expected in [&["lost fffffe, LoggedOut", "released 010100"][..], &[]] {
        rig.hear(&fcf(1).accepts(0x01_0100, first));
        assert_eq!(rig.told(), expected);
    }
}

#[test]
fn an_answer_to_no_request_that_was_given_up_changes_nothing() {
    let mut rig = Rig::up();
    let own = rig.ox_id;
    rig.hear(&fcf(1).accepts(0x01_0100, own));
    rig.hear(&fcf(1).accepts(0x01_0100, OxId(own.0.wrapping_sub(1))));
    rig.hear(&fcf(2).accepts(0x01_0100, own));
    assert!(rig.told().is_empty());
}

#[test]
fn what_is_cleared_of_others_or_by_others_is_passed_over() {
    let renamed = Says {
        switch_name: Wwn(7),
        ..fcf(1)
    };
    let mut rig = Rig::up();
    for frame in [
        fcf(1).clears(&[(0x01_0200, Wwn(5))]),
        fcf(1).clears(&[(0x01_0100, Wwn(5))]),
        fcf(2).clears(&[]),
        renamed.clears(&[]),
    ] {
        rig.hear(&frame);
    }
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn a_logo_of_the_fabric_ends_the_login() {
    let mut rig = Rig::up();
    let logo = Els::Logo(Logo {
        fc_id: FcId(0x01_0100),
        wwpn: WWPN,
    });
    let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
    let ports = (FcId::FABRIC_F, FcId(0x01_0100));
    let els = Descriptor::Els(Encapsulated {
        kind: DescriptorType::LOGO,
        header: FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new(kind, ports, (OxId(5), RxId::UNASSIGNED))
        },
        payload: &logo.encode(),
    });
    let flags = Flags::FPMA.with(Flags::F_PORT);
    rig.hear(&fcf(1).message(ENODE, FipOperation::ElsRequest, flags, &[els]));
    assert_eq!(
        rig.sent(),
        [
            "  500 enode > fcf1 ElsReply LS_ACC 010100 > fffffe",
            "  500 enode > FCFs Solicitation"
        ]
    );
    assert_eq!(rig.told(), ["lost fffffe, LoggedOut", "released 010100"]);
}

#[test]
fn an_fcf_that_comes_back_as_another_one_ends_the_login() {
    let mut rig = Rig::up();
    let renamed = Says {
        fabric_name: Wwn(0x2001_0000_0000_0001),
        ..fcf(1)
    };
    rig.hear(&renamed.advertisement());
    assert_eq!(rig.told(), ["lost fffffe, Restarted", "released 010100"]);
}

#[test]
fn the_link_going_down_ends_the_login() {
    let mut rig = Rig::up();
    rig.enode.link(ms(700), false);
    assert_eq!(rig.told(), ["lost fffffe, LinkDown", "released 010100"]);
    assert_eq!(rig.enode.next_deadline(), None);
    assert_eq!(rig.enode.fcfs().len(), 0);
    rig.enode.link(ms(900), true);
    assert_eq!(
        rig.run(ms(1000)),
        ["1000 enode > FCFs Solicitation"].map(|_| { "  500 enode > FCFs Solicitation" })
    );
}

#[test]
fn logging_out_sends_a_logo_at_the_end_and_nothing_begins_anew() {
    let mut rig = Rig::up();
    rig.enode.log_out(ms(600));
    assert_eq!(frames(&mut rig.enode).len(), 0);
    let mut out = HeapFrames::default();
    rig.enode.transmit_logo(&mut out);
    assert_eq!(out.frames.len(), 1);
    assert_eq!(rig.enode.fc_id(), Some(FcId(0x01_0100)));
    rig.hear(&fcf(1).clears(&[]));
    assert_eq!(rig.told(), ["lost fffffe, Cleared", "released 010100"]);
    assert_eq!(rig.notices(), [""; 0], "that is what was asked for");
    rig.hear(&fcf(1).solicited().advertisement());
    assert_eq!(rig.run(ms(60_000)).len(), 0);
    assert_eq!(rig.enode.next_deadline(), None);
}

/// The switch would keep the WWPN for 2.5 periods, and refuse it from elsewhere.
#[test]
fn a_login_that_is_granted_after_logging_out_is_given_back_once() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    let flogi = rig.ox_id;
    rig.enode.log_out(ms(600));
    rig.hear(&fcf(1).accepts(0x01_0100, OxId(flogi.0 + 1)));
    rig.hear(&fcf(2).accepts(0x01_0100, flogi));
    rig.hear(&fcf(2).solicited().advertisement());
    assert_eq!(rig.sent(), [""; 0]);
    rig.hear(&fcf(1).accepts(0x01_0100, flogi));
    let logo = "  500 enode > fcf1 ElsRequest LOGO 010100 > fffffe";
    assert_eq!(rig.sent(), [logo]);
    rig.hear(&fcf(1).accepts(0x01_0100, flogi));
    assert_eq!(rig.run(ms(60_000)), [""; 0]);
    assert_eq!(rig.told(), [""; 0]);
}

#[test]
fn no_login_is_given_back_over_a_link_that_was_down() {
    let mut rig = Rig::new(FabricConfig::default());
    rig.hear(&fcf(1).solicited().advertisement());
    rig.run(ms(500));
    let flogi = rig.ox_id;
    rig.enode.log_out(ms(600));
    rig.enode.link(ms(700), false);
    rig.hear(&fcf(1).accepts(0x01_0100, flogi));
    assert_eq!(rig.sent(), [""; 0]);
}

#[test]
fn a_login_that_is_useless_is_given_up_for_the_next_fcf() {
    let mut rig = Rig::up();
    rig.hear(&fcf(2).solicited().advertisement());
    rig.enode.give_up(ms(600));
    assert_eq!(
        rig.run(ms(1200)),
        [
            "  500 enode > fcf1 ElsRequest LOGO 010100 > fffffe",
            "  500 enode > FCFs Solicitation",
            " 1100 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"
        ]
    );
}

#[test]
fn no_keep_alive_follows_a_logo() {
    let mut rig = Rig::up();
    rig.enode.log_out(ms(600));
    for second in 1..200 {
        rig.hear(&fcf(1).advertisement());
        assert_eq!(rig.run(ms(second * 1000)), [""; 0]);
    }
}

/// The services of both FCFs reject what is registered.
#[test]
fn fcfs_whose_services_refuse_are_each_tried_once_before_a_rest() {
    let mut rig = Rig::up();
    rig.hear(&fcf(2).solicited().advertisement());
    rig.enode.give_up(ms(600));
    rig.run(ms(1100));
    rig.hear(&fcf(2).accepts(0x01_0200, rig.ox_id));
    rig.enode.give_up(ms(1200));
    rig.sent();
    for second in 2..12 {
        rig.hear(&fcf(1).advertisement());
        rig.hear(&fcf(2).advertisement());
        let lines = rig.run(ms(second * 1000 - 400));
        assert!(
            lines.iter().all(|line| !line.ends_with("fffffe")),
            "{lines:?}"
        );
    }
    let lines = rig.run(ms(12_500));
    assert!(
        lines
            .last()
            .unwrap()
            .ends_with("fcf1 ElsRequest FLOGI 000000 > fffffe")
    );
}

/// It takes the login, and clears it 100 ms later.
#[test]
fn an_fcf_that_clears_each_login_is_tried_with_longer_and_longer_rests() {
    let mut rig = Rig::up();
    let mut pauses = Vec::new();
    for _ in 0..8 {
        rig.run(rig.now + ms(100));
        rig.hear(&fcf(1).clears(&[]));
        let pause = match rig.enode.state {
            EnodeState::Resting { until } => until - rig.now,
            _ => ms(0),
        };
        pauses.push(pause.as_secs());
        rig.run(rig.now + pause);
        rig.hear(&fcf(1).solicited().advertisement());
        rig.run(rig.now + ms(500));
        rig.hear(&fcf(1).accepts(0x01_0100, rig.ox_id));
        rig.told();
    }
    assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 10, 10]);
    let told = rig.notices();
    assert_eq!(told.len(), 6, "{told:#?}");
    assert_eq!(
        told[5],
        "FCF 02:ff:00:00:00:01 ends each login within 10 s: it is tried again after up to 10 s, \
         which is logged when a login has lasted for 10 s"
    );
    // This one lasts.
    rig.hear(&fcf(1).advertisement());
    rig.run(rig.now + ms(11_000));
    assert!(rig.notices()[0].starts_with("logged in"));
}

#[test]
fn problems_that_take_turns_are_told_once_each() {
    let mut rig = Rig::new(FabricConfig::default());
    for round in 0..10 {
        rig.hear(&fcf(1).solicited().advertisement());
        rig.hear(&fcf(2).solicited().advertisement());
        rig.run(ms(500 + round * 10_500));
        for number in [1, 2] {
            rig.hear(&fcf(number).rejects(rig.ox_id, LsRejectReason::new(9, number)));
            rig.sent();
        }
    }
    assert_eq!(rig.notices().len(), 2);
}

/// Else a switch would take the first FLOGI after a crash for a copy of the last one.
#[test]
fn flogis_of_two_lives_have_other_numbers() {
    let numbers = |random| {
        let mut enode = Enode::new(config(FabricConfig::default()), None, ms(0), random);
        [enode.take_ox_id(), enode.take_ox_id()]
    };
    assert_eq!(
        numbers([0, 0, 0, 0, 0, 0, 1, 7]),
        [OxId(0x107), OxId(0x108)]
    );
    assert_eq!(
        numbers([0, 0, 0, 0, 0, 0, 0xff, 0xfe]),
        [OxId(0xfffe), OxId(0)]
    );
    assert_eq!(numbers([0xff; 8]), [OxId(0), OxId(1)]);
}
