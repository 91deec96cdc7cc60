use std::sync::Arc;

use crate::query::test_unit::{TestQuery, data, is_cdb_field, sense, unit};
use crate::unit::UnitState;
use crate::unit_settings::{ModeChange, ModeParameter};

const CURRENT: u8 = 0x00;
const CHANGEABLE: u8 = 0x40;
const DEFAULT: u8 = 0x80;
const SAVED: u8 = 0xc0;

/// MODE SENSE(6) without block descriptors, without the header.
fn pages(page: u8, subpage: u8, unit: &UnitState) -> Vec<u8> {
    let mut data = data(&[0x1a, 0x08, page, subpage, 0xff, 0], unit);
    assert_eq!(usize::from(data[0]), data.len() - 1);
    assert_eq!(data[3], 0);
    data.split_off(4)
}

fn with(parameter: ModeParameter, value: bool) -> UnitState {
    let mut unit = unit();
    let mut change = ModeChange::default();
    change.set(parameter, value);
    let settings = Arc::make_mut(&mut unit.settings);
    settings.mode = settings.mode.with(change);
    unit
}

#[test]
fn header_and_block_descriptor_of_6() {
    let data = data(&[0x1a, 0, 0x0a, 0, 0xff, 0], &unit());
    assert_eq!(data[..12], [23, 0, 0x10, 8, 0, 0, 0x08, 0x00, 0, 0, 2, 0]);
    assert_eq!(data.len(), 24);
}

#[test]
fn header_and_block_descriptor_of_10() {
    let short = data(&[0x5a, 0, 0x0a, 0, 0, 0, 0, 0, 0xff, 0], &unit());
    assert_eq!(short[..8], [0, 26, 0, 0x10, 0, 0, 0, 8]);
    assert_eq!(short[8..16], [0, 0, 0x08, 0x00, 0, 0, 2, 0]);
    let long = data(&[0x5a, 0x10, 0x0a, 0, 0, 0, 0, 0, 0xff, 0], &unit());
    assert_eq!(long[..8], [0, 34, 0, 0x10, 1, 0, 0, 16]);
    assert_eq!(
        long[8..24],
        [0, 0, 0, 0, 0, 0, 0x08, 0x00, 0, 0, 0, 0, 0, 0, 2, 0]
    );
}

#[test]
fn a_short_block_descriptor_of_a_large_unit() {
    let mut unit = unit();
    unit.traits.blocks = 1 << 33;
    let data = data(&[0x1a, 0, 0x0a, 0, 0xff, 0], &unit);
    assert_eq!(data[4..12], [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
}

#[test]
fn write_protection_shows_in_the_header() {
    let mut read_only = unit();
    read_only.traits.read_only = true;
    for unit in [read_only, with(ModeParameter::Swp, true)] {
        assert_eq!(data(&[0x1a, 0, 0x0a, 0, 0xff, 0], &unit)[2], 0x90);
    }
}

#[test]
fn each_page() {
    let unit = unit();
    let mut extension = [0; 32];
    extension[..5].copy_from_slice(&[0x4a, 0x01, 0, 0x1c, 0x02]);
    let mut caching = [0; 20];
    caching[..3].copy_from_slice(&[0x08, 0x12, 0x04]);
    let mut disconnect = [0; 16];
    disconnect[..2].copy_from_slice(&[0x02, 0x0e]);
    let recovery = [0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let control = [0x0a, 0x0a, 0x22, 0x10, 0, 0x40, 0, 0, 0, 0, 0, 0];
    let exceptions = [0x1c, 0x0a, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let expected = [
        (0x01, 0, &recovery[..]),
        (0x02, 0, &disconnect),
        (0x08, 0, &caching),
        (0x0a, 0, &control),
        (0x0a, 1, &extension),
        (0x1c, 0, &exceptions),
    ];
    for (page, subpage, bytes) in expected {
        assert_eq!(
            pages(page, subpage, &unit),
            bytes,
            "{page:02x}h/{subpage:02x}h"
        );
    }
    let all = expected.map(|(_, _, bytes)| bytes).concat();
    assert_eq!(pages(0x3f, 0xff, &unit), all);
    let without_subpages = [0, 1, 2, 3, 5].map(|at| expected[at].2).concat();
    assert_eq!(pages(0x3f, 0x00, &unit), without_subpages);
    assert_eq!(
        pages(0x0a, 0xff, &unit),
        [&control[..], &extension].concat()
    );
}

#[test]
fn current_values_follow_what_was_set() {
    let byte = |parameter, value, page, at| pages(page, 0, &with(parameter, value))[at];
    assert_eq!(byte(ModeParameter::DSense, true, 0x0a, 2), 0x26);
    assert_eq!(byte(ModeParameter::Swp, true, 0x0a, 4), 0x08);
    assert_eq!(byte(ModeParameter::Tas, false, 0x0a, 5), 0x00);
    assert_eq!(byte(ModeParameter::Wce, false, 0x08, 2), 0x00);
}

#[test]
fn default_values_do_not() {
    let unit = with(ModeParameter::DSense, true);
    assert_eq!(pages(CURRENT | 0x0a, 0, &unit)[2], 0x26);
    assert_eq!(pages(DEFAULT | 0x0a, 0, &unit)[2], 0x22);
}

#[test]
fn changeable_values_are_a_mask() {
    let control = pages(CHANGEABLE | 0x0a, 0, &unit());
    assert_eq!(control, [0x0a, 0x0a, 0x04, 0, 0x08, 0x40, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        pages(CHANGEABLE | 0x08, 0, &unit())[..4],
        [0x08, 0x12, 0x04, 0]
    );
    assert_eq!(
        pages(CHANGEABLE | 0x0a, 1, &unit())[..6],
        [0x4a, 1, 0, 0x1c, 0, 0]
    );
}

#[test]
fn without_a_cache_wce_is_zero_and_stays_so() {
    let mut unit = unit();
    unit.traits.write_cache = false;
    let unit = UnitState::new((*unit.identity).clone(), unit.traits);
    assert_eq!(pages(CURRENT | 0x08, 0, &unit)[2], 0);
    assert_eq!(pages(CHANGEABLE | 0x08, 0, &unit)[2], 0);
}

#[test]
fn saved_values_are_not_supported() {
    let unit = unit();
    let sense = sense(TestQuery::new(&[0x1a, 0, SAVED | 0x0a, 0, 0xff, 0], &unit).answer());
    assert_eq!(sense.code, 0x3900);
}

#[test]
fn unknown_pages_are_pointed_at() {
    let unit = unit();
    let answer = |page, subpage| TestQuery::new(&[0x1a, 0, page, subpage, 0xff, 0], &unit).answer();
    is_cdb_field(answer(0x1d, 0), 2, Some(5));
    is_cdb_field(answer(0x0a, 2), 3, None);
    is_cdb_field(answer(0x3f, 7), 3, None);
}
