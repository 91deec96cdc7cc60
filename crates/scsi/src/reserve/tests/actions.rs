//! Registering, reserving and releasing.

use super::super::{
    ActionOutcome, MAX_REGISTRATIONS, Register, RegisterAndMove, ReservationNotice, ReservationType,
};
use super::super::{ReservationNotice::*, ReservationRefusal::*, ReservationType::*};
use super::{act, quietly, refuses, register, register_anyway, registered, release, reserve};
use crate::nexus::NexusIdentity;
use crate::reserve::{Action, Reservations};
use crate::testing::{by_port, host};
use std::sync::Arc;

fn told(notice: ReservationNotice, whom: &[u8]) -> ActionOutcome {
    ActionOutcome {
        notices: vec![(notice, whom.iter().map(|number| host(*number)).collect())],
        abort: Vec::new(),
    }
}

#[test]
fn register_needs_the_key_that_is_there() {
    let mut all = Reservations::default();
    let conflict = Err(Conflict);
    assert_eq!(act(&mut all, &host(1), &register(7, 0xa)), conflict);
    quietly(&mut all, &host(1), &register(0, 0xa));
    assert_eq!(act(&mut all, &host(1), &register(0, 0xb)), conflict);
    assert_eq!(act(&mut all, &host(1), &register(0xb, 0)), conflict);
    quietly(&mut all, &host(1), &register(0xa, 0xb));
    assert_eq!(all.key(&host(1)), Some(0xb));
    quietly(&mut all, &host(1), &register(0xb, 0));
    assert_eq!(all.key(&host(1)), None);
    assert_eq!(all.generation(), 3, "refusals are not counted");
}

#[test]
fn register_and_ignore_existing_key_needs_none() {
    let mut all = Reservations::default();
    quietly(&mut all, &host(1), &register_anyway(0xa));
    quietly(&mut all, &host(1), &register_anyway(0xb));
    assert_eq!(all.key(&host(1)), Some(0xb));
    quietly(&mut all, &host(1), &register_anyway(0));
    assert!(!all.is_registered(&host(1)));
}

#[test]
fn nobody_does_anything_without_being_registered() {
    let mut all = registered(&[(&host(1), 0xa)]);
    let kind = WriteExclusive;
    for action in [
        reserve(0, kind),
        reserve(0xa, kind),
        release(0xa, kind),
        Action::Clear { key: 0xa },
        super::preempt(0xa, 0xa, kind),
        moved(0xa, 0xb, 3),
    ] {
        let refused = Err(Conflict);
        assert_eq!(act(&mut all, &host(2), &action), refused, "{action:?}");
    }
}

#[test]
fn reserve_again_as_before_is_good_and_otherwise_a_conflict() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    let conflict = Err(Conflict);
    assert_eq!(
        act(&mut all, &host(1), &reserve(0xa, ExclusiveAccess)),
        conflict
    );
    assert_eq!(
        act(&mut all, &host(2), &reserve(0xb, WriteExclusive)),
        conflict
    );
    assert_eq!(all.generation(), 2, "RESERVE is not counted");
}

#[test]
fn release_by_another_registrant_is_good_and_does_nothing() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
    quietly(&mut all, &host(2), &release(0xb, WriteExclusive));
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    quietly(&mut all, &host(2), &release(0xb, WriteExclusive));
    assert!(all.is_holder(&host(1)));
}

#[test]
fn release_of_another_type_is_an_invalid_release() {
    let mut all = registered(&[(&host(1), 0xa)]);
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    let found = act(&mut all, &host(1), &release(0xa, ExclusiveAccess));
    assert_eq!(found, Err(InvalidRelease));
    assert!(all.is_holder(&host(1)));
}

#[test]
fn release_tells_those_whom_the_reservation_had_admitted() {
    for kind in ReservationType::ALL {
        let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb), (&host(3), 0xc)]);
        quietly(&mut all, &host(1), &reserve(0xa, kind));
        let expected = match kind {
            WriteExclusive | ExclusiveAccess => ActionOutcome::default(),
            _ => told(ReservationsReleased, &[2, 3]),
        };
        let found = act(&mut all, &host(1), &release(0xa, kind));
        assert_eq!(found, Ok(expected), "{kind:?}");
        assert_eq!(all.reservation(), None);
    }
}

#[test]
fn each_registrant_releases_an_all_registrants_reservation() {
    let kind = WriteExclusiveAllRegistrants;
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
    quietly(&mut all, &host(1), &reserve(0xa, kind));
    quietly(&mut all, &host(2), &reserve(0xb, kind));
    let found = act(&mut all, &host(2), &release(0xb, kind));
    assert_eq!(found, Ok(told(ReservationsReleased, &[1])));
}

#[test]
fn a_holder_that_unregisters_releases() {
    for kind in ReservationType::ALL {
        let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
        quietly(&mut all, &host(1), &reserve(0xa, kind));
        let expected = match kind {
            WriteExclusiveRegistrantsOnly | ExclusiveAccessRegistrantsOnly => {
                told(ReservationsReleased, &[2])
            }
            _ => ActionOutcome::default(),
        };
        let found = act(&mut all, &host(1), &register(0xa, 0));
        assert_eq!(found, Ok(expected), "{kind:?}");
        assert_eq!(
            all.reservation().is_some(),
            kind.all_registrants(),
            "{kind:?}"
        );
        assert_eq!(all.is_holder(&host(2)), kind.all_registrants(), "{kind:?}");
    }
}

#[test]
fn the_last_registrant_takes_an_all_registrants_reservation_along() {
    let mut all = registered(&[(&host(1), 0xa)]);
    let kind = ExclusiveAccessAllRegistrants;
    quietly(&mut all, &host(1), &reserve(0xa, kind));
    quietly(&mut all, &host(1), &register(0xa, 0));
    assert_eq!(all.reservation(), None);
}

