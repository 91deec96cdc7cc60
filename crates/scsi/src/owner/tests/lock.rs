//! Locks exclude each other and nothing else.

use super::*;

fn lock(lba: u64, blocks: u64) -> UnitChange {
    UnitChange::Lock(Extent::new(lba, blocks))
}

const GRANTED: Result<(), CommandFailure> = Ok(());
const WITHDRAWN: CommandFailure = CommandFailure::Status(Status::TaskAborted);

fn held(owner: &UnitOwner) -> Vec<(u16, u64)> {
    let locks = owner.state().locks.iter();
    locks.map(|lock| (lock.holder.0.0, lock.holder.1)).collect()
}

#[test]
fn a_lock_is_granted_when_every_core_lets_go() {
    let mut owner = owner();
    owner.does(ask(0, 1, lock(0, 8)), [Publish(1)]);
    assert_eq!(held(&owner), [(0, 1)]);
    owner.does(acknowledge(0, 1), []);
    owner.does(acknowledge(1, 1), [Reply(0, 1, GRANTED)]);
    let after = did(&mut owner, ask(0, 2, UnitChange::Unlock(1)));
    assert_eq!(after, [Publish(2), Reply(0, 2, Ok(()))]);
    assert_eq!(held(&owner), []);
}

#[test]
fn locks_that_do_not_overlap_coexist() {
    let mut owner = owner();
    owner.does(ask(0, 1, lock(0, 8)), [Publish(1)]);
    owner.does(ask(1, 1, lock(8, 8)), [Publish(2)]);
    owner.does(acknowledge(0, 2), []);
    let second = did(&mut owner, acknowledge(1, 2));
    assert_eq!(second, [Reply(1, 1, GRANTED)], "the later may be the first");
    owner.does(acknowledge(0, 1), []);
    owner.does(acknowledge(1, 1), [Reply(0, 1, GRANTED)]);
    assert_eq!(held(&owner), [(0, 1), (1, 1)]);
}

#[test]
fn overlapping_locks_are_granted_in_the_order_in_which_they_came() {
    let mut owner = owner();
    owner.does(ask(0, 1, lock(0, 8)), [Publish(1)]);
    owner.does(ask(1, 1, lock(4, 8)), []);
    assert_eq!(
        did(&mut owner, ask(0, 2, lock(10, 8))),
        [],
        "not past the one before it"
    );
    owner.does(ask(0, 3, lock(100, 8)), [Publish(2)]);
    let after = did(&mut owner, ask(0, 4, UnitChange::Unlock(1)));
    let unlocked = Reply(0, 4, Ok(()));
    let withdrawn = Reply(0, 1, Err(WITHDRAWN));
    assert_eq!(after, [withdrawn, Publish(3), Publish(4), unlocked]);
    assert_eq!(held(&owner), [(0, 3), (1, 1)]);
    let after = did(&mut owner, ask(1, 2, UnitChange::Unlock(1)));
    assert_eq!(
        after.iter().filter(|one| matches!(one, Publish(_))).count(),
        2
    );
    assert_eq!(held(&owner), [(0, 3), (0, 2)]);
}

#[test]
fn a_reset_passes_a_lock_that_waits_for_a_transfer() {
    let mut owner = owner();
    owner.does(ask(0, 1, lock(0, 8)), [Publish(1)]);
    owner.does(acknowledge(0, 1), []);
    owner.does(ask(0, 2, UnitChange::Reset), [Publish(2)]);
    assert_eq!(held(&owner), [(0, 1)], "the reset does not lose it");
    owner.does(acknowledge(0, 2), []);
    owner.does(acknowledge(1, 2), [Reply(0, 2, Ok(()))]);
    owner.does(acknowledge(1, 1), [Reply(0, 1, GRANTED)]);
}

#[test]
fn a_lock_passes_a_change_that_waits_for_storage() {
    let mut owner = owner();
    owner.does(ask(0, 1, register(0xa, true)), [Persist]);
    owner.does(ask(1, 1, lock(0, 8)), [Publish(1)]);
    owner.does(Input::Persisted(true), [Publish(2)]);
    assert_eq!(held(&owner), [(1, 1)], "the change does not lose it");
    assert!(owner.state().reservations.is_registered(&host(1)));
}

#[test]
fn a_lock_that_is_not_granted_can_be_withdrawn() {
    let mut owner = owner();
    owner.does(ask(0, 1, lock(0, 8)), [Publish(1)]);
    owner.does(ask(1, 1, lock(0, 8)), []);
    let after = did(&mut owner, ask(1, 2, UnitChange::Unlock(1)));
    assert_eq!(after, [Reply(1, 1, Err(WITHDRAWN)), Reply(1, 2, Ok(()))]);
    let after = did(&mut owner, ask(0, 2, UnitChange::Unlock(1)));
    let withdrawn = Reply(0, 1, Err(WITHDRAWN));
    assert_eq!(after, [withdrawn, Publish(2), Reply(0, 2, Ok(()))]);
    owner.does(acknowledge(0, 1), []);
    assert_eq!(did(&mut owner, acknowledge(1, 1)), [], "it was answered");
}

#[test]
fn giving_back_what_is_not_locked_does_nothing() {
    let mut owner = owner();
    let after = did(&mut owner, ask(0, 2, UnitChange::Unlock(1)));
    assert_eq!(after, [Reply(0, 2, Ok(()))]);
}

#[test]
fn the_locks_of_a_core_that_ends_are_free() {
    let mut owner = owner();
    owner.does(ask(1, 1, lock(0, 8)), [Publish(1)]);
    owner.does(ask(1, 2, lock(4, 8)), []);
    owner.does(ask(0, 1, lock(0, 8)), []);
    let after = did(&mut owner, Input::Gone(CoreId(1)));
    assert_eq!(after, [Publish(2), Publish(3)]);
    assert_eq!(held(&owner), [(0, 1)]);
    owner.does(acknowledge(0, 3), [Reply(0, 1, GRANTED)]);
}

#[test]
fn locks_beyond_the_limit_are_busy() {
    let mut owner = owner();
    owner.does(ask(0, 0, lock(0, 8)), [Publish(1)]);
    for id in 1..=MAX_WAITING as u64 {
        owner.does(ask(0, id, lock(0, 8)), []);
    }
    let busy = Reply(1, 0, Err(BUSY));
    owner.does(ask(1, 0, lock(0, 8)), [busy]);
}
