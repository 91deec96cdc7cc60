//! From a link that comes up to a nexus.

use insta::assert_snapshot;

use super::rig::{Rig, TARGET, in_fabric};
use crate::initiator::Data;
use crate::port::tests::rig::ms;
use crate::remote::RemoteId;
use crate::tests::command;
use crate::tests::pair::lease;
use crate::wire::ct::CtReject;
use crate::wire::ct::name_server::code;
use crate::wire::els::{Els, ServiceParameters};
use crate::wire::frame::{FrameType, RCtl};
use crate::wire::names::{FcId, Wwn};

#[test]
fn both_register_and_the_initiator_logs_in() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.run(ms(1000));
    assert_snapshot!(rig.traced().join("\n"));
    assert_eq!(rig.target.told, ["online 010100", "up 0"]);
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
}

#[test]
fn a_target_that_is_there_before_is_found_at_once() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.initiator.port.link(ms(0), false);
    rig.run(ms(1000));
    rig.initiator.port.link(ms(1000), true);
    rig.run(ms(2000));
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
    let remote = rig.initiator.port.remotes().next().unwrap();
    assert_eq!(remote.neighbour().target, Some(true));
    assert_eq!(remote.wwnn(), rig.target.port.wwnn());
    assert_eq!(remote.payload_max(), 2112);
}

#[test]
fn a_command_goes_through_the_fcf() {
    let mut rig = Rig::up();
    let inquiry = command(1, &[0x12, 0, 0, 0, 36, 0], Data::In(lease(vec![0; 36])));
    let initiator = rig.initiator.port.fc4_mut();
    initiator.execute(rig.now, RemoteId(0), inquiry).unwrap();
    rig.pass(1);
    assert_eq!(rig.done.len(), 1);
}

/// The PLOGI of a port that no one has told of.
fn plogi(rig: &Rig, wwpn: u64) -> Els {
    Els::Plogi(ServiceParameters {
        wwpn: Wwn(wwpn),
        wwnn: Wwn(wwpn + 1),
        ..rig.initiator.port.local.parameters()
    })
}

#[test]
fn a_plogi_from_a_port_that_is_not_known_is_taken_by_its_names() {
    let mut rig = Rig::up();
    let from = FcId(0x01_0200);
    rig.add_entry(from, 0x2000_0000_0000_0077, 2);
    let els = plogi(&rig, 0x2000_0000_0000_0077);
    rig.request(from, TARGET, &els);
    rig.pass(1);
    assert_eq!(
        rig.traced(),
        [
            " 2000 010100 > fffffc CT 0112",
            " 2000 010100 > 010200 LS_ACC"
        ]
    );
    let remote = rig.target.port.find(Wwn(0x2000_0000_0000_0077)).unwrap();
    assert!(remote.is_logged_in());
    assert_eq!(remote.wwnn(), Wwn(0x2000_0000_0000_0078));
}

#[test]
fn partners_decide_about_it() {
    let config = crate::port::PortConfig {
        partners: crate::remote::Partners::Only([Wwn(5)].into()),
        ..in_fabric(2)
    };
    let mut rig = Rig::new(&config, &in_fabric(1));
    rig.initiator.port.link(ms(0), false);
    rig.run(ms(1000));
    rig.traced();
    rig.add_entry(FcId(0x01_0200), 7, 2);
    let els = plogi(&rig, 7);
    rig.request(FcId(0x01_0200), TARGET, &els);
    rig.pass(1);
    assert_eq!(rig.traced()[1..], [" 1000 010100 > 010200 LS_RJT 09 0d"]);
    assert_eq!(
        rig.target.told[1..],
        ["a PLOGI from a port that is not allowed (--allow)"]
    );
}

#[test]
fn an_n_port_id_that_has_gone_on_to_another_port_is_that_port_s() {
    let mut rig = Rig::up();
    let from = FcId(0x01_0200);
    for wwpn in [7, 9] {
        rig.add_entry(from, wwpn, 2);
        let els = plogi(&rig, wwpn);
        rig.request(from, TARGET, &els);
        rig.pass(1);
    }
    assert!(rig.target.port.find(Wwn(7)).is_none());
    assert!(rig.target.port.find(Wwn(9)).unwrap().is_logged_in());
}

