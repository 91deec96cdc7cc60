//! RESERVE and RELEASE, and how they and persistent reservations keep out of each other's way.

use super::super::ReservationType::{ExclusiveAccess, WriteExclusive};
use super::super::{Holding, ReservationRefusal, ReservationType, apply};
use super::{act, quietly, register, registered, reserve};
use crate::task::CommandFailure;
use crate::testing::{host, unit};
use crate::unit::UnitState;
use crate::wire::sense::Status;
use std::sync::Arc;

const CONFLICT: CommandFailure = CommandFailure::Status(Status::ReservationConflict);

fn holder(state: &UnitState) -> Option<u8> {
    match state.reservations.hold() {
        Holding::Reserved(holder) => (1..=3).find(|number| host(*number) == *holder),
        _ => None,
    }
}

#[test]
fn reserve_is_for_one_at_a_time_and_may_be_repeated() {
    let mut state = unit();
    assert_eq!(apply::reserve(&mut state, &host(1)), Ok(()));
    assert_eq!(apply::reserve(&mut state, &host(1)), Ok(()));
    assert_eq!(apply::reserve(&mut state, &host(2)), Err(CONFLICT));
    assert_eq!(holder(&state), Some(1));
}

#[test]
fn release_by_another_does_nothing() {
    let mut state = unit();
    apply::reserve(&mut state, &host(1)).unwrap();
    assert_eq!(apply::release(&mut state, &host(2)), Ok(()));
    assert_eq!(holder(&state), Some(1));
    assert_eq!(apply::release(&mut state, &host(1)), Ok(()));
    assert_eq!(*state.reservations.hold(), Holding::Free);
}

#[test]
fn a_reset_and_the_loss_of_its_nexus_end_reserve() {
    let mut state = unit();
    apply::reserve(&mut state, &host(1)).unwrap();
    apply::nexus_loss(&mut state, &host(2));
    assert_eq!(holder(&state), Some(1));
    apply::nexus_loss(&mut state, &host(1));
    assert_eq!(holder(&state), None);
    apply::reserve(&mut state, &host(2)).unwrap();
    apply::reset(&mut state);
    assert_eq!(holder(&state), None);
}

#[test]
fn a_reset_and_a_lost_nexus_leave_persistent_reservations() {
    let mut reservations = registered(&[(&host(1), 0xa)]);
    quietly(&mut reservations, &host(1), &reserve(0xa, WriteExclusive));
    let mut state = unit();
    state.reservations = Arc::new(reservations.clone());
    apply::reset(&mut state);
    apply::nexus_loss(&mut state, &host(1));
    assert_eq!(*state.reservations, reservations);
}

#[test]
fn persistent_reserve_out_conflicts_for_everybody_while_reserved() {
    let mut state = unit();
    apply::reserve(&mut state, &host(1)).unwrap();
    let reservations = Arc::make_mut(&mut state.reservations);
    for number in [1, 2] {
        let found = act(reservations, &host(number), &register(0, 0xa));
        assert_eq!(found, Err(ReservationRefusal::Conflict), "host {number}");
    }
}

#[test]
fn reserve_and_release_conflict_for_everybody_while_anybody_is_registered() {
    let mut state = unit();
    state.reservations = Arc::new(registered(&[(&host(1), 0xa)]));
    for number in [1, 2] {
        assert_eq!(apply::reserve(&mut state, &host(number)), Err(CONFLICT));
        assert_eq!(apply::release(&mut state, &host(number)), Err(CONFLICT));
    }
}

/// CRH = 1: whoever a persistent reservation gives access gets GOOD, and nothing happens.
#[test]
fn reserve_and_release_are_good_for_whom_a_persistent_reservation_admits() {
    for kind in ReservationType::ALL {
        let mut reservations = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
        quietly(&mut reservations, &host(1), &reserve(0xa, kind));
        let mut state = unit();
        state.reservations = Arc::new(reservations.clone());
        let registrant = match kind {
            WriteExclusive | ExclusiveAccess => Err(CONFLICT),
            _ => Ok(()),
        };
        for (number, expected) in [(1, Ok(())), (2, registrant), (3, Err(CONFLICT))] {
            let nexus = host(number);
            assert_eq!(
                apply::reserve(&mut state, &nexus),
                expected,
                "{kind:?} {number}"
            );
            assert_eq!(
                apply::release(&mut state, &nexus),
                expected,
                "{kind:?} {number}"
            );
        }
        assert_eq!(*state.reservations, reservations, "{kind:?}");
    }
}
