use super::*;
use crate::commands::LocalFacts;
use crate::testing::{nexus, unit};
use crate::unit::UnitState;
use crate::wire::lun::Lun;
use std::time::Duration;

fn ask(
    handler: fn(&Query<'_>) -> QueryResult,
    unit: &UnitState,
    cdb: &[u8],
    parameters: &[u8],
) -> QueryResult {
    handler(&Query {
        cdb,
        parameters,
        unit: Some(unit),
        nexus: &nexus(1),
        lun: Lun::from_index(0),
        now: Duration::ZERO,
        local: &LocalFacts::default(),
    })
}

fn report(unit: &UnitState, format: u8) -> QueryResult {
    let cdb = [0xa3, format << 5 | 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    ask(report_target_port_groups, unit, &cdb, &[])
}

fn set(list: &[u8]) -> QueryResult {
    let cdb = [0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, list.len() as u8, 0, 0];
    ask(set_target_port_groups, &unit(), &cdb, list)
}

fn data(answer: QueryResult) -> Vec<u8> {
    match answer {
        QueryResult::Data(data) => data,
        answer => panic!("{answer:?}"),
    }
}

#[track_caller]
fn assert_fails(answer: &QueryResult, sense: Sense) {
    let QueryResult::Fail(found) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(*found, CommandFailure::Check(sense));
}

const GROUP_OF_TWO_PORTS: [u8; 16] = [0, 0x03, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];

#[test]
fn report_lists_every_port_in_one_group() {
    let expected = [&[0, 0, 0, 16][..], &GROUP_OF_TWO_PORTS].concat();
    assert_eq!(data(report(&unit(), 0)), expected);
}

#[test]
fn report_has_a_header_where_it_is_asked_for() {
    let expected = [&[0, 0, 0, 20, 0x10, 0, 0, 0][..], &GROUP_OF_TWO_PORTS].concat();
    assert_eq!(data(report(&unit(), 1)), expected);
    assert_fails(&report(&unit(), 2), Sense::cdb_field(1, Some(7)));
}

#[test]
fn report_tells_the_state_that_was_set() {
    let mut unit = unit();
    unit.access_state = AccessState::NonOptimized;
    assert_eq!(data(report(&unit, 0))[4], 0x01);
}

#[test]
fn set_takes_active_states_of_the_one_group() {
    for (code, expected) in [(0, AccessState::Optimized), (1, AccessState::NonOptimized)] {
        let answer = set(&[0, 0, 0, 0, code, 0, 0, 1]);
        let QueryResult::Change(UnitChange::AccessState(found)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(found, expected);
    }
    assert!(matches!(set(&[]), QueryResult::Good));
    assert!(matches!(set(&[0; 4]), QueryResult::Good));
}

#[test]
fn set_refuses_states_that_would_not_be_true() {
    for code in [2, 3, 0xe, 0xf] {
        let answer = set(&[0, 0, 0, 0, code, 0, 0, 1]);
        assert_fails(&answer, Sense::parameter_field(4, Some(3)));
    }
}

#[test]
fn set_refuses_other_groups_and_one_named_twice() {
    let answer = set(&[0, 0, 0, 0, 0, 0, 0, 2]);
    assert_fails(&answer, Sense::parameter_field(6, None));
    let answer = set(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1]);
    assert_fails(&answer, Sense::parameter_field(10, None));
}

#[test]
fn set_refuses_a_list_that_is_cut() {
    let whole = [0, 0, 0, 0, 1, 0, 0, 1];
    for len in [1, 2, 3, 5, 6, 7] {
        assert_fails(&set(&whole[..len]), Sense::parameter_length());
    }
}
