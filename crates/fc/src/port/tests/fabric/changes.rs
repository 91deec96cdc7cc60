//! RSCNs, and what they lead to.

use super::rig::{INITIATOR, LIST, NAME, Rig, TARGET};
use crate::fip::enode::FabricNotice;
use crate::port::tests::rig::ms;
use crate::wire::ct::CtReject;
use crate::wire::ct::name_server::code;
use crate::wire::names::{FcId, Wwn};

/// The initiator has a nexus, at 4 s.
fn paired() -> Rig {
    let mut rig = Rig::up();
    rig.run(ms(4000));
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
    rig.traced();
    rig
}

#[test]
fn changes_are_gathered_for_100_ms() {
    let mut rig = paired();
    for _ in 0..5 {
        rig.rscn(INITIATOR, &[(0, TARGET), (0, FcId(0x01_0300))]);
        rig.pass(10);
    }
    rig.pass(40);
    assert_eq!(rig.count(NAME), 0);
    rig.pass(20);
    // One for each port, whoever has named it how often.
    assert_eq!(rig.count(NAME), 2);
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn there_is_one_round_a_second() {
    let mut rig = paired();
    for _ in 0..400 {
        rig.rscn(INITIATOR, &[(0, TARGET)]);
        rig.pass(10);
    }
    let rounds = rig.count(NAME);
    assert!((4..=5).contains(&rounds), "{rounds}");
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn a_port_that_the_name_server_does_not_know_is_lost() {
    let mut rig = paired();
    rig.entries.remove(&TARGET);
    rig.rscn(INITIATOR, &[(0, TARGET)]);
    rig.pass(200);
    assert_eq!(rig.initiator.told[2..], ["down 0: Lost(Departed)"]);
    // The target knows who has logged in to it, and asks about no one else.
    rig.entries.remove(&INITIATOR);
    rig.traced();
}

#[test]
fn a_target_loses_an_initiator_that_is_gone() {
    let mut rig = paired();
    rig.rscn(TARGET, &[(0, FcId(0x01_0300))]);
    rig.pass(2000);
    assert_eq!(rig.count(NAME), 0);
    let gone = rig.entries.remove(&INITIATOR).unwrap();
    rig.rscn(TARGET, &[(0, INITIATOR)]);
    rig.pass(2000);
    assert_eq!(rig.count(NAME), 1);
    assert_eq!(rig.target.told[2..], ["down 0: Lost(Departed)"]);
    rig.entries.insert(INITIATOR, gone);
}

#[test]
fn a_port_that_stays_the_same_stays_as_it_is() {
    let mut rig = paired();
    for page in [(0, TARGET), (1, TARGET), (2, TARGET), (3, FcId(0))] {
        rig.rscn(INITIATOR, &[page]);
        rig.rscn(TARGET, &[page]);
        rig.pass(1500);
    }
    assert_eq!(rig.initiator.told.len(), 2);
    assert_eq!(rig.target.told.len(), 2);
    assert_eq!(rig.count(LIST), 6);
}

/// The target lost the initiator for a moment, as by zones that were changed and changed back, at
/// 18 s, when the login has been verified. The initiator has heard of neither.
fn forgotten() -> Rig {
    let mut rig = paired();
    rig.pass(12_000);
    let entry = rig.entries.remove(&INITIATOR).unwrap();
    rig.rscn(TARGET, &[(0, INITIATOR)]);
    rig.pass(2000);
    rig.entries.insert(INITIATOR, entry);
    assert_eq!(rig.target.told[2..], ["down 0: Lost(Departed)"]);
    rig.traced();
    rig
}

#[test]
fn a_target_that_has_forgotten_the_login_is_logged_in_to_again() {
    for page in [(0, TARGET), (1, TARGET), (2, TARGET), (3, FcId(0))] {
        let mut rig = forgotten();
        rig.rscn(INITIATOR, &[page]);
        rig.pass(200);
        let told = &rig.initiator.told[2..];
        assert_eq!(told, ["down 0: LoggedOut", "up 0"], "{page:?}");
        assert_eq!(rig.target.told[3..], ["up 0"]);
    }
}

/// Questions about the port that was named are lost, and the list has it as before.
#[test]
fn a_list_in_place_of_a_name_has_the_login_verified() {
    let mut rig = forgotten();
    rig.unanswered.push((code::GPN_ID, TARGET));
    rig.rscn(INITIATOR, &[(0, TARGET)]);
    rig.pass(60_000);
    assert_eq!(rig.initiator.told[2..], ["down 0: LoggedOut", "up 0"]);
    let trace = rig.traced();
    assert_eq!(
        trace[..10],
        [
            "18000 010101 > fffffd LS_ACC",
            "18100 010101 > fffffc CT 0112",
            "22100 010101 > fffffc CT 0112",
            "26100 010101 > fffffc CT 0112",
            "32100 010101 > fffffc CT 0172",
            "32100 010101 > 010100 ADISC",
            "32100 010100 > 010101 LS_RJT 09 1e",
            "32100 010101 > 010100 PLOGI",
            "32100 010100 > fffffc CT 0112",
            "32100 010100 > 010101 LS_ACC",
        ]
    );
}

#[test]
fn a_change_of_more_than_a_port_lists_all() {
    let mut rig = paired();
    rig.add_entry(FcId(0x01_0300), 7, 1);
    rig.rscn(INITIATOR, &[(1, FcId(0x01_0300))]);
    rig.pass(200);
    assert_eq!(rig.count(LIST), 1);
    assert!(rig.initiator.port.find(Wwn(7)).is_some());
    rig.entries.remove(&FcId(0x01_0300));
    rig.rscn(INITIATOR, &[(3, FcId(0))]);
    rig.pass(2000);
    assert!(rig.initiator.port.find(Wwn(7)).is_none());
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn more_than_64_changes_list_all() {
    let mut rig = paired();
    let pages: Vec<_> = (0..65).map(|at| (0, FcId(0x02_0000 + at))).collect();
    rig.rscn(INITIATOR, &pages);
    rig.pass(200);
    let trace = rig.traced();
    let ends = |line: &&String, code| line.ends_with(code);
    assert_eq!(trace.iter().filter(|line| ends(line, "0172")).count(), 1);
    assert_eq!(trace.iter().filter(|line| ends(line, "0112")).count(), 0);
}

#[test]
fn an_n_port_id_with_another_name_is_another_port() {
    let mut rig = paired();
    rig.add_entry(FcId(0x01_0300), 7, 1);
    rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
    rig.pass(1500);
    rig.add_entry(FcId(0x01_0300), 8, 1);
    rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
    rig.pass(1500);
    assert!(rig.initiator.port.find(Wwn(7)).is_none());
    assert!(rig.initiator.port.find(Wwn(8)).is_some());
}

#[test]
fn a_name_at_another_n_port_id_is_found_there() {
    let mut rig = paired();
    for fc_id in [FcId(0x01_0300), FcId(0x01_0400)] {
        rig.add_entry(fc_id, 7, 1);
        rig.rscn(INITIATOR, &[(0, fc_id)]);
        rig.pass(1500);
        let found = rig.initiator.port.find(Wwn(7)).unwrap();
        assert_eq!(found.address().fc_id, fc_id);
    }
}

#[test]
fn an_answer_of_several_frames_is_put_together() {
    let mut rig = paired();
    for at in 0..1000 {
        rig.add_entry(FcId(0x02_0000 + at), 0x7000 + u64::from(at), 2);
    }
    rig.rscn(INITIATOR, &[(3, FcId(0))]);
    rig.pass(200);
    assert_eq!(rig.initiator.port.remotes().count(), 1001);
}

#[test]
fn nobody_logs_in_to_other_initiators() {
    let mut rig = paired();
    rig.add_entry(FcId(0x01_0300), 7, 2);
    rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
    rig.pass(200);
    let other = rig.initiator.port.find(Wwn(7)).unwrap();
    assert_eq!(other.neighbour().target, Some(false));
    let trace = rig.traced();
    assert!(
        !trace.iter().any(|line| line.ends_with("PLOGI")),
        "{trace:?}"
    );
}

#[test]
fn rscns_about_oneself_are_of_no_interest() {
    let mut rig = paired();
    rig.rscn(INITIATOR, &[(0, INITIATOR)]);
    rig.pass(1500);
    assert_eq!(rig.traced(), [" 4000 010101 > fffffd LS_ACC"]);
}

#[test]
fn more_than_4096_ports_are_told_once_and_left_out() {
    let mut rig = paired();
    for at in 0..5000 {
        rig.add_entry(FcId(0x02_0000 + at), 0x7000 + u64::from(at), 2);
    }
    for _ in 0..2 {
        rig.rscn(INITIATOR, &[(3, FcId(0))]);
        rig.pass(1500);
    }
    assert_eq!(rig.initiator.port.remotes().count(), 4096);
    let told = rig.initiator.notices.iter();
    let too_many = told.filter(|notice| matches!(notice, FabricNotice::TooManyPorts));
    assert_eq!(too_many.count(), 1);
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn an_initiator_that_becomes_a_target_is_logged_in_to() {
    let mut rig = paired();
    rig.add_entry(FcId(0x01_0300), 7, 2);
    rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
    rig.pass(1500);
    for page in [(0, FcId(0x01_0300)), (3, FcId(0))] {
        rig.add_entry(FcId(0x01_0300), 7, 2);
        rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
        rig.pass(1500);
        rig.traced();
        rig.add_entry(FcId(0x01_0300), 7, 3);
        rig.rscn(INITIATOR, &[page]);
        rig.pass(1500);
        let trace = rig.traced();
        let plogi = |line: &String| line.ends_with("010101 > 010300 PLOGI");
        assert!(trace.iter().any(plogi), "{trace:?}");
        let other = rig.initiator.port.find(Wwn(7)).unwrap();
        assert_eq!(other.neighbour().target, Some(true));
        rig.entries.remove(&FcId(0x01_0300));
        rig.rscn(INITIATOR, &[(0, FcId(0x01_0300))]);
        rig.pass(1500);
    }
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn a_list_that_is_refused_changes_nothing_and_is_asked_for_again() {
    for why in [
        CtReject::new(9, 0),
        CtReject::new(9, 0x10),
        CtReject::new(3, 0),
        CtReject::new(5, 0),
        CtReject::new(0x0b, 0),
    ] {
        let mut rig = paired();
        rig.add_entry(FcId(0x01_0300), 7, 1);
        rig.rejects.push((code::GPN_FT, why));
        rig.rscn(INITIATOR, &[(3, FcId(0))]);
        rig.pass(60_000);
        assert_eq!(rig.initiator.told.len(), 2, "{why:?}");
        let asked = rig.count(LIST);
        assert!((5..=15).contains(&asked), "{why:?}: {asked}");
        let told = rig.initiator.notices.iter().map(ToString::to_string);
        let told = told.filter(|line| line.contains("GPN_FT")).count();
        assert_eq!(told, usize::from(why.reason != 5));
        rig.rejects.clear();
        rig.pass(65_000);
        assert!(rig.initiator.port.find(Wwn(7)).is_some());
    }
}

/// A name server that has just been started says neither that a port is there nor that it is not.
#[test]
fn a_name_that_is_refused_is_looked_for_in_the_list() {
    let mut rig = paired();
    rig.rejects.push((code::GPN_ID, CtReject::new(9, 0)));
    rig.rscn(INITIATOR, &[(0, TARGET)]);
    rig.pass(60_000);
    assert_eq!(rig.initiator.told.len(), 2);
    rig.entries.remove(&TARGET);
    rig.rscn(INITIATOR, &[(0, TARGET)]);
    rig.pass(65_000);
    assert_eq!(rig.initiator.told[2..], ["down 0: Lost(Departed)"]);
}

#[test]
fn a_fabric_without_ports_of_fcp_loses_them_all() {
    for reject in [Some(CtReject::new(9, 7)), None] {
        let mut rig = paired();
        rig.rejects.extend(reject.map(|why| (code::GPN_FT, why)));
        rig.entries.clear();
        rig.add_entry(INITIATOR, 1, 2);
        rig.entries.get_mut(&INITIATOR).unwrap().features = None;
        rig.rscn(INITIATOR, &[(3, FcId(0))]);
        rig.pass(200);
        assert_eq!(rig.initiator.told[2..], ["down 0: Lost(Departed)"]);
    }
}

#[test]
fn silence_about_one_port_does_not_hide_the_others() {
    let mut rig = paired();
    let silent = [0x02_0001, 0x02_0002].map(FcId);
    for at in 0..6 {
        rig.add_entry(FcId(0x02_0000 + at), 0x7000 + u64::from(at), 1);
    }
    rig.unanswered = silent.map(|fc_id| (code::GFF_ID, fc_id)).to_vec();
    rig.rscn(INITIATOR, &[(3, FcId(0))]);
    rig.pass(60_000);
    for at in [0, 3, 4, 5] {
        assert!(rig.initiator.port.find(Wwn(0x7000 + at)).is_some(), "{at}");
    }
    assert!(rig.initiator.port.find(Wwn(0x7001)).is_none());
    rig.unanswered.clear();
    rig.pass(80_000);
    assert!(rig.initiator.port.find(Wwn(0x7001)).is_some());
    assert!(rig.initiator.port.find(Wwn(0x7002)).is_some());
}

/// Three that are silent make it look as if the name server were: those behind them come first in
/// the next round.
#[test]
fn ports_behind_many_that_are_silent_are_found() {
    let mut rig = paired();
    for at in 0..10 {
        rig.add_entry(FcId(0x02_0000 + at), 0x7000 + u64::from(at), 1);
    }
    let silent = (0..5).map(|at| (code::GFF_ID, FcId(0x02_0000 + at)));
    rig.unanswered = silent.collect();
    rig.rscn(INITIATOR, &[(3, FcId(0))]);
    rig.pass(120_000);
    for at in 5..10 {
        assert!(rig.initiator.port.find(Wwn(0x7000 + at)).is_some(), "{at}");
    }
    assert_eq!(rig.initiator.told.len(), 2);
}
