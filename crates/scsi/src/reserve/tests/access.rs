//! SPC-5 table 62 and SBC-4 table 13: type x command class x role.

use super::super::{Holding, ReservationType, check};
use super::{registered, reserve};
use crate::commands::{Access, CommandRow, TABLE};
use crate::nexus::NexusIdentity;
use crate::testing::{by_port, host, unit};
use crate::unit::UnitState;
use std::sync::Arc;

const TEST_UNIT_READY: &[u8] = &[0x00, 0, 0, 0, 0, 0];
const READ: &[u8] = &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const WRITE: &[u8] = &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];

fn allowed(state: &UnitState, nexus: &NexusIdentity, cdb: &[u8]) -> bool {
    let action = u16::from(cdb[1] & 0x1f);
    let row = TABLE.iter().find(|row| {
        row.opcode == cdb[0] && row.service_action.is_none_or(|expected| expected == action)
    });
    check(state, nexus, row.expect("in the table"), cdb).is_ok()
}

fn blank(row: &CommandRow) -> Vec<u8> {
    let mut cdb = vec![0; row.usage.len()];
    cdb[0] = row.opcode;
    cdb[1] = row.service_action.unwrap_or(0) as u8;
    cdb
}

/// Host 1 holds, host 2 is registered, host 3 is a stranger.
fn reserved_as(kind: ReservationType) -> UnitState {
    let mut reservations = registered(&[(&host(1), 0x1111), (&host(2), 0x2222)]);
    reservations.act(&host(1), &reserve(0x1111, kind)).unwrap();
    UnitState {
        reservations: Arc::new(reservations),
        ..unit()
    }
}

#[test]
fn each_type_gives_each_role_what_the_table_says() {
    use ReservationType::*;
    // By type: registrant reads, registrant writes, stranger reads, stranger writes.
    let table = [
        (WriteExclusive, [true, false, true, false]),
        (ExclusiveAccess, [false, false, false, false]),
        (WriteExclusiveRegistrantsOnly, [true, true, true, false]),
        (ExclusiveAccessRegistrantsOnly, [true, true, false, false]),
        (WriteExclusiveAllRegistrants, [true, true, true, false]),
        (ExclusiveAccessAllRegistrants, [true, true, false, false]),
    ];
    for (kind, expected) in table {
        let state = reserved_as(kind);
        assert!(allowed(&state, &host(1), READ), "{kind:?}: the holder");
        assert!(allowed(&state, &host(1), WRITE), "{kind:?}: the holder");
        let found = [
            allowed(&state, &host(2), READ),
            allowed(&state, &host(2), WRITE),
            allowed(&state, &host(3), READ),
            allowed(&state, &host(3), WRITE),
        ];
        assert_eq!(found, expected, "{kind:?}");
        for number in 1..=3 {
            assert!(allowed(&state, &host(number), TEST_UNIT_READY), "{kind:?}");
        }
    }
}

#[test]
fn a_registrant_by_another_port_is_a_stranger() {
    let state = reserved_as(ReservationType::WriteExclusiveRegistrantsOnly);
    let other_path = by_port(2, 2);
    assert!(allowed(&state, &host(2), WRITE));
    assert!(!allowed(&state, &other_path, WRITE));
}

#[test]
fn nothing_conflicts_where_nothing_is_reserved() {
    let mut state = unit();
    state.reservations = Arc::new(registered(&[(&host(1), 0x1111)]));
    for row in TABLE {
        let cdb = blank(row);
        assert_eq!(check(&state, &host(3), row, &cdb), Ok(()), "{}", row.name);
    }
}

