use std::sync::Arc;

use crate::commands::QueryResult;
use crate::query::test_unit::{FixedUsage, TestQuery, data, is_cdb_field, refuses, unit};
use crate::statistics::{CommandTime, OperationClass, SpaceUsage};
use crate::unit::CoreId;

const fn log_sense(page: u8, subpage: u8, pointer: u8) -> [u8; 10] {
    [0x4d, 0, 0x40 | page, subpage, 0, 0, pointer, 1, 0, 0]
}

#[test]
fn supported_pages() {
    let list = data(&log_sense(0x00, 0, 0), &unit());
    assert_eq!(list, [0x80, 0, 0, 4, 0x00, 0x0d, 0x0e, 0x19]);
    let with_subpages = data(&log_sense(0x00, 0xff, 0), &unit());
    assert_eq!(with_subpages[..4], [0xc0, 0xff, 0, 10]);
    assert_eq!(
        with_subpages[4..],
        [0, 0, 0, 0xff, 0x0d, 0, 0x0e, 0, 0x19, 0]
    );
}

#[test]
fn each_page_that_is_listed_is_there_with_its_true_length() {
    let unit = unit();
    for &page in &data(&log_sense(0x00, 0, 0), &unit)[4..] {
        let data = data(&log_sense(page, 0, 0), &unit);
        assert_eq!(data[..2], [0x80 | page, 0]);
        assert_eq!(
            usize::from(u16::from_be_bytes([data[2], data[3]])),
            data.len() - 4
        );
    }
}

#[test]
fn temperature_is_not_known() {
    let data = data(&log_sense(0x0d, 0, 0), &unit());
    assert_eq!(data[4..], [0, 0, 3, 2, 0, 0xff, 0, 1, 3, 2, 0, 0xff]);
}

#[test]
fn start_stop_cycles() {
    let mut unit = unit();
    let settings = Arc::make_mut(&mut unit.settings);
    (settings.stops, settings.ejects) = (0x102, 3);
    let data = data(&log_sense(0x0e, 0, 0), &unit);
    assert_eq!(data[4..], [0, 4, 3, 4, 0, 0, 1, 2, 0, 6, 3, 4, 0, 0, 0, 3]);
}

#[test]
fn parameters_from_the_pointer_on() {
    let unit = unit();
    let from = |pointer| TestQuery::new(&log_sense(0x0e, 0, pointer), &unit).answer();
    assert!(matches!(from(5), QueryResult::Data(data) if data[4..6] == [0, 6] && data.len() == 12));
    is_cdb_field(from(7), 5, None);
}

#[test]
fn general_statistics() {
    let unit = unit();
    unit.statistics
        .count(CoreId(0), OperationClass::Read, 8, CommandTime::default());
    unit.statistics
        .count(CoreId(1), OperationClass::Read, 8, CommandTime::default());
    unit.statistics.count(
        CoreId(1),
        OperationClass::Write,
        0x100,
        CommandTime::default(),
    );
    let data = data(&log_sense(0x19, 0, 0), &unit);
    assert_eq!(data[..8], [0x99, 0, 0, 92, 0, 1, 3, 64]);
    assert_eq!(data[72..84], [0, 2, 3, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(data[84..], [0, 3, 3, 8, 0, 0, 0, 3, 0, 0, 0, 1]);
    let numbers: Vec<_> = data[8..72]
        .chunks(8)
        .map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
        .collect();
    assert_eq!(numbers, [2, 1, 0x100, 16, 0, 0, 0, 0]);
}

#[test]
fn provisioning_is_told_where_the_volume_counts_it() {
    let unit = unit();
    refuses(&log_sense(0x0c, 0, 0), &unit, 2, Some(5));
    unit.statistics.set_gauge(FixedUsage(SpaceUsage {
        used: 2048 * 3,
        available: 2048 * 0x1234,
    }));
    let expected = [
        [0, 1, 3, 8, 0, 0, 0x12, 0x34, 1, 0, 0, 0],
        [0, 2, 3, 8, 0, 0, 0, 3, 1, 0, 0, 0],
    ];
    assert_eq!(data(&log_sense(0x0c, 0, 0), &unit)[4..], expected.concat());
    assert_eq!(data(&log_sense(0x00, 0, 0), &unit)[5], 0x0c);
}

#[test]
fn unknown_pages_and_controls_are_pointed_at() {
    let unit = unit();
    refuses(&log_sense(0x2f, 0, 0), &unit, 2, Some(5));
    refuses(&log_sense(0x0d, 1, 0), &unit, 3, None);
    let defaults = [0x4d, 0, 0xcd, 0, 0, 0, 0, 1, 0, 0];
    refuses(&defaults, &unit, 2, Some(7));
    let save = [0x4d, 1, 0x4d, 0, 0, 0, 0, 1, 0, 0];
    refuses(&save, &unit, 1, Some(0));
}