#[test]
fn a_port_that_has_another_n_port_id_is_at_that() {
    let mut rig = Rig::up();
    for fc_id in [0x01_0200, 0x01_0201] {
        rig.add_entry(FcId(fc_id), 7, 2);
        let els = plogi(&rig, 7);
        rig.request(FcId(fc_id), TARGET, &els);
        rig.pass(1);
    }
    let found = rig.target.port.find(Wwn(7)).unwrap();
    assert_eq!(found.address().fc_id, FcId(0x01_0201));
    let remotes = rig.target.port.remotes();
    assert_eq!(remotes.filter(|remote| remote.wwpn() == Wwn(7)).count(), 1);
}

#[test]
fn a_command_from_a_port_that_is_not_logged_in_is_answered_by_logo() {
    let mut rig = Rig::up();
    rig.add_entry(FcId(0x01_0200), 7, 2);
    let kind = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
    rig.send_frame(FcId(0x01_0200), TARGET, kind, &[0; 32]);
    rig.pass(1);
    assert_eq!(rig.traced(), [" 2000 010100 > 010200 LOGO"]);
}

/// The WWPN of an initiator that access lists let in is no secret.
#[test]
fn a_plogi_by_the_name_of_another_port_is_refused_and_that_one_stays() {
    let mut rig = Rig::up();
    rig.add_entry(FcId(0x01_0200), 7, 2);
    let els = Els::Plogi(rig.initiator.port.local.parameters());
    rig.request(FcId(0x01_0200), TARGET, &els);
    rig.pass(1);
    assert_eq!(rig.traced()[1..], [" 2000 010100 > 010200 LS_RJT 03 0d"]);
    assert_eq!(
        rig.target.told[2..],
        [
            "a PLOGI with a port name that the name server does not have for its N_Port_ID (FC-GS, \
          GPN_ID)"
        ]
    );
    // Neither does one who has logged in get another name.
    for wwpn in [7, 9] {
        let els = plogi(&rig, wwpn);
        rig.request(FcId(0x01_0200), TARGET, &els);
        rig.pass(1);
    }
    assert!(rig.target.port.find(Wwn(7)).unwrap().is_logged_in());
    assert!(rig.target.port.find(Wwn(9)).is_none());
}

#[test]
fn a_plogi_waits_for_a_name_server_that_is_slow_and_is_refused_after_three_questions() {
    let mut rig = Rig::up();
    let from = FcId(0x01_0200);
    rig.add_entry(from, 7, 2);
    rig.unanswered.push((code::GPN_ID, from));
    let els = plogi(&rig, 7);
    for _ in 0..3 {
        rig.request(from, TARGET, &els);
        rig.pass(100);
    }
    rig.pass(12_000);
    assert_eq!(
        rig.traced(),
        [
            " 2000 010100 > fffffc CT 0112",
            " 6000 010100 > fffffc CT 0112",
            "10000 010100 > fffffc CT 0112",
            "10500 010101 > 010100 ADISC",
            "10500 010100 > 010101 LS_ACC",
            "14000 010100 > 010200 LS_RJT 05 00",
        ]
    );
    let told = rig.target.notices.last().unwrap().to_string();
    assert_eq!(told, "the fabric does not answer GPN_ID");
    rig.unanswered.clear();
    rig.request(from, TARGET, &els);
    rig.pass(1);
    assert!(rig.target.port.find(Wwn(7)).unwrap().is_logged_in());
}

/// Its sender waits for 20 s.
#[test]
fn a_plogi_waits_for_18_s_and_then_is_told_to_come_again() {
    let mut rig = Rig::up();
    rig.is_mute = true;
    for low in 0..3 {
        let els = plogi(&rig, 7);
        rig.request(FcId(0x01_0200 + low), TARGET, &els);
    }
    rig.pass(17_900);
    assert!(!rig.traced().iter().any(|line| line.contains("LS_RJT")));
    rig.pass(200);
    let answers = rig.traced();
    let refused = |low: u32| format!("20000 010100 > 01020{low} LS_RJT 05 00");
    assert_eq!(answers, [1, 2, 0].map(refused));
}

