use super::*;
use crate::alua::AccessState;
use crate::testing::{host, resized, unit};
use crate::unit::CoreId;
use crate::unit_settings::{ModeChange, ModeParameter, SettingChange};

fn apply(state: &mut UnitState, change: UnitChange) -> Result<Vec<Effect>, CommandFailure> {
    state.apply(&OwnerRequest {
        core: CoreId(0),
        id: 1,
        nexus: Some(host(1)),
        change,
    })
}

#[test]
fn a_change_of_capacity_is_told_to_everybody_once() {
    let mut state = unit();
    let told = vec![Effect::Attention(EffectScope::All, 0x2a09)];
    assert_eq!(apply(&mut state, resized(4096)), Ok(told));
    assert_eq!(state.traits.blocks, 4096);
    assert_eq!(apply(&mut state, resized(4096)), Ok(vec![]));
}

#[test]
fn a_cache_and_protection_that_come_and_go_are_told_as_mode_parameters() {
    let mut state = unit();
    let with = |write_cache, read_only| {
        let mut traits = unit().traits;
        (traits.write_cache, traits.read_only) = (write_cache, read_only);
        UnitChange::Medium(traits)
    };
    let told = vec![Effect::Attention(EffectScope::All, 0x2a01)];
    for (write_cache, read_only) in [(false, false), (true, false), (true, true), (false, false)] {
        let change = || with(write_cache, read_only);
        assert_eq!(apply(&mut state, change()), Ok(told.clone()));
        assert_eq!(apply(&mut state, change()), Ok(vec![]));
        assert_eq!(state.caches_writes(), write_cache);
        assert_eq!(state.writable().is_err(), read_only);
    }
}

#[test]
fn a_reset_aborts_for_everybody_before_it_resets_and_tells() {
    let mut state = unit();
    apply(&mut state, UnitChange::Reserve).unwrap();
    let expected = vec![
        Effect::Abort(EffectScope::All),
        Effect::Reset,
        Effect::Attention(EffectScope::All, 0x2903),
    ];
    assert_eq!(apply(&mut state, UnitChange::Reset), Ok(expected.clone()));
    assert_eq!(state.reservations, unit().reservations);
    let mut change = ModeChange::default();
    change.set(ModeParameter::DSense, true);
    apply(&mut state, UnitChange::Setting(SettingChange::Mode(change))).unwrap();
    let modes = Effect::Attention(EffectScope::All, 0x2a01);
    let expected = [expected, vec![modes]].concat();
    assert_eq!(apply(&mut state, UnitChange::Reset), Ok(expected));
}

#[test]
fn a_new_access_state_is_told_to_the_others() {
    let mut state = unit();
    let change = || UnitChange::AccessState(AccessState::NonOptimized);
    let told = vec![Effect::Attention(EffectScope::AllBut(host(1)), 0x2a06)];
    assert_eq!(apply(&mut state, change()), Ok(told));
    assert_eq!(apply(&mut state, change()), Ok(vec![]));
}

#[test]
fn the_loss_of_a_nexus_ends_what_it_had_reserved() {
    let mut state = unit();
    apply(&mut state, UnitChange::Reserve).unwrap();
    assert_ne!(state.reservations, unit().reservations);
    assert_eq!(apply(&mut state, UnitChange::NexusLoss), Ok(vec![]));
    assert_eq!(state.reservations, unit().reservations);
}

#[test]
fn a_reservation_for_nobody_is_an_error_of_the_target() {
    let found = unit().apply(&OwnerRequest {
        core: CoreId(0),
        id: 1,
        nexus: None,
        change: UnitChange::Reserve,
    });
    let failure = Sense::new(SenseKey::HardwareError, 0x4400);
    assert_eq!(found, Err(CommandFailure::Check(failure)));
}
