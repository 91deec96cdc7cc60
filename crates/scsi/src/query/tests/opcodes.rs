use std::sync::Arc;

use crate::commands::{CommandRow, QueryResult, TABLE};
use crate::limits;
use crate::query::test_unit::{TestQuery, data, refuses, unit};
use crate::unit::UnitState;

const ALL: u8 = 0;
const OPCODE: u8 = 1;
const OPCODE_AND_ACTION: u8 = 2;
const EITHER: u8 = 3;
const RCTD: u8 = 0x80;

fn cdb(options: u8, opcode: u8, action: u16) -> [u8; 12] {
    let [high, low] = action.to_be_bytes();
    [
        0xa3, 0x0c, options, opcode, high, low, 0, 0, 0xff, 0xff, 0, 0,
    ]
}

fn action(row: &CommandRow) -> u16 {
    row.service_action.unwrap_or(0)
}

/// A unit of which the volume can do nothing that not every volume can.
fn plain() -> UnitState {
    let mut unit = unit();
    Arc::make_mut(&mut unit.identity).removable = false;
    unit.traits.unmap_granularity = None;
    unit.traits.atomic = None;
    unit.traits.sanitize = &[];
    unit
}

#[test]
fn all_commands_are_those_of_the_table() {
    let data = data(&cdb(ALL, 0, 0), &unit());
    let length = u32::from_be_bytes(data[..4].try_into().unwrap());
    assert_eq!(length as usize, data.len() - 4);
    assert_eq!(length as usize, TABLE.len() * 8);
    for (row, descriptor) in TABLE.iter().zip(data[4..].chunks(8)) {
        let [high, low] = action(row).to_be_bytes();
        let servactv = u8::from(row.service_action.is_some());
        let length = row.usage.len() as u8;
        assert_eq!(
            descriptor,
            [row.opcode, 0, high, low, 0, servactv, 0, length]
        );
    }
}

#[test]
fn all_commands_with_timeouts() {
    let data = data(&cdb(RCTD | ALL, 0, 0), &unit());
    assert_eq!(data.len(), 4 + TABLE.len() * 20);
    for (row, descriptor) in TABLE.iter().zip(data[4..].chunks(20)) {
        assert_eq!(descriptor[5] & 0x02, 0x02, "CTDP of {}", row.name);
        assert_eq!(descriptor[8..10], [0, 10]);
        assert_eq!(descriptor[18..], row.timeout_s.to_be_bytes());
    }
}

#[test]
fn every_row_is_answered_on_its_own() {
    let unit = unit();
    for row in TABLE {
        let (by, not_by) = match row.service_action {
            Some(_) => (OPCODE_AND_ACTION, OPCODE),
            None => (OPCODE, OPCODE_AND_ACTION),
        };
        let one = data(&cdb(by, row.opcode, action(row)), &unit);
        assert_eq!(one[..4], [0, 3, 0, row.usage.len() as u8], "{}", row.name);
        assert_eq!(one[4], row.opcode);
        if row.service_action.is_some() {
            assert_eq!(one[5] & 0x1f, action(row) as u8);
        }
        assert_eq!(one[6..], row.usage[2..]);
        assert_eq!(data(&cdb(EITHER, row.opcode, action(row)), &unit), one);
        let refused = cdb(not_by, row.opcode, action(row));
        refuses(&refused, &unit, 2, Some(2));
    }
}

#[test]
fn usage_data_of_read10() {
    let one = data(&cdb(OPCODE, 0x28, 0), &unit());
    let usage = [0x28, 0x18, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0];
    assert_eq!(one[4..], usage);
}

#[test]
fn one_command_with_its_timeout() {
    let one = data(&cdb(RCTD | OPCODE, 0x35, 0), &unit());
    assert_eq!(one[1], 0x83);
    assert_eq!(one[14..], [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60]);
}

#[test]
fn what_is_not_there_is_not_supported() {
    let unit = unit();
    for asked in [
        cdb(OPCODE, 0xc1, 0),
        cdb(EITHER, 0xc1, 0),
        cdb(OPCODE_AND_ACTION, 0x9e, 0x11),
        cdb(EITHER, 0x9e, 0x11),
        cdb(EITHER, 0x28, 1),
    ] {
        assert_eq!(data(&asked, &unit), [0, 1, 0, 0], "{asked:02x?}");
    }
}

#[test]
fn unknown_reporting_options() {
    refuses(&cdb(4, 0, 0), &unit(), 2, Some(2));
}

#[test]
fn what_the_volume_cannot_do_is_neither_reported_nor_offered() {
    let unit = plain();
    let all = data(&cdb(ALL, 0, 0), &unit);
    let told: Vec<_> = all[4..].chunks(8).map(|d| (d[0], d[3])).collect();
    for (opcode, action) in [
        (0x1e, 0),
        (0x42, 0),
        (0x48, 0x01),
        (0x48, 0x02),
        (0x48, 0x1f),
        (0x9c, 0),
        (0x9e, 0x12),
    ] {
        assert!(
            !told.contains(&(opcode, action)),
            "{opcode:02x}h {action:02x}h"
        );
        let one = data(&cdb(EITHER, opcode, action.into()), &unit);
        assert_eq!(one, [0, 1, 0, 0]);
    }
    assert_eq!(told.len(), TABLE.len() - 7);
}

#[test]
fn a_row_that_is_not_offered_fails_as_if_it_were_not_there() {
    let unit = plain();
    let code = |opcode, action| {
        let row = TABLE
            .iter()
            .find(|row| row.opcode == opcode && row.service_action == action);
        row.unwrap()
            .check_offered(&unit)
            .map_err(|sense| sense.code)
    };
    assert_eq!(code(0x42, None), Err(0x2000));
    assert_eq!(code(0x48, Some(1)), Err(0x2000));
    assert_eq!(code(0x9e, Some(0x12)), Err(0x2400));
    assert_eq!(code(0x9e, Some(0x10)), Ok(()));
}

/// Others do not heed what a gateway locks and reserves.
#[test]
fn what_a_gateway_cannot_keep_is_not_offered() {
    let mut gateway = unit();
    gateway.traits.shared = true;
    const KEPT: [u8; 8] = [0x16, 0x17, 0x56, 0x57, 0x5e, 0x5f, 0x89, 0x8b];
    for row in TABLE {
        let is_offered = row.check_offered(&unit()).is_ok();
        let told = row.check_offered(&gateway).map_err(|sense| sense.code);
        let one = data(&cdb(EITHER, row.opcode, action(row)), &gateway);
        if KEPT.contains(&row.opcode) {
            assert_eq!((is_offered, told), (true, Err(0x2000)), "{}", row.name);
            assert_eq!(one, [0, 1, 0, 0], "{}", row.name);
        } else {
            assert_eq!(told.is_ok(), is_offered, "{}", row.name);
        }
    }
    assert_eq!(limits::compare_and_write(&gateway.traits), 0);
    assert_ne!(limits::compare_and_write(&unit().traits), 0);
}

#[test]
fn without_a_unit_there_is_nothing_to_report() {
    let answer = TestQuery {
        unit: None,
        ..TestQuery::new(&cdb(ALL, 0, 0), &unit())
    }
    .answer();
    assert!(matches!(answer, QueryResult::Fail(_)));
}
