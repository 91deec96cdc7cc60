//! What is wanted of a unit on every nexus: a registration, and its cache on or off.

use super::super::UnitWishes;
use super::unit::{Rig, Unit, write};
use crate::medium::MediumError;
use crate::wire::sense::SenseKey;

const KEY: u64 = 0x1f00d;
const BY_KEY: UnitWishes = UnitWishes {
    key: Some(KEY),
    write_cache: None,
};

/// A rig that has begun.
fn rig(unit: Unit, wishes: UnitWishes) -> Rig {
    let mut rig = Rig::new(unit);
    rig.client = rig.client.wishing(wishes);
    rig.begin();
    rig
}

fn ready(unit: Unit, wishes: UnitWishes) -> Rig {
    let mut rig = rig(unit, wishes);
    rig.tells(["ready"]);
    rig
}

fn caching(on: bool) -> UnitWishes {
    UnitWishes {
        key: None,
        write_cache: Some(on),
    }
}

fn reserved() -> Unit {
    Unit::with(|unit| unit.reserved = true)
}

fn asked_again(rig: &mut Rig) {
    rig.client.lost();
    rig.take_asked();
    rig.begin();
}

fn is_asked(rig: &mut Rig, opcode: &str) -> bool {
    rig.take_asked().iter().any(|cdb| cdb.starts_with(opcode))
}

#[test]
fn a_registered_nexus_is_let_in() {
    let mut rig = ready(reserved(), BY_KEY);
    assert_eq!(rig.unit.key, KEY);
    rig.go(write()).unwrap();
    let refused = self::rig(reserved(), UnitWishes::default()).take_told();
    assert!(refused[0].starts_with("refused: it is reserved by another initiator: register with"));
}

#[test]
fn each_nexus_is_registered_and_after_each_reset_again() {
    let mut rig = ready(reserved(), BY_KEY);
    for code in [0x2900, 0x2901, 0x2902, 0x2903, 0x2904] {
        rig.unit.key = 0;
        rig.ends(SenseKey::UnitAttention, code);
        rig.go(write()).unwrap();
        assert_eq!(rig.unit.key, KEY, "{code:#06x}");
    }
    rig.unit.key = 0;
    rig.ends(SenseKey::UnitAttention, 0x2900);
    asked_again(&mut rig);
    rig.go(write()).unwrap();
}

#[test]
fn a_registration_keeps_what_others_want_over_power_loss() {
    for persists in [false, true] {
        let unit = Unit::with(|unit| unit.persists = persists);
        assert_eq!(ready(unit, BY_KEY).unit.persists, persists);
    }
}

#[test]
fn what_others_change_is_left_as_it_is() {
    let wishes = UnitWishes {
        write_cache: Some(true),
        ..BY_KEY
    };
    let mut rig = ready(Unit::default(), wishes);
    rig.take_asked();
    rig.unit.write_cache = false;
    rig.ends(SenseKey::UnitAttention, 0x2a01);
    rig.go(write()).unwrap();
    assert!(!rig.unit.write_cache);
    assert!(!is_asked(&mut rig, "5f"));
    // The nexus is registered all the same.
    assert!(rig.client.depart());
}

#[test]
fn who_was_fenced_off_stays_outside() {
    let mut rig = ready(Unit::default(), BY_KEY);
    (rig.unit.reserved, rig.unit.key) = (true, 0);
    rig.ends(SenseKey::UnitAttention, 0x2a05);
    assert_eq!(rig.go(write()).unwrap_err(), MediumError::ReadOnly);
    assert_eq!(rig.go(write()).unwrap_err(), MediumError::ReadOnly);
    rig.tells(["fenced", "conflict"]);
    assert!(!rig.client.depart());
    asked_again(&mut rig);
    assert!(!is_asked(&mut rig, "5f"));
    assert_eq!(rig.unit.key, 0);
    let told = rig.take_told();
    assert!(told[0].starts_with("not now: it is reserved"), "{told:?}");
}

#[test]
fn a_reservation_that_comes_is_told_once() {
    let mut rig = ready(Unit::default(), UnitWishes::default());
    rig.unit.reserved = true;
    for _ in 0..3 {
        assert_eq!(rig.go(write()).unwrap_err(), MediumError::ReadOnly);
    }
    rig.tells(["conflict"]);
}

#[test]
fn a_registration_is_taken_back_at_the_end() {
    let mut rig = ready(Unit::default(), BY_KEY);
    rig.ends(SenseKey::UnitAttention, 0x2a04);
    assert!(rig.client.depart());
    rig.run();
    assert_eq!(
        (rig.unit.key, rig.take_told()),
        (0, vec!["departed".to_owned()])
    );
    assert!(!rig.client.depart());
    assert!(
        !ready(Unit::default(), UnitWishes::default())
            .client
            .depart()
    );
}

#[test]
fn a_unit_without_registrations_is_refused() {
    let unit = Unit::with(|unit| unit.unknown = vec![0x5e, 0x5f]);
    let told = rig(unit, BY_KEY).take_told();
    assert!(told[0].starts_with("refused: it refuses to register a key"));
}

#[test]
fn a_cache_is_switched_and_saved_where_it_can_be() {
    for (saves, wanted, select) in [(true, false, "1511"), (false, false, "1510")] {
        let unit = Unit::with(|unit| unit.saves = saves);
        let mut rig = ready(unit, caching(wanted));
        assert_eq!(rig.client.facts().unwrap().traits.write_cache, wanted);
        assert_eq!(rig.unit.write_cache, wanted);
        assert!(is_asked(&mut rig, select));
        // As it should be.
        asked_again(&mut rig);
        assert!(!is_asked(&mut rig, "15"));
        // As it was before, after a reset.
        rig.unit.write_cache = true;
        rig.ends(SenseKey::UnitAttention, 0x2903);
        rig.go(write()).unwrap();
        assert_eq!(rig.unit.write_cache, wanted);
    }
}

#[test]
fn a_cache_that_cannot_be_switched_is_told() {
    let refusing = Unit::with(|unit| unit.unknown = vec![0x15]);
    let deaf = Unit::with(|unit| unit.silent_cache = true);
    let without_page = Unit::with(|unit| unit.unknown = vec![0x1a]);
    for unit in [refusing, deaf, without_page] {
        let told = rig(unit, caching(false)).take_told();
        let expected = "refused: the target refuses to switch its write cache off: omit";
        assert!(told[0].starts_with(expected), "{told:?}");
    }
}
