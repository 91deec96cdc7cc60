//! A core that is not told of locks goes to no medium, and asks for them.

use std::sync::Arc;

use super::rig::{BLOCK, Rig, cdb10, swap_cdb};
use crate::device::subscribe::LockSubscription;
use crate::medium::Extent;
use crate::nexus::NexusId;
use crate::owner::{Input, Publication, UnitChange};
use crate::task::Tag;
use crate::unit::UnitId;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);
const UNIT: UnitId = UnitId::first(0);
/// A request of core 0 itself, by which another core stands here.
const OTHERS: u64 = u64::MAX;
const LOCK: UnitChange = UnitChange::Lock(Extent::new(0, 1));

/// What is on its way to the owner.
fn mail(rig: &Rig) -> Vec<&'static str> {
    let brief = |(_, input): &(UnitId, Input)| match input {
        Input::Request(request) => match request.change {
            UnitChange::Subscribe => "subscribe",
            UnitChange::Unsubscribe => "unsubscribe",
            _ => "other",
        },
        Input::Acknowledged { .. } => "acknowledge",
        _ => "other",
    };
    rig.mail.iter().map(brief).collect()
}

fn read(rig: &mut Rig) -> Tag {
    rig.send(&cdb10(0x28, 0, 0, 1), BLOCK)
}

fn is_open(rig: &Rig, tag: Tag) -> bool {
    !rig.ended.contains_key(&(NEXUS, tag))
}

fn has_subscribed(rig: &Rig) -> bool {
    let unit = rig.server.unit(UNIT).expect("a unit");
    unit.subscription.is_active()
}

#[test]
fn the_first_command_waits_until_the_locks_are_known() {
    let mut rig = Rig::new();
    rig.hold_owner = true;
    let (first, second) = (read(&mut rig), read(&mut rig));
    rig.good(&[0x12, 0, 0, 0, 96, 0], 96);
    assert!(is_open(&rig, first) && is_open(&rig, second));
    assert_eq!(mail(&rig), ["subscribe"], "once for all");
    rig.let_owner_go();
    assert_eq!(rig.status(first), Status::Good);
    assert_eq!(rig.status(second), Status::Good);
    rig.hold_owner = true;
    let third = read(&mut rig);
    assert_eq!(rig.status(third), Status::Good, "from now on it knows");
    assert_eq!(mail(&rig), [""; 0]);
}

#[test]
fn what_is_published_before_the_answer_lets_nothing_go_on() {
    let mut rig = Rig::new();
    rig.hold_owner = true;
    let tag = read(&mut rig);
    let publication = Publication {
        state: rig.owners[0].state().clone(),
        effects: [].into(),
        cause: None,
        is_awaited: true,
    };
    rig.server.publish(UNIT, publication);
    rig.run();
    assert!(is_open(&rig, tag));
    assert_eq!(mail(&rig), ["subscribe", "acknowledge"]);
    rig.let_owner_go();
    assert_eq!(rig.status(tag), Status::Good);
}

/// A state may have thousands of registrations, and is published to every core.
#[test]
fn no_core_copies_the_state() {
    let mut rig = Rig::new();
    let is_shared = |rig: &Rig| {
        let unit = rig.server.unit(UNIT).expect("a unit");
        Arc::ptr_eq(&unit.state, rig.owners[0].state())
    };
    rig.change(UNIT, OTHERS, UnitChange::Reset);
    assert!(!has_subscribed(&rig) && is_shared(&rig));
    let attention = read(&mut rig);
    assert_eq!(rig.status(attention), Status::CheckCondition);
    let tag = read(&mut rig);
    assert_eq!(rig.status(tag), Status::Good);
    assert!(has_subscribed(&rig) && is_shared(&rig));
    rig.change(UNIT, OTHERS, LOCK);
    assert!(is_shared(&rig));
}

#[test]
fn a_command_that_comes_while_others_hold_a_lock_waits_for_that() {
    let mut rig = Rig::new();
    rig.change(UNIT, OTHERS, LOCK);
    let locked = read(&mut rig);
    let beside = rig.send(&cdb10(0x28, 0, 1, 1), BLOCK);
    assert_eq!(rig.status(beside), Status::Good);
    assert!(is_open(&rig, locked));
    rig.change(UNIT, OTHERS - 1, UnitChange::Unlock(OTHERS));
    assert_eq!(rig.status(locked), Status::Good);
}

#[test]
fn a_core_without_a_nexus_is_told_of_one_more_lock() {
    let mut rig = Rig::new();
    let tag = read(&mut rig);
    assert_eq!(rig.status(tag), Status::Good);
    rig.lose(NEXUS);
    assert!(has_subscribed(&rig), "a unit without locks costs nothing");
    rig.hold_owner = true;
    rig.mail.clear();
    let mut publication = Publication {
        state: rig.owners[0].state().clone(),
        effects: [].into(),
        cause: None,
        is_awaited: true,
    };
    rig.server.publish(UNIT, publication.clone());
    rig.run();
    assert_eq!(mail(&rig), ["unsubscribe", "acknowledge"]);
    // What is on its way yet is acknowledged, and that is all.
    rig.mail.clear();
    Arc::make_mut(&mut publication.state).version += 1;
    rig.server.publish(UNIT, publication);
    rig.run();
    assert_eq!(mail(&rig), ["acknowledge"]);
}

#[test]
fn a_nexus_that_comes_back_subscribes_again() {
    let mut rig = Rig::new();
    rig.good(&swap_cdb(0, 1), vec![0; 2 * BLOCK]);
    rig.lose(NEXUS);
    rig.change(UNIT, OTHERS, LOCK);
    rig.change(UNIT, OTHERS - 1, UnitChange::Unlock(OTHERS));
    assert!(!has_subscribed(&rig));
    // It is not told of this one.
    rig.change(UNIT, OTHERS - 2, LOCK);
    rig.log_in(NEXUS, 1);
    let tag = read(&mut rig);
    assert!(is_open(&rig, tag), "the lock is held");
    rig.change(UNIT, OTHERS - 3, UnitChange::Unlock(OTHERS - 2));
    assert_eq!(rig.status(tag), Status::Good);
}

#[test]
fn a_task_that_outlives_its_nexus_keeps_the_core_subscribed() {
    let mut rig = Rig::new();
    rig.good(&swap_cdb(0, 1), vec![0; 2 * BLOCK]);
    rig.hold = true;
    // SYNCHRONIZE CACHE that is answered before it has ended.
    rig.good(&cdb10(0x35, 0x02, 0, 0), ());
    rig.lose(NEXUS);
    rig.change(UNIT, OTHERS, LOCK);
    assert!(has_subscribed(&rig));
    rig.answer_all();
    rig.change(UNIT, OTHERS - 1, UnitChange::Unlock(OTHERS));
    assert!(!has_subscribed(&rig));
}

#[test]
fn one_nexus_of_two_is_enough() {
    let mut rig = Rig::hosts(2);
    read(&mut rig);
    rig.lose(NEXUS);
    for id in 0..3 {
        rig.change(UNIT, OTHERS - 2 * id, LOCK);
        rig.change(
            UNIT,
            OTHERS - 2 * id - 1,
            UnitChange::Unlock(OTHERS - 2 * id),
        );
        let unit = rig.server.unit(UNIT).expect("a unit");
        let seen = LockSubscription::Active(NexusId(1), 0);
        assert_eq!(unit.subscription, seen);
    }
}
