use std::sync::Arc;

use crate::commands::QueryResult;
use crate::owner::UnitChange;
use crate::query::test_unit::{TestQuery, data, is_cdb_field, sense, unit};
use crate::unit::UnitState;
use crate::unit_settings::{ModeChange, ModeParameter, SettingChange, apply};
use crate::wire::sense::Sense;

const CONTROL: [u8; 12] = [0x0a, 0x0a, 0x22, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];

fn select6(list: &[u8], unit: &UnitState) -> QueryResult {
    let cdb = [0x15, 0x10, 0, 0, list.len() as u8, 0];
    TestQuery::with(&cdb, list, unit).answer()
}

fn select10(list: &[u8], unit: &UnitState) -> QueryResult {
    let cdb = [0x55, 0x10, 0, 0, 0, 0, 0, 0, list.len() as u8, 0];
    TestQuery::with(&cdb, list, unit).answer()
}

/// A list of a header without block descriptors, and the pages.
fn list6(pages: &[&[u8]]) -> Vec<u8> {
    [&[0; 4], &pages.concat()[..]].concat()
}

fn control(byte: usize, bits: u8) -> [u8; 12] {
    let mut page = CONTROL;
    page[byte] ^= bits;
    page
}

fn change(answer: QueryResult) -> (ModeChange, bool) {
    match answer {
        QueryResult::Change(UnitChange::Setting(SettingChange::Mode(change))) => (change, false),
        QueryResult::ChangeAndFlush(UnitChange::Setting(SettingChange::Mode(change))) => {
            (change, true)
        }
        other => panic!("{other:?}"),
    }
}

fn is_parameter_field(answer: QueryResult, byte: u16, bit: Option<u8>) {
    assert_eq!(sense(answer), Sense::parameter_field(byte, bit));
}

#[test]
fn swp_by_6() {
    let (change, _) = change(select6(&list6(&[&control(4, 0x08)]), &unit()));
    assert_eq!(change.value(ModeParameter::Swp), Some(true));
    assert_eq!(change.value(ModeParameter::DSense), Some(false));
    assert_eq!(change.value(ModeParameter::Wce), None);
}

