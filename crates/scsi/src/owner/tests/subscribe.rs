//! Which cores are told of what.

use super::*;

const LOCK: UnitChange = UnitChange::Lock(Extent::new(0, 8));

/// A machine of many cores, of which two use the unit.
fn owner_of_many() -> UnitOwner {
    let mut owner = UnitOwner::new(unit(), 64);
    for core in [2, 9] {
        did(&mut owner, ask(core, 1, UnitChange::Subscribe));
    }
    owner
}

/// Hands something in: the cores that something is published to, and whether that is awaited.
fn told(owner: &mut UnitOwner, input: Input) -> Vec<(Vec<u16>, bool)> {
    owner.handle(input);
    let outputs = std::iter::from_fn(|| owner.poll());
    let told = outputs.filter_map(|output| match output {
        OwnerOutput::Publish { to, publication } => Some((
            to.iter().map(|core| core.0).collect(),
            publication.is_awaited,
        )),
        _ => None,
    });
    told.collect()
}

/// A lock that was granted and given back: its blocks are among those that were locked.
fn lock_once(owner: &mut UnitOwner) {
    let all: Vec<u16> = (0..64).collect();
    let first = told(owner, ask(2, 2, LOCK));
    assert_eq!(first, [(all, true)], "what they have lent must come back");
    for core in 0..64 {
        did(owner, acknowledge(core, owner.state().version));
    }
    let release = told(owner, ask(2, 3, UnitChange::Unlock(2)));
    assert_eq!(release, [(vec![2, 9], false)]);
}

#[test]
fn a_lock_goes_to_the_cores_that_use_the_unit() {
    let mut owner = owner_of_many();
    lock_once(&mut owner);
    assert_eq!(told(&mut owner, ask(2, 4, LOCK)), [(vec![2, 9], true)]);
    let version = owner.state().version;
    owner.does(acknowledge(2, version), []);
    owner.does(acknowledge(9, version), [Reply(2, 4, Ok(()))]);
}

#[test]
fn all_blocks_are_locked_on_every_core() {
    let mut owner = owner_of_many();
    let all = told(&mut owner, ask(0, 4, UnitChange::Lock(Extent::ALL)));
    assert_eq!(all, [((0..64).collect(), true)]);
}

#[test]
fn other_changes_go_to_every_core() {
    let mut owner = owner_of_many();
    let reset = told(&mut owner, ask(2, 4, UnitChange::Reset));
    assert_eq!(reset, [((0..64).collect(), true)]);
}

#[test]
fn a_core_is_told_of_the_locks_that_there_are_before_it_is_answered() {
    let mut owner = owner_of_many();
    lock_once(&mut owner);
    did(&mut owner, ask(2, 4, LOCK));
    let version = owner.state().version;
    owner.handle(ask(5, 1, UnitChange::Subscribe));
    let Some(OwnerOutput::Publish { to, publication }) = owner.poll() else {
        panic!("nothing published");
    };
    assert_eq!(to, [CoreId(5)]);
    assert_eq!(publication.state.locks.len(), 1);
    assert_eq!(owner.poll().map(brief), Some(Reply(5, 1, Ok(()))));
    // The lock does not wait for it, but the next one does.
    owner.does(acknowledge(2, version), []);
    owner.does(acknowledge(9, version), [Reply(2, 4, Ok(()))]);
    did(&mut owner, ask(2, 5, UnitChange::Unlock(4)));
    assert_eq!(told(&mut owner, ask(9, 6, LOCK)), [(vec![2, 5, 9], true)]);
}

#[test]
fn a_lock_waits_for_a_core_that_unsubscribes() {
    let mut owner = owner_of_many();
    lock_once(&mut owner);
    did(&mut owner, ask(2, 4, LOCK));
    let version = owner.state().version;
    owner.does(acknowledge(2, version), []);
    owner.does(ask(9, 5, UnitChange::Unsubscribe), [Reply(9, 5, Ok(()))]);
    owner.does(acknowledge(9, version), [Reply(2, 4, Ok(()))]);
    let release = told(&mut owner, ask(2, 5, UnitChange::Unlock(4)));
    assert_eq!(release, [(vec![2], false)]);
}

#[test]
fn nothing_is_sent_to_a_core_that_has_ended() {
    let mut owner = owner_of_many();
    lock_once(&mut owner);
    owner.does(Input::Gone(CoreId(9)), []);
    assert_eq!(told(&mut owner, ask(2, 4, LOCK)), [(vec![2], true)]);
}
