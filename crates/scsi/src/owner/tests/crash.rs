//! Reservations that outlive the process: what storage holds at each step.

use super::*;
use crate::reserve::Reservations;
use crate::testing::resized;

const NOT_STORED: CommandFailure =
    CommandFailure::Check(Sense::new(SenseKey::HardwareError, 0x4400));

/// The bytes to be stored, and whatever else came out.
fn persisted(owner: &mut UnitOwner, input: Input) -> (Option<Vec<u8>>, Vec<Did>) {
    owner.handle(input);
    let mut stored = None;
    let mut rest = Vec::new();
    while let Some(output) = owner.poll() {
        match output {
            OwnerOutput::Persist(bytes) => stored = Some(bytes),
            output => rest.push(brief(output)),
        }
    }
    (stored, rest)
}

/// Acknowledges by both cores.
fn agree(owner: &mut UnitOwner, version: u64) -> Vec<Did> {
    let mut all = did(owner, acknowledge(0, version));
    all.extend(did(owner, acknowledge(1, version)));
    all
}

#[test]
fn aptpl_is_stored_before_anybody_sees_it_and_seen_before_it_is_answered() {
    let mut owner = owner();
    let (bytes, rest) = persisted(&mut owner, ask(0, 1, register(0xa, true)));
    assert_eq!(rest, [], "nothing is published yet");
    assert!(!owner.state().reservations.is_registered(&host(1)));
    let stored = Reservations::from_bytes(&bytes.expect("to be stored")).unwrap();
    assert_eq!(stored.key(&host(1)), Some(0xa));
    owner.does(Input::Persisted(true), [Publish(1)]);
    assert_eq!(agree(&mut owner, 1), [Reply(0, 1, Ok(()))]);
}

#[test]
fn without_aptpl_nothing_is_stored() {
    let mut owner = owner();
    owner.does(ask(0, 1, register(0xa, false)), [Publish(1)]);
    agree(&mut owner, 1);
    owner.does(ask(0, 2, reserve(0xa)), [Publish(2)]);
}

#[test]
fn with_aptpl_every_change_is_stored_until_it_is_taken_back() {
    let mut owner = owner();
    owner.does(ask(0, 1, register(0xa, true)), [Persist]);
    did(&mut owner, Input::Persisted(true));
    agree(&mut owner, 1);
    owner.does(ask(0, 2, reserve(0xa)), [Persist]);
    did(&mut owner, Input::Persisted(true));
    agree(&mut owner, 2);
    let (bytes, _) = persisted(&mut owner, ask(1, 1, register(0xb, false)));
    let stored = Reservations::from_bytes(&bytes.expect("to be stored")).unwrap();
    assert_eq!(stored, Reservations::default(), "the newest APTPL counts");
    did(&mut owner, Input::Persisted(true));
    agree(&mut owner, 3);
    owner.does(ask(1, 2, register(0xc, false)), [Publish(4)]);
}

#[test]
fn what_cannot_be_stored_does_not_happen() {
    let mut owner = owner();
    owner.does(ask(0, 1, register(0xa, true)), [Persist]);
    owner.does(ask(1, 1, UnitChange::Reserve), []);
    let after = did(&mut owner, Input::Persisted(false));
    let failed = Reply(0, 1, Err(NOT_STORED));
    assert_eq!(after[0], failed);
    assert_eq!(owner.state().reservations.registrations(), []);
}

#[test]
fn after_a_failure_the_next_change_stores_whatever_it_is() {
    let mut owner = owner();
    did(&mut owner, ask(0, 1, register(0xa, true)));
    did(&mut owner, Input::Persisted(false));
    let (bytes, _) = persisted(&mut owner, ask(0, 2, register(0xa, false)));
    let stored = Reservations::from_bytes(&bytes.expect("to be stored")).unwrap();
    assert_eq!(stored, Reservations::default());
    owner.does(Input::Persisted(true), [Publish(1)]);
    agree(&mut owner, 1);
    owner.does(ask(0, 3, register(0xb, false)), [Publish(2)]);
}

#[test]
fn what_is_restored_is_taken_as_stored() {
    let mut before = owner();
    let (bytes, _) = persisted(&mut before, ask(0, 1, register(0xa, true)));
    let mut state = unit();
    let restored = Reservations::from_bytes(&bytes.unwrap()).unwrap();
    state.reservations = Arc::new(restored);
    let mut owner = UnitOwner::new(state, 2);
    owner.does(ask(0, 1, resized(8)), [Publish(1)]);
    agree(&mut owner, 1);
    owner.does(ask(0, 2, reserve(0xa)), [Persist]);
}

#[test]
fn a_word_of_storage_that_nobody_asked_for_is_of_no_account() {
    let mut owner = owner();
    owner.does(Input::Persisted(true), []);
    owner.does(ask(0, 1, UnitChange::Reserve), [Publish(1)]);
    owner.does(Input::Persisted(false), []);
    assert_eq!(agree(&mut owner, 1), [Reply(0, 1, Ok(()))]);
}