/// One port about which the name server says nothing does not hold others up but once.
#[test]
fn plogis_behind_one_that_is_not_answered_are_asked_about_next() {
    let mut rig = Rig::up();
    let (silent, other) = (FcId(0x01_0200), FcId(0x01_0201));
    rig.add_entry(silent, 7, 2);
    rig.add_entry(other, 9, 2);
    rig.unanswered.push((code::GPN_ID, silent));
    for (from, wwpn) in [(silent, 7), (other, 9)] {
        let els = plogi(&rig, wwpn);
        rig.request(from, TARGET, &els);
    }
    rig.pass(5000);
    assert_eq!(
        rig.traced(),
        [
            " 2000 010100 > fffffc CT 0112",
            " 6000 010100 > fffffc CT 0112",
            " 6000 010100 > fffffc CT 0112",
            " 6000 010100 > 010201 LS_ACC",
        ]
    );
    assert!(rig.target.port.find(Wwn(9)).unwrap().is_logged_in());
}

/// A host that is killed and begins anew within R_A_TOV may number its exchanges as before, though
/// rarely: they begin anywhere.
#[test]
fn a_plogi_under_the_ox_id_of_the_last_one_is_a_new_one_after_an_rscn() {
    for (page, logins) in [
        (None, 1),
        (Some((0, FcId(0x01_0300))), 1),
        (Some((0, FcId(0x01_0200))), 2),
        (Some((3, FcId(0))), 2),
    ] {
        let mut rig = Rig::up();
        let from = FcId(0x01_0200);
        rig.add_entry(from, 7, 2);
        let els = plogi(&rig, 7);
        rig.request(from, TARGET, &els);
        rig.pass(1000);
        page.inspect(|page| rig.rscn(TARGET, &[*page]));
        rig.request(from, TARGET, &els);
        rig.pass(1);
        let known = rig.target.port.find(Wwn(7)).unwrap();
        assert_eq!(known.logins(), logins, "{page:?}");
    }
}

/// The RSCN may be one about the login by which it sent the PLOGI, and its copy come late.
#[test]
fn a_copy_of_a_plogi_that_comes_at_once_is_none_after_an_rscn_either() {
    let mut rig = Rig::up();
    let from = FcId(0x01_0200);
    rig.add_entry(from, 7, 2);
    let els = plogi(&rig, 7);
    rig.request(from, TARGET, &els);
    rig.pass(1);
    rig.rscn(TARGET, &[(0, from)]);
    rig.pass(400);
    rig.request(from, TARGET, &els);
    rig.pass(1);
    assert_eq!(rig.target.port.find(Wwn(7)).unwrap().logins(), 1);
}

#[test]
fn a_name_server_that_refuses_to_confirm_names_is_told_once() {
    let mut rig = Rig::up();
    rig.rejects.push((code::GPN_ID, CtReject::new(9, 0)));
    let before = rig.target.notices.len();
    for _ in 0..3 {
        let els = plogi(&rig, 7);
        rig.request(FcId(0x01_0200), TARGET, &els);
        rig.pass(1);
    }
    let told: Vec<_> = rig.target.notices[before..].iter().collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].to_string().contains("rejects GPN_ID (09h/00h)"));
}

#[test]
fn no_more_than_256_plogis_wait() {
    let mut rig = Rig::up();
    rig.is_mute = true;
    let els = plogi(&rig, 7);
    for at in 0..300 {
        rig.request(FcId(0x02_0000 + at), TARGET, &els);
    }
    rig.pass(1);
    let trace = rig.traced();
    let refused = trace.iter().filter(|line| line.ends_with("LS_RJT 09 29"));
    assert_eq!(refused.count(), 300 - 256);
    assert_eq!(rig.target.told.len(), 2);
}
