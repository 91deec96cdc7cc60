use crate::commands::QueryResult;
use crate::query::test_unit::{TestQuery, data, refuses, sense, unit};
use crate::wire::lun::{Lun, WELL_KNOWN_REPORT_LUNS};

const fn report_luns(select: u8) -> [u8; 12] {
    [0xa0, 0, select, 0, 0, 0, 0, 0, 1, 0, 0, 0]
}

#[test]
fn report_luns_lists_them_all() {
    let expected = [
        [0, 0, 0, 24, 0, 0, 0, 0],
        [0x00, 0, 0, 0, 0, 0, 0, 0],
        [0x00, 1, 0, 0, 0, 0, 0, 0],
        [0x41, 0x2c, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    for select in [0x00, 0x11] {
        assert_eq!(
            data(&report_luns(select), &unit()),
            expected,
            "{select:02x}h"
        );
    }
    let mut all = [expected, WELL_KNOWN_REPORT_LUNS.0.to_vec()].concat();
    all[3] = 32;
    assert_eq!(data(&report_luns(0x02), &unit()), all);
    let well_known = [[0, 0, 0, 8, 0, 0, 0, 0], WELL_KNOWN_REPORT_LUNS.0].concat();
    assert_eq!(data(&report_luns(0x01), &unit()), well_known);
}

#[test]
fn report_luns_of_kinds_that_are_not_here() {
    assert_eq!(data(&report_luns(0x10), &unit()), [0; 8]);
}

#[test]
fn report_luns_with_an_unknown_select_code() {
    for select in [0x03, 0x12, 0xff] {
        refuses(&report_luns(select), &unit(), 2, None);
    }
}

#[test]
fn report_luns_is_answered_on_lun_0_though_no_unit_be_there() {
    let unit = unit();
    let on = |lun| {
        TestQuery {
            unit: None,
            lun,
            ..TestQuery::new(&report_luns(0), &unit)
        }
        .answer()
    };
    assert!(matches!(on(Lun::from_index(0)), QueryResult::Data(data) if data.len() == 32));
    assert_eq!(sense(on(Lun::from_index(5))).code, 0x2500);
    assert!(matches!(on(WELL_KNOWN_REPORT_LUNS), QueryResult::Data(data) if data.len() == 32));
}

#[test]
fn report_supported_task_management_functions() {
    let cdb = |repd| [0xa3, 0x0d, repd, 0, 0, 0, 0, 0, 0, 16, 0, 0];
    assert_eq!(data(&cdb(0), &unit()), [0xdc, 0x07, 0, 0]);
    let extended = [0xdc, 0x07, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(data(&cdb(0x80), &unit()), extended);
}
