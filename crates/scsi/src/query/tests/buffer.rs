use crate::commands::QueryResult;
use crate::owner::UnitChange;
use crate::query::test_unit::{TestQuery, data, is_cdb_field, nexus, refuses, sense, unit};
use crate::unit::UnitState;
use crate::unit_settings::{SettingChange, apply};

const DATA: u8 = 0x02;
const DESCRIPTOR: u8 = 0x03;
const ECHO: u8 = 0x0a;
const ECHO_DESCRIPTOR: u8 = 0x0b;

fn cdb(opcode: u8, mode: u8, offset: u32, length: u32) -> [u8; 10] {
    let ([_, a, b, c], [_, d, e, f]) = (offset.to_be_bytes(), length.to_be_bytes());
    [opcode, mode, 0, a, b, c, d, e, f, 0]
}

fn read(mode: u8, offset: u32) -> [u8; 10] {
    cdb(0x3c, mode, offset, 0x1_0000)
}

fn write(unit: &mut UnitState, cdb: &[u8; 10], bytes: &[u8]) -> QueryResult {
    let answer = TestQuery::with(cdb, bytes, unit).answer();
    if let QueryResult::Change(UnitChange::Setting(setting)) = &answer {
        assert_eq!(apply(unit, &nexus(1).identity, setting), Ok(vec![]));
    }
    answer
}

#[test]
fn descriptors() {
    assert_eq!(data(&read(DESCRIPTOR, 0), &unit()), [0, 1, 0, 0]);
    assert_eq!(data(&read(ECHO_DESCRIPTOR, 0), &unit()), [1, 0, 0x10, 0]);
    let other_buffer = [0x3c, DESCRIPTOR, 7, 0, 0, 0, 0, 0, 4, 0];
    assert_eq!(data(&other_buffer, &unit()), [0; 4]);
}

#[test]
fn what_was_written_at_an_offset_is_read_there() {
    let mut unit = unit();
    write(&mut unit, &cdb(0x3b, DATA, 0x100, 3), b"abc");
    let read = data(&read(DATA, 0xff), &unit);
    assert_eq!(&read[..5], b"\0abc\0");
    assert_eq!(read.len(), 0x1_0000 - 0xff);
}

#[test]
fn the_data_buffer_reads_zeros_before_it_was_written() {
    assert_eq!(data(&read(DATA, 0), &unit()), vec![0; 0x1_0000]);
    assert_eq!(data(&read(DATA, 0x1_0000), &unit()), []);
}

#[test]
fn reading_from_beyond_the_end_is_refused() {
    refuses(&read(DATA, 0x1_0001), &unit(), 3, None);
    refuses(&read(DATA, 0xff_ffff), &unit(), 3, None);
}

#[test]
fn writing_beyond_the_end_is_refused() {
    let mut unit = unit();
    is_cdb_field(
        write(&mut unit, &cdb(0x3b, DATA, 0xffff, 2), b"ab"),
        6,
        None,
    );
    is_cdb_field(
        write(&mut unit, &cdb(0x3b, DATA, 0x1_0001, 0), b""),
        3,
        None,
    );
    is_cdb_field(
        write(&mut unit, &cdb(0x3b, DATA, 1, 0xff_ffff), &[0; 0x1_0000]),
        6,
        None,
    );
    assert!(unit.settings.buffer.is_empty());
    let answer = write(&mut unit, &cdb(0x3b, DATA, 0xffff, 1), b"z");
    assert!(matches!(answer, QueryResult::Change(_)));
    assert_eq!(data(&read(DATA, 0xffff), &unit), b"z");
}

#[test]
fn a_buffer_that_is_not_there() {
    let mut unit = unit();
    let mut other = cdb(0x3b, DATA, 0, 1);
    other[2] = 1;
    is_cdb_field(write(&mut unit, &other, b"a"), 2, None);
    other[0] = 0x3c;
    refuses(&other, &unit, 2, None);
}

#[test]
fn echo() {
    let mut unit = unit();
    assert_eq!(
        sense(TestQuery::new(&read(ECHO, 0), &unit).answer()).code,
        0x2c00
    );
    write(&mut unit, &cdb(0x3b, ECHO, 0, 4), b"ping");
    assert_eq!(data(&read(ECHO, 0), &unit), b"ping");
    write(&mut unit, &cdb(0x3b, ECHO, 0, 2), b"ab");
    assert_eq!(data(&read(ECHO, 0), &unit), b"ab");
}

#[test]
fn an_echo_larger_than_its_buffer_is_refused() {
    let mut unit = unit();
    is_cdb_field(
        write(&mut unit, &cdb(0x3b, ECHO, 0, 0x1001), &[1; 0x1001]),
        6,
        None,
    );
    let answer = write(&mut unit, &cdb(0x3b, ECHO, 0, 0x1000), &[1; 0x1000]);
    assert!(matches!(
        answer,
        QueryResult::Change(UnitChange::Setting(SettingChange::Echo(_)))
    ));
}

#[test]
fn fewer_bytes_came_than_the_cdb_says() {
    let mut unit = unit();
    let answer = write(&mut unit, &cdb(0x3b, DATA, 0, 4), b"abc");
    assert_eq!(sense(answer).code, 0x1a00);
}

#[test]
fn other_modes_are_refused() {
    let unit = unit();
    for mode in (0..0x20).filter(|mode| ![DATA, DESCRIPTOR, ECHO, ECHO_DESCRIPTOR].contains(mode)) {
        refuses(&read(mode, 0), &unit, 1, Some(4));
        refuses(&cdb(0x3b, mode, 0, 0), &unit, 1, Some(4));
    }
}