#[test]
fn clear_tells_all_other_registrants() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb), (&host(3), 0xa)]);
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    let found = act(&mut all, &host(2), &Action::Clear { key: 0xb });
    assert_eq!(found, Ok(told(ReservationsPreempted, &[1, 3])));
    assert!(all.registrations().is_empty());
    assert_eq!(all.reservation(), None);
    assert_eq!(all.generation(), 4);
}

fn by_all_ports(key: u64, new_key: u64, number: u8) -> Action {
    Action::Register(Register {
        key: Some(key),
        new_key,
        siblings: vec![by_port(number, 2), by_port(number, 3)],
        specified: None,
        aptpl: false,
    })
}

#[test]
fn all_tg_pt_registers_and_unregisters_by_every_port() {
    let mut all = Reservations::default();
    quietly(&mut all, &host(1), &by_all_ports(0, 0xa, 1));
    for port in 1..=3 {
        assert_eq!(all.key(&by_port(1, port)), Some(0xa), "port {port}");
    }
    quietly(&mut all, &host(1), &by_all_ports(0xa, 0, 1));
    assert!(all.registrations().is_empty());
    assert_eq!(all.generation(), 2);
}

#[test]
fn all_tg_pt_conflicts_where_one_port_would() {
    let mut all = registered(&[(&by_port(1, 2), 0xb)]);
    let found = act(&mut all, &host(1), &by_all_ports(0, 0xa, 1));
    assert_eq!(found, Err(Conflict));
    quietly(&mut all, &host(1), &by_all_ports(0, 0xb, 1));
    assert_eq!(all.registrations().len(), 3);
}

fn specifying(key: u64, new_key: u64, numbers: &[u8]) -> Action {
    Action::Register(Register {
        key: Some(key),
        new_key,
        siblings: Vec::new(),
        specified: Some(numbers.iter().map(|number| host(*number)).collect()),
        aptpl: false,
    })
}

#[test]
fn spec_i_pt_registers_others_that_are_not_yet() {
    let mut all = registered(&[(&host(3), 0xc)]);
    quietly(&mut all, &host(1), &specifying(0, 0xa, &[2, 3, 2, 1]));
    assert_eq!(all.key(&host(1)), Some(0xa));
    assert_eq!(all.key(&host(2)), Some(0xa));
    assert_eq!(all.key(&host(3)), Some(0xc), "keeps its key");
    let found = act(&mut all, &host(1), &specifying(0xa, 0xb, &[4]));
    assert_eq!(found, Err(SpecifiedByRegistrant));
}

#[test]
fn registrations_are_bounded_and_none_is_made_where_not_all_can() {
    let stranger = |number: usize| {
        let initiator = (number as u64).to_be_bytes().into();
        Arc::new(NexusIdentity { initiator, port: 1 })
    };
    let mut all = Reservations::default();
    for number in 1..MAX_REGISTRATIONS {
        quietly(&mut all, &stranger(number), &register(0, 1));
    }
    let found = act(&mut all, &host(1), &specifying(0, 0xa, &[2]));
    assert_eq!(found, Err(NoResources));
    assert!(!all.is_registered(&host(1)));
    quietly(&mut all, &host(1), &register(0, 0xa));
    let found = act(&mut all, &host(2), &register(0, 0xa));
    assert_eq!(found, Err(NoResources));
    quietly(&mut all, &host(1), &register(0xa, 0xb));
}

fn moved(key: u64, new_key: u64, to: u8) -> Action {
    Action::Move(RegisterAndMove {
        key,
        new_key,
        to: host(to),
        unregister: false,
        aptpl: false,
    })
}

#[test]
fn register_and_move_hands_the_reservation_over() {
    let mut all = registered(&[(&host(1), 0xa)]);
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    quietly(&mut all, &host(1), &moved(0xa, 0xb, 2));
    assert!(all.is_holder(&host(2)));
    assert_eq!(all.key(&host(1)), Some(0xa));
    assert_eq!(all.key(&host(2)), Some(0xb));
    assert_eq!(all.generation(), 2);
}

#[test]
fn register_and_move_can_unregister_the_old_holder() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xc)]);
    quietly(&mut all, &host(1), &reserve(0xa, ExclusiveAccess));
    let Action::Move(mut leave) = moved(0xa, 0xb, 2) else {
        panic!("not a move");
    };
    leave.unregister = true;
    quietly(&mut all, &host(1), &Action::Move(leave));
    assert!(!all.is_registered(&host(1)));
    assert_eq!(all.key(&host(2)), Some(0xb));
    assert!(all.is_holder(&host(2)));
}

#[test]
fn register_and_move_is_for_the_one_holder_only() {
    let mut all = registered(&[(&host(1), 0xa), (&host(2), 0xb)]);
    let conflict = Err(Conflict);
    assert_eq!(
        act(&mut all, &host(1), &moved(0xa, 0xc, 3)),
        conflict,
        "nothing held"
    );
    quietly(&mut all, &host(1), &reserve(0xa, WriteExclusive));
    assert_eq!(
        act(&mut all, &host(2), &moved(0xb, 0xc, 3)),
        conflict,
        "not the holder"
    );
    refuses(&mut all, &host(1), &moved(0xa, 0, 3), ZeroKey);
    refuses(&mut all, &host(1), &moved(0xa, 0xc, 1), MovedToItself);
    quietly(&mut all, &host(1), &release(0xa, WriteExclusive));
    let kind = WriteExclusiveAllRegistrants;
    quietly(&mut all, &host(1), &reserve(0xa, kind));
    assert_eq!(
        act(&mut all, &host(1), &moved(0xa, 0xc, 3)),
        conflict,
        "all are holders"
    );
}