/// The commands that conflict even with Write Exclusive types (SPC-5 table 62, SBC-4 table 13).
/// Of the copies, what reads the source is checked there; the list itself writes.
const WRITES: &[&str] = &[
    "COMPARE AND WRITE",
    "EXTENDED COPY(LID1)",
    "FORMAT UNIT",
    "MODE SELECT(10)",
    "MODE SELECT(6)",
    "ORWRITE(16)",
    "PREVENT ALLOW MEDIUM REMOVAL",
    "SANITIZE (BLOCK ERASE)",
    "SANITIZE (EXIT FAILURE MODE)",
    "SANITIZE (OVERWRITE)",
    "SEND DIAGNOSTIC",
    "SET TARGET PORT GROUPS",
    "SET TIMESTAMP",
    "START STOP UNIT",
    "SYNCHRONIZE CACHE(10)",
    "SYNCHRONIZE CACHE(16)",
    "UNMAP",
    "WRITE AND VERIFY(10)",
    "WRITE AND VERIFY(12)",
    "WRITE AND VERIFY(16)",
    "WRITE ATOMIC(16)",
    "WRITE BUFFER",
    "WRITE SAME(10)",
    "WRITE SAME(16)",
    "WRITE(10)",
    "WRITE(12)",
    "WRITE(16)",
    "WRITE(6)",
];

#[test]
fn exactly_the_commands_that_change_the_unit_conflict_with_write_exclusive() {
    let writes = TABLE.iter().filter(|row| row.access == Access::Write);
    let mut names: Vec<_> = writes.map(|row| row.name).collect();
    names.sort_unstable();
    assert_eq!(names, WRITES);
}

/// Commands that no persistent reservation keeps anybody from. Those about reservations have rules
/// of their own.
const ALWAYS: &[&str] = &[
    "INQUIRY",
    "LOG SENSE",
    "READ CAPACITY(10)",
    "READ CAPACITY(16)",
    "REPORT LUNS",
    "REPORT TARGET PORT GROUPS",
    "REPORT TIMESTAMP",
    "REQUEST SENSE",
    "TEST UNIT READY",
];

#[test]
fn what_the_table_always_allows_never_conflicts() {
    for name in ALWAYS {
        let row = TABLE.iter().find(|row| row.name == *name);
        assert_eq!(row.expect(name).access, Access::Any, "{name}");
    }
}

/// REPORT CAPABILITIES promises it with ALLOW COMMANDS = 011b.
#[test]
fn what_report_capabilities_promises_passes_write_exclusive() {
    let state = reserved_as(ReservationType::WriteExclusive);
    let promised = [
        "MODE SENSE",
        "READ BUFFER",
        "READ DEFECT DATA",
        "RECEIVE COPY",
        "REPORT SUPPORTED",
    ];
    let rows = TABLE
        .iter()
        .filter(|row| promised.iter().any(|name| row.name.starts_with(name)));
    for row in rows {
        let cdb = blank(row);
        assert_eq!(check(&state, &host(3), row, &cdb), Ok(()), "{}", row.name);
    }
}

#[test]
fn starting_and_allowing_pass_where_stopping_and_preventing_conflict() {
    let state = reserved_as(ReservationType::ExclusiveAccess);
    let start_stop = |byte| allowed(&state, &host(3), &[0x1b, 0, 0, 0, byte, 0]);
    assert!(start_stop(0x01), "START");
    assert!(!start_stop(0x00), "stop");
    assert!(!start_stop(0x31), "POWER CONDITION");
    let prevent = |byte| allowed(&state, &host(3), &[0x1e, 0, 0, 0, byte, 0]);
    assert!(prevent(0), "allow");
    assert!(!prevent(1), "prevent");
}

#[test]
fn reserve_6_keeps_others_from_all_but_a_few_commands() {
    let mut state = unit();
    let reservations = Arc::make_mut(&mut state.reservations);
    reservations.hold = Holding::Reserved(host(1));
    for cdb in [TEST_UNIT_READY, READ, WRITE, &[0x1a, 0, 0x3f, 0, 255, 0]] {
        assert!(allowed(&state, &host(1), cdb), "holder: {cdb:02x?}");
        assert!(!allowed(&state, &host(2), cdb), "other: {cdb:02x?}");
    }
    for opcode in [
        0x03, 0x12, 0x16, 0x17, 0x25, 0x4d, 0x56, 0x57, 0x5e, 0x5f, 0xa0,
    ] {
        let cdb = [opcode, 0, 0, 0, 0, 0];
        assert!(allowed(&state, &host(2), &cdb), "{opcode:02x}h");
    }
    assert!(allowed(&state, &host(2), &[0x1e, 0, 0, 0, 0, 0]), "allow");
    assert!(
        !allowed(&state, &host(2), &[0x1e, 0, 0, 0, 1, 0]),
        "prevent"
    );
}
