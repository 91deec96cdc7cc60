//! Walks through what a name server lists, beside the answers that it should give.

use super::rig::{INITIATOR, Rig, TARGET, in_fabric};
use crate::port::NameWalkState::{self, Partial, UnderWay, Whole};
use crate::port::tests::rig::ms;
use crate::wire::ct::CtReject;
use crate::wire::ct::name_server::code;
use crate::wire::ct::reason::{LOGICAL_BUSY, NOT_SUPPORTED};

fn begun() -> Rig {
    let mut rig = Rig::up();
    assert!(rig.initiator.port.walk_names(rig.now));
    rig
}

fn state(rig: &Rig) -> NameWalkState {
    rig.initiator.port.walk_state()
}

#[test]
fn each_port_is_asked_for_by_the_one_before() {
    let mut rig = begun();
    rig.pass(1);
    let found = rig.initiator.port.walked().iter();
    let found: Vec<_> = found.map(|entry| entry.fc_id).collect();
    assert_eq!(found, [TARGET, INITIATOR]);
    assert_eq!(state(&rig), Whole);
    assert_eq!(rig.count(code::GA_NXT), 3);
}

/// A caller that asks each turn whether it goes on asks the name server no more often for that.
#[test]
fn an_answer_that_is_lost_is_asked_for_again_where_it_was() {
    let mut rig = Rig::up();
    rig.unanswered.push((code::GA_NXT, TARGET));
    for _ in 0..20 {
        assert!(rig.initiator.port.walk_names(rig.now));
        rig.pass(50);
    }
    assert_eq!(rig.initiator.port.walked().len(), 1);
    assert_eq!(rig.count(code::GA_NXT), 2);
    rig.unanswered.clear();
    rig.pass(1100);
    assert_eq!(rig.count(code::GA_NXT), 2);
    assert_eq!(rig.initiator.port.walked().len(), 2);
    assert_eq!(state(&rig), Whole);
}

#[test]
fn a_name_server_that_is_silent_is_asked_three_times() {
    let mut rig = begun();
    rig.is_mute = true;
    rig.pass(5900);
    assert_eq!(state(&rig), UnderWay);
    rig.pass(200);
    assert_eq!(state(&rig), Partial);
    rig.pass(20_000);
    assert_eq!(rig.count(code::GA_NXT), 3);
}

#[test]
fn a_name_server_that_is_busy_is_given_time() {
    let mut rig = begun();
    let busy = (code::GA_NXT, CtReject::new(LOGICAL_BUSY, 0));
    rig.rejects.push(busy);
    rig.pass(100);
    assert_eq!(state(&rig), UnderWay);
    rig.rejects.clear();
    rig.pass(2000);
    assert_eq!(state(&rig), Whole);
    assert_eq!(rig.initiator.port.walked().len(), 2);
}

#[test]
fn one_that_stays_busy_or_knows_no_walks_has_not_told_all() {
    for why in [
        CtReject::new(LOGICAL_BUSY, 0),
        CtReject::new(NOT_SUPPORTED, 0),
    ] {
        let mut rig = begun();
        rig.rejects.push((code::GA_NXT, why));
        rig.pass(6100);
        assert_eq!(state(&rig), Partial, "{why:?}");
    }
}

/// Nothing else is to be found meanwhile, so that a unit that is not there is told as absent.
#[test]
fn after_a_list_that_is_rejected_no_port_is_looked_for_any_longer() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.rejects.push((code::GPN_FT, CtReject::new(9, 0)));
    rig.run(ms(1000));
    assert!(!rig.initiator.port.is_linking(rig.target.port.wwpn()));
    assert!(rig.initiator.port.walk_names(rig.now));
}
