use std::sync::Arc;
use std::time::Duration;

use crate::commands::QueryResult;
use crate::long_operation::{LongOperationKind, OperationState};
use crate::owner::UnitChange;
use crate::query::test_unit::{TestQuery, data, refuses, sense, unit};
use crate::unit::UnitState;
use crate::unit_settings::SettingChange::{self, Eject, Load, Prevent, Stop};
use crate::unit_settings::Timestamp;
use crate::wire::lun::Lun;
use crate::wire::sense::{SenseKey, SenseSpecific};

fn ejected() -> UnitState {
    let mut unit = unit();
    Arc::make_mut(&mut unit.settings).loaded = false;
    unit
}

fn formatting() -> UnitState {
    UnitState {
        operation: OperationState::Running {
            operation: LongOperationKind::Format,
            progress: 0x4000,
        },
        ..unit()
    }
}

fn refused(cdb: &[u8], unit: &UnitState) -> (SenseKey, u16) {
    let sense = sense(TestQuery::new(cdb, unit).answer());
    (sense.key, sense.code)
}

/// What the command changes, and whether it flushes then.
fn change(cdb: &[u8], unit: &UnitState) -> Option<(SettingChange, bool)> {
    match TestQuery::new(cdb, unit).answer() {
        QueryResult::Good => None,
        QueryResult::Change(UnitChange::Setting(setting)) => Some((setting, false)),
        QueryResult::ChangeAndFlush(UnitChange::Setting(setting)) => Some((setting, true)),
        other => panic!("{other:?}"),
    }
}

const TUR: [u8; 6] = [0; 6];

#[test]
fn test_unit_ready() {
    assert_eq!(change(&TUR, &unit()), None);
    assert_eq!(refused(&TUR, &ejected()), (SenseKey::NotReady, 0x3a00));
    assert_eq!(refused(&TUR, &formatting()), (SenseKey::NotReady, 0x0404));
}

#[test]
fn commands_that_ask_about_the_medium_need_one() {
    let read_capacity16 = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    for cdb in [
        &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &read_capacity16,
        &[0x37, 0, 0, 0, 0, 0, 0, 0, 8, 0],
        &[0xb7, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0],
    ] {
        assert_eq!(
            refused(cdb, &ejected()),
            (SenseKey::NotReady, 0x3a00),
            "{cdb:02x?}"
        );
    }
}