#[test]
fn d_sense_and_tas_by_10_with_a_long_block_descriptor() {
    let mut list = vec![0, 0, 0, 0, 0x01, 0, 0, 16];
    list.extend([0, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    list.extend(control(2, 0x04));
    list[8 + 16 + 5] |= 0x40;
    let (change, flush) = change(select10(&list, &unit()));
    assert_eq!(change.value(ModeParameter::DSense), Some(true));
    assert_eq!(change.value(ModeParameter::Tas), Some(true));
    assert!(!flush);
}

#[test]
fn what_mode_sense_told_can_be_sent_back() {
    let mut unit = unit();
    let nexus = crate::query::test_unit::nexus(1).identity;
    let sensed = data(&[0x1a, 0, 0x3f, 0xff, 0xff, 0], &unit);
    let (change, _) = change(select6(&sensed, &unit));
    assert_eq!(
        apply(&mut unit, &nexus, &SettingChange::Mode(change)),
        Ok(vec![])
    );
}

#[test]
fn switching_the_cache_off_flushes_it() {
    let mut caching = [0; 20];
    caching[..2].copy_from_slice(&[0x08, 0x12]);
    let (off, flush) = change(select6(&list6(&[&caching]), &unit()));
    assert_eq!((off.value(ModeParameter::Wce), flush), (Some(false), true));
    caching[2] = 0x04;
    let (on, flush) = change(select6(&list6(&[&caching]), &unit()));
    assert_eq!((on.value(ModeParameter::Wce), flush), (Some(true), false));
}

#[test]
fn switching_on_a_cache_that_is_not_there() {
    let mut traits = unit().traits;
    traits.write_cache = false;
    let unit = UnitState::new((*unit().identity).clone(), traits);
    let mut caching = [0; 20];
    caching[..3].copy_from_slice(&[0x08, 0x12, 0x04]);
    is_parameter_field(select6(&list6(&[&caching]), &unit), 6, Some(2));
}

#[test]
fn a_bit_that_cannot_be_changed_is_pointed_at() {
    let queue_error = list6(&[&control(3, 0x06)]);
    is_parameter_field(select6(&queue_error, &unit()), 7, Some(2));
    let second = list6(&[&CONTROL, &[0x1c, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]);
    is_parameter_field(select6(&second, &unit()), 18, Some(3));
}

#[test]
fn the_subpage_is_told_by_spf() {
    let mut extension = [0; 32];
    extension[..5].copy_from_slice(&[0x4a, 0x01, 0, 0x1c, 0x02]);
    change(select6(&list6(&[&extension]), &unit()));
    extension[6] = 0x40;
    is_parameter_field(select6(&list6(&[&extension]), &unit()), 10, Some(6));
    let without_code = [0x4a, 0x00, 0, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
    is_parameter_field(select6(&list6(&[&without_code]), &unit()), 4, Some(5));
}

#[test]
fn unknown_page() {
    is_parameter_field(
        select6(&list6(&[&CONTROL, &[0x3e, 0]]), &unit()),
        16,
        Some(5),
    );
}

#[test]
fn wrong_page_length() {
    let mut page = CONTROL;
    page[1] = 0x06;
    is_parameter_field(select6(&list6(&[&page]), &unit()), 5, None);
}

#[test]
fn wrong_block_descriptors() {
    let list = |descriptor: [u8; 8]| [&[0, 0, 0, 8][..], &descriptor, &CONTROL].concat();
    change(select6(&list([0, 0, 0x08, 0x00, 0, 0, 2, 0]), &unit()));
    change(select6(&list([0, 0, 0, 0, 0, 0, 2, 0]), &unit()));
    let fewer = list([0, 0, 0x07, 0x00, 0, 0, 2, 0]);
    is_parameter_field(select6(&fewer, &unit()), 4, None);
    let larger = list([0, 0, 0x08, 0x00, 0, 0, 16, 0]);
    is_parameter_field(select6(&larger, &unit()), 10, None);
    let length = [&[0, 0, 0, 4, 0, 0, 0, 0][..], &CONTROL].concat();
    is_parameter_field(select6(&length, &unit()), 3, None);
}

#[test]
fn medium_type_must_be_zero() {
    let list = [&[0, 7, 0, 0][..], &CONTROL].concat();
    is_parameter_field(select6(&list, &unit()), 1, None);
}

#[test]
fn lists_cut_off_anywhere_are_a_length_error_and_never_worse() {
    let whole = [&[0, 0, 0, 8][..], &[0, 0, 8, 0, 0, 0, 2, 0], &CONTROL].concat();
    for length in 1..whole.len() {
        match (length, select6(&whole[..length], &unit())) {
            (12, answer) => assert_eq!(change(answer).0, ModeChange::default()),
            (13, answer) => assert_eq!(sense(answer).code, 0x1a00),
            (_, answer) => assert_eq!(sense(answer).code, 0x1a00, "{length}"),
        }
    }
}

#[test]
fn fewer_bytes_came_than_the_cdb_says() {
    let unit = unit();
    let answer = TestQuery::with(&[0x15, 0x10, 0, 0, 16, 0], &[0; 4], &unit).answer();
    assert_eq!(sense(answer).code, 0x1a00);
}

#[test]
fn an_empty_list_changes_nothing() {
    let answer = TestQuery::new(&[0x15, 0x10, 0, 0, 0, 0], &unit()).answer();
    assert!(matches!(answer, QueryResult::Good));
}

#[test]
fn saving_and_vendor_specific_formats_are_refused() {
    let unit = unit();
    let cdb = |flags| [0x15, flags, 0, 0, 16, 0];
    let list = list6(&[&CONTROL]);
    let answer = |cdb: &[u8]| TestQuery::with(cdb, &list, &unit).answer();
    is_cdb_field(answer(&cdb(0x11)), 1, Some(0));
    is_cdb_field(answer(&cdb(0x00)), 1, Some(4));
}

#[test]
fn a_change_of_mode_reaches_the_state() {
    let mut state = unit();
    let nexus = crate::query::test_unit::nexus(1).identity;
    let (change, _) = change(select6(&list6(&[&CONTROL]), &state));
    apply(&mut state, &nexus, &SettingChange::Mode(change)).unwrap();
    assert!(!state.tells_aborted());
    assert!(!Arc::ptr_eq(&state.settings, &unit().settings));
}
