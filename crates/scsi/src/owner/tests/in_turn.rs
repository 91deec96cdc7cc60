//! Changes are made one after the other, and answered when every core works by them.

use super::*;
use crate::testing::resized;

#[test]
fn a_change_is_answered_after_the_last_acknowledgement() {
    let mut owner = owner();
    owner.does(ask(0, 7, UnitChange::Reserve), [Publish(1)]);
    owner.does(acknowledge(1, 1), []);
    owner.does(acknowledge(0, 1), [Reply(0, 7, Ok(()))]);
}

#[test]
fn the_next_change_waits_for_the_last() {
    let mut owner = owner();
    owner.does(ask(0, 1, UnitChange::Reserve), [Publish(1)]);
    owner.does(ask(1, 1, UnitChange::Reserve), []);
    owner.does(ask(1, 2, UnitChange::Reset), []);
    owner.does(acknowledge(0, 1), []);
    let after = did(&mut owner, acknowledge(1, 1));
    let refused = Reply(1, 1, Err(CONFLICT));
    assert_eq!(after, [Reply(0, 1, Ok(())), refused, Publish(2)]);
    owner.does(acknowledge(0, 2), []);
    owner.does(acknowledge(1, 2), [Reply(1, 2, Ok(()))]);
}

#[test]
fn what_changes_nothing_is_answered_without_a_publication() {
    let mut owner = owner();
    owner.does(ask(0, 1, UnitChange::NexusLoss), [Reply(0, 1, Ok(()))]);
    owner.does(ask(0, 2, UnitChange::Release), [Reply(0, 2, Ok(()))]);
    assert_eq!(owner.state().version, 0);
}

#[test]
fn late_double_and_unknown_acknowledgements_are_of_no_account() {
    let mut owner = owner();
    owner.does(ask(0, 1, UnitChange::Reserve), [Publish(1)]);
    for (core, version) in [(0, 1), (0, 1), (1, 0), (1, 2), (9, 1)] {
        owner.does(acknowledge(core, version), []);
    }
    owner.does(acknowledge(1, 1), [Reply(0, 1, Ok(()))]);
    owner.does(acknowledge(1, 1), []);
}

#[test]
fn a_publication_carries_its_effects_and_its_cause() {
    let mut owner = owner();
    owner.handle(ask(1, 5, resized(4096)));
    let Some(OwnerOutput::Publish { publication, .. }) = owner.poll() else {
        panic!("nothing published");
    };
    assert_eq!(publication.cause, Some((CoreId(1), 5)));
    assert_eq!(
        *publication.effects,
        [Effect::Attention(EffectScope::All, asc::CAPACITY_CHANGED)]
    );
    assert_eq!(publication.state.traits.blocks, 4096);
    assert_eq!(publication.state, *owner.state());
}

#[test]
fn a_core_that_ends_holds_up_nobody_and_is_not_answered() {
    let mut owner = owner();
    owner.does(ask(0, 1, UnitChange::Reserve), [Publish(1)]);
    owner.does(ask(1, 1, UnitChange::Reset), []);
    owner.does(acknowledge(0, 1), []);
    let after = did(&mut owner, Input::Gone(CoreId(1)));
    assert_eq!(
        after,
        [Reply(0, 1, Ok(()))],
        "and no reset for the core that ended"
    );
    owner.does(ask(0, 2, UnitChange::Reset), [Publish(2)]);
    owner.does(acknowledge(0, 2), [Reply(0, 2, Ok(()))]);
}

#[test]
fn the_change_of_a_core_that_ends_is_still_finished() {
    let mut owner = owner();
    owner.does(ask(1, 1, UnitChange::Reset), [Publish(1)]);
    owner.does(ask(0, 1, UnitChange::Reserve), []);
    owner.does(Input::Gone(CoreId(1)), []);
    owner.does(acknowledge(0, 1), [Publish(2)]);
}

#[test]
fn commands_beyond_the_limit_are_busy_and_resets_are_not() {
    let mut owner = owner();
    owner.does(ask(0, 0, UnitChange::Reset), [Publish(1)]);
    for id in 0..MAX_WAITING as u64 {
        owner.does(ask(0, id, UnitChange::Release), []);
    }
    let busy = Reply(0, 1, Err(BUSY));
    owner.does(ask(0, 1, UnitChange::Release), [busy]);
    owner.does(ask(0, 2, UnitChange::Reset), []);
}

#[test]
fn what_storage_holds_is_sure_when_nothing_is_being_changed() {
    let mut owner = owner();
    let before = owner.settled().unwrap().to_vec();
    owner.does(ask(0, 1, register(7, true)), [Persist]);
    assert_eq!(owner.settled(), None);
    owner.does(Input::Persisted(true), [Publish(1)]);
    assert_eq!(owner.settled(), None);
    owner.handle(acknowledge(0, 1));
    owner.does(acknowledge(1, 1), [Reply(0, 1, Ok(()))]);
    assert_ne!(owner.settled(), Some(&*before));
    owner.does(ask(0, 2, register(8, true)), [Persist]);
    owner.handle(Input::Persisted(false));
    assert_eq!(owner.settled(), None, "it may hold either");
}

#[test]
fn an_owner_that_is_closed_refuses_what_a_host_can_try_again() {
    let mut owner = owner();
    owner.close();
    owner.does(ask(0, 1, register(7, true)), [Reply(0, 1, Err(BUSY))]);
    owner.does(ask(0, 2, UnitChange::Reset), [Publish(1)]);
}