#[test]
fn request_sense_has_the_format_that_desc_asks_for() {
    let unit = unit();
    let fixed = data(&[0x03, 0, 0, 0, 18, 0], &unit);
    assert_eq!(
        fixed,
        [0x70, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(
        data(&[0x03, 1, 0, 0, 18, 0], &unit),
        [0x72, 0, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn request_sense_tells_a_unit_attention() {
    let unit = unit();
    let mut asked = TestQuery::new(&[0x03, 1, 0, 0, 18, 0], &unit);
    asked.local.attention = Some(0x2901);
    let told = [0x72, 0x06, 0x29, 0x01, 0, 0, 0, 0];
    assert!(matches!(asked.answer(), QueryResult::Data(data) if data == told));
}

#[test]
fn request_sense_tells_progress() {
    let fixed = data(&[0x03, 0, 0, 0, 18, 0], &formatting());
    assert_eq!((fixed[2], &fixed[12..14]), (0x02, &[0x04, 0x04][..]));
    assert_eq!(fixed[15..18], [0x80, 0x40, 0x00]);
}

#[test]
fn request_sense_on_an_absent_lun() {
    let unit = unit();
    let answer = TestQuery {
        unit: None,
        lun: Lun::from_index(9),
        ..TestQuery::new(&[0x03, 0, 0, 0, 18, 0], &unit)
    }
    .answer();
    assert!(
        matches!(answer, QueryResult::Data(data) if data[2] == 5 && data[12..14] == [0x25, 0x00])
    );
}

#[test]
fn read_capacity10() {
    let cdb = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(data(&cdb, &unit()), [0, 0, 0x07, 0xff, 0, 0, 2, 0]);
    let mut large = unit();
    large.traits.blocks = (1 << 32) + 1;
    assert_eq!(data(&cdb, &large)[..4], [0xff; 4]);
}

#[test]
fn read_capacity16() {
    let cdb = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
    let mut expected = [0; 32];
    expected[..16].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0x07, 0xff, 0, 0, 2, 0, 0, 3, 0xc0, 0]);
    assert_eq!(data(&cdb, &unit()), expected);
    let mut full = unit();
    full.traits.unmap_granularity = None;
    assert_eq!(data(&cdb, &full)[14], 0, "LBPME and LBPRZ");
}

#[test]
fn read_defect_data_has_none_in_the_format_asked_for() {
    let short = [0x37, 0, 0x1d, 0, 0, 0, 0, 0, 8, 0];
    assert_eq!(data(&short, &unit()), [0, 0x1d, 0, 0]);
    let long = [0xb7, 0x0d, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];
    assert_eq!(data(&long, &unit()), [0, 0x0d, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn start_stop_unit_flushes_when_it_stops() {
    let cdb = |flags| [0x1b, 0, 0, 0, flags, 0];
    let unit = unit();
    assert_eq!(change(&cdb(0x01), &unit), None);
    assert_eq!(change(&cdb(0x00), &unit), Some((Stop, true)));
    assert_eq!(change(&cdb(0x04), &unit), Some((Stop, false)));
    assert_eq!(change(&cdb(0x02), &unit), Some((Eject, true)));
    assert_eq!(change(&cdb(0x03), &unit), Some((Load, false)));
}

#[test]
fn start_stop_unit_with_a_power_condition_neither_ejects_nor_stops() {
    let unit = unit();
    for condition in 1..16 {
        let expected = matches!(condition, 0x3 | 0xb).then_some((Stop, true));
        let cdb = [0x1b, 1, 0, 0, condition << 4 | 0x02, 0];
        assert_eq!(change(&cdb, &unit), expected, "{condition:x}h");
    }
}

#[test]
fn start_stop_unit_ejects_no_fixed_medium() {
    let mut unit = unit();
    Arc::make_mut(&mut unit.identity).removable = false;
    for flags in [0x02, 0x03] {
        refuses(&[0x1b, 0, 0, 0, flags, 0], &unit, 4, Some(1));
    }
}

#[test]
fn start_stop_unit_waits_for_a_format() {
    let cdb = [0x1b, 0, 0, 0, 0x01, 0];
    assert_eq!(refused(&cdb, &formatting()), (SenseKey::NotReady, 0x0404));
}

#[test]
fn prevent_and_allow_medium_removal() {
    let cdb = |prevent| [0x1e, 0, 0, 0, prevent, 0];
    assert_eq!(change(&cdb(1), &unit()), Some((Prevent(true), false)));
    assert_eq!(change(&cdb(0), &unit()), Some((Prevent(false), false)));
    refuses(&cdb(2), &unit(), 4, Some(1));
}

#[test]
fn send_diagnostic_runs_the_default_self_test_only() {
    assert_eq!(change(&[0x1d, 0x04, 0, 0, 0, 0], &unit()), None);
    assert_eq!(change(&[0x1d, 0x14, 0, 0, 0, 0], &ejected()), None);
    refuses(&[0x1d, 0x20, 0, 0, 0, 0], &unit(), 1, Some(5));
    refuses(&[0x1d, 0x10, 0, 0, 4, 0], &unit(), 4, Some(2));
    let Some(SenseSpecific::Progress(progress)) =
        sense(TestQuery::new(&[0x1d, 0x04, 0, 0, 0, 0], &formatting()).answer()).specific
    else {
        panic!()
    };
    assert_eq!(progress, 0x4000);
}

const REPORT_TIMESTAMP: [u8; 12] = [0xa3, 0x0f, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0];

#[test]
fn report_timestamp_counts_from_power_on() {
    let expected = [0, 10, 0, 0, 0, 0, 0, 0, 0x13, 0x88, 0, 0];
    assert_eq!(data(&REPORT_TIMESTAMP, &unit()), expected);
}

#[test]
fn report_timestamp_goes_on_from_what_was_set() {
    let mut unit = unit();
    Arc::make_mut(&mut unit.settings).timestamp = Timestamp {
        set_ms: Some(0x0102_0304_0506),
        at: Duration::from_millis(4744),
    };
    let expected = [0, 10, 2, 0, 1, 2, 3, 4, 6, 6, 0, 0];
    assert_eq!(data(&REPORT_TIMESTAMP, &unit), expected);
}

fn set_timestamp(length: u8, list: &[u8]) -> QueryResult {
    let cdb = [0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, length, 0, 0];
    TestQuery::with(&cdb, list, &unit()).answer()
}

#[test]
fn set_timestamp_takes_48_bits_of_milliseconds() {
    let answer = set_timestamp(12, &[0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0]);
    let QueryResult::Change(UnitChange::Setting(SettingChange::Timestamp(timestamp))) = answer
    else {
        panic!("{answer:?}")
    };
    assert_eq!(timestamp.set_ms, Some(0x0102_0304_0506));
    assert_eq!(timestamp.at, Duration::from_millis(5000));
}

#[test]
fn set_timestamp_with_a_short_list() {
    assert_eq!(sense(set_timestamp(11, &[0; 11])).code, 0x1a00);
    assert!(matches!(set_timestamp(0, &[]), QueryResult::Good));
}
