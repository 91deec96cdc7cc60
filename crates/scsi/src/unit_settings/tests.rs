use super::SettingChange::{Echo, Eject, Load, Mode, Prevent};
use super::*;
use crate::query::test_unit::{nexus, unit};

fn changed(
    state: &UnitState,
    who: &Arc<NexusIdentity>,
    setting: &SettingChange,
) -> (UnitState, Vec<Effect>) {
    let mut state = state.clone();
    let effects = apply(&mut state, who, setting).unwrap();
    (state, effects)
}

fn failure(state: &UnitState, who: &Arc<NexusIdentity>, setting: &SettingChange) -> u16 {
    match apply(&mut state.clone(), who, setting) {
        Err(CommandFailure::Check(sense)) => sense.code,
        other => panic!("{other:?}"),
    }
}

fn not_ready(state: &UnitState) -> Option<u16> {
    match state.ready() {
        Err(CommandFailure::Check(sense)) => Some(sense.code),
        _ => None,
    }
}

fn attention(who: &Arc<NexusIdentity>, code: u16) -> Vec<Effect> {
    vec![Effect::Attention(EffectScope::AllBut(who.clone()), code)]
}

#[test]
fn a_mode_parameter_changes_and_the_others_are_told() {
    let a = nexus(1).identity;
    let mut change = ModeChange::default();
    change.set(ModeParameter::Swp, true);
    let (state, effects) = changed(&unit(), &a, &Mode(change));
    assert_eq!(effects, attention(&a, 0x2a01));
    let Err(CommandFailure::Check(sense)) = state.writable() else {
        panic!()
    };
    assert_eq!((sense.key, sense.code), (SenseKey::DataProtect, 0x2702));
    let (_, again) = changed(&state, &a, &Mode(change));
    assert_eq!(again, []);
}

#[test]
fn changes_of_different_pages_do_not_undo_each_other() {
    let a = nexus(1).identity;
    let (mut control, mut caching) = (ModeChange::default(), ModeChange::default());
    control.set(ModeParameter::DSense, true);
    caching.set(ModeParameter::Wce, false);
    let (state, _) = changed(&unit(), &a, &Mode(control));
    let (state, _) = changed(&state, &a, &Mode(caching));
    assert_eq!(state.sense_format(), Format::Descriptor);
    assert!(!state.caches_writes());
}

#[test]
fn reset_brings_mode_parameters_but_wce_back_and_allows_removal() {
    let a = nexus(1).identity;
    let mut change = ModeChange::default();
    change.set(ModeParameter::DSense, true);
    change.set(ModeParameter::Wce, false);
    let (state, _) = changed(&unit(), &a, &Mode(change));
    let (state, _) = changed(&state, &a, &Prevent(true));
    let (mut state, _) = changed(&state, &a, &Echo([1, 2].into()));
    assert!(reset(&mut state), "hosts are to be told");
    assert_eq!(state.sense_format(), Format::Fixed);
    assert!(!state.caches_writes(), "who switched it off does not flush");
    assert!(!reset(&mut state), "nothing has changed");
    assert_eq!(state.settings.echo(&a), None);
    let (state, _) = changed(&state, &a, &Eject);
    assert_eq!(not_ready(&state), Some(0x3a00));
}

#[test]
fn an_ejected_medium_is_gone_until_it_is_loaded() {
    let a = nexus(1).identity;
    let (state, effects) = changed(&unit(), &a, &Eject);
    assert_eq!(not_ready(&state), Some(0x3a00));
    assert_eq!((effects, state.settings.ejects), (vec![], 1));
    let (state, _) = changed(&state, &a, &Eject);
    assert_eq!(state.settings.ejects, 1);
    let (state, effects) = changed(&state, &a, &Load);
    assert_eq!(not_ready(&state), None);
    assert_eq!(effects, attention(&a, 0x2800));
    let (_, effects) = changed(&state, &a, &Load);
    assert_eq!(effects, []);
}

#[test]
fn one_nexus_prevents_the_eject_of_another_until_it_is_lost() {
    let (a, b) = (nexus(1).identity, nexus(2).identity);
    let (state, _) = changed(&unit(), &a, &Prevent(true));
    let (mut state, _) = changed(&state, &b, &Prevent(false));
    assert_eq!(failure(&state, &b, &Eject), 0x5302);
    assert_eq!(not_ready(&state), None);
    nexus_loss(&mut state, &b);
    assert_eq!(failure(&state, &b, &Eject), 0x5302);
    nexus_loss(&mut state, &a);
    assert_eq!(changed(&state, &b, &Eject).0.settings.ejects, 1);
}

#[test]
fn a_prevented_medium_goes_neither_out_nor_in() {
    let a = nexus(1).identity;
    let (state, _) = changed(&unit(), &a, &Eject);
    let (state, _) = changed(&state, &a, &Prevent(true));
    assert_eq!(failure(&state, &a, &Load), 0x5302);
    let (state, _) = changed(&state, &a, &Prevent(false));
    assert_eq!(not_ready(&changed(&state, &a, &Load).0), None);
}

#[test]
fn each_nexus_has_its_own_echo_and_the_oldest_goes_first() {
    let mut state = unit();
    for number in 0..65 {
        let who = nexus(number).identity;
        state = changed(&state, &who, &Echo([number as u8].into())).0;
    }
    assert_eq!(state.settings.echo(&nexus(0).identity), None);
    assert_eq!(
        state.settings.echo(&nexus(1).identity).map(|e| e[0]),
        Some(1)
    );
    assert_eq!(
        state.settings.echo(&nexus(64).identity).map(|e| e[0]),
        Some(64)
    );
}

#[test]
fn a_read_only_volume_is_write_protected_whatever_swp_says() {
    let mut state = unit();
    assert_eq!(state.writable(), Ok(()));
    state.traits.read_only = true;
    let Err(CommandFailure::Check(sense)) = state.writable() else {
        panic!()
    };
    assert_eq!((sense.key, sense.code), (SenseKey::DataProtect, 0x2700));
}
