//! PREEMPT and PREEMPT AND ABORT (SPC-5 §5.14.11.4).

use super::super::{Action, ActionOutcome, ReservationNotice, ReservationType, Reservations};
use super::super::{ReservationNotice::*, ReservationRefusal::*};
use super::{act, preempt, quietly, refuses, registered, reserve};
use crate::testing::host;

const WE: ReservationType = ReservationType::WriteExclusive;
const EA: ReservationType = ReservationType::ExclusiveAccess;
const AR: ReservationType = ReservationType::WriteExclusiveAllRegistrants;

fn hosts(numbers: &[u8]) -> Vec<std::sync::Arc<crate::nexus::NexusIdentity>> {
    numbers.iter().map(|number| host(*number)).collect()
}

fn told(notices: &[(ReservationNotice, &[u8])]) -> ActionOutcome {
    let notices = notices.iter();
    ActionOutcome {
        notices: notices
            .map(|(notice, whom)| (*notice, hosts(whom)))
            .collect(),
        abort: Vec::new(),
    }
}

/// Hosts 1, 2 and 3 with keys A, B and C.
fn three() -> Reservations {
    registered(&[(&host(1), 0xa), (&host(2), 0xb), (&host(3), 0xc)])
}

#[test]
fn of_the_holder_takes_the_reservation_over() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let found = act(&mut all, &host(2), &preempt(0xb, 0xa, WE));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[1])])));
    assert!(all.is_holder(&host(2)));
    assert!(!all.is_registered(&host(1)));
    assert_eq!(all.generation(), 4);
}

#[test]
fn with_another_type_tells_those_who_stay() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let found = act(&mut all, &host(2), &preempt(0xb, 0xa, EA));
    let expected: &[(ReservationNotice, &[u8])] =
        &[(ReservationsReleased, &[3]), (RegistrationsPreempted, &[1])];
    assert_eq!(found, Ok(told(expected)));
}

#[test]
fn of_another_registrant_leaves_the_reservation() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let found = act(&mut all, &host(2), &preempt(0xb, 0xc, EA));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[3])])));
    assert!(all.is_holder(&host(1)));
    assert_eq!(all.reservation().map(|held| held.kind), Some(WE));
}

#[test]
fn without_a_reservation_makes_none() {
    let mut all = three();
    let found = act(&mut all, &host(2), &preempt(0xb, 0xa, EA));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[1])])));
    assert_eq!(all.reservation(), None);
}

#[test]
fn of_an_unknown_key_conflicts_and_of_zero_is_invalid() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    refuses(&mut all, &host(2), &preempt(0xb, 0xd, WE), Conflict);
    refuses(&mut all, &host(2), &preempt(0xb, 0, WE), ZeroKey);
    refuses(&mut all, &host(2), &preempt(0xa, 0xa, WE), Conflict);
    assert_eq!(all.generation(), 3);
}

#[test]
fn of_zero_removes_everybody_else_where_all_are_holders() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, AR));
    let found = act(&mut all, &host(2), &preempt(0xb, 0, EA));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[1, 3])])));
    assert_eq!(all.registrations().len(), 1);
    assert_eq!(all.reservation().map(|held| held.kind), Some(EA));
    assert!(all.is_holder(&host(2)));
}

#[test]
fn of_one_key_where_all_are_holders_only_unregisters() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, AR));
    let found = act(&mut all, &host(2), &preempt(0xb, 0xc, EA));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[3])])));
    assert_eq!(all.reservation().map(|held| held.kind), Some(AR));
}

#[test]
fn by_the_holder_of_itself_changes_the_type() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let found = act(&mut all, &host(1), &preempt(0xa, 0xa, EA));
    assert_eq!(found, Ok(told(&[(ReservationsReleased, &[2, 3])])));
    assert!(all.is_holder(&host(1)));
    assert_eq!(all.reservation().map(|held| held.kind), Some(EA));
}

#[test]
fn of_a_shared_key_spares_only_the_one_that_takes_over() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xa), (&host(3), 0xa)]);
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let found = act(&mut all, &host(2), &preempt(0xa, 0xa, WE));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[1, 3])])));
    assert!(all.is_holder(&host(2)));
}

#[test]
fn of_its_own_key_without_a_reservation_unregisters_itself_unheard() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xa)]);
    let found = act(&mut all, &host(1), &preempt(0xa, 0xa, WE));
    assert_eq!(found, Ok(told(&[(RegistrationsPreempted, &[2])])));
    assert!(all.registrations().is_empty());
}

#[test]
fn and_abort_aborts_for_whoever_is_preempted() {
    let mut all = three();
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    let action = Action::Preempt {
        key: 0xb,
        victim: 0xa,
        kind: Some(WE),
        abort: true,
    };
    let outcome = act(&mut all, &host(2), &action).unwrap();
    assert_eq!(outcome.abort, hosts(&[1]));
    let action = Action::Preempt {
        key: 0xb,
        victim: 0xb,
        kind: Some(WE),
        abort: true,
    };
    let outcome = act(&mut all, &host(2), &action).unwrap();
    assert_eq!(outcome, ActionOutcome::default(), "nobody else has the key");
}

#[test]
fn needs_a_type_only_where_it_reserves() {
    let mut all = three();
    let without = |victim| Action::Preempt {
        key: 0xb,
        victim,
        kind: None,
        abort: false,
    };
    assert!(act(&mut all, &host(2), &without(0xc)).is_ok());
    quietly(&mut all, &host(1), &reserve(0xa, WE));
    refuses(&mut all, &host(2), &without(0xa), NoType);
    assert!(all.is_holder(&host(1)));
}
