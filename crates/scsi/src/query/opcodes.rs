//! REPORT SUPPORTED OPERATION CODES (SPC-5 §6.30): the opcode table, as far as the unit's volume
//! can do what is in it.

use super::unit;
use crate::commands::{CommandRow, Query, QueryResult, TABLE, rows_of};
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::cdb::{be16, bit, byte};
use crate::wire::sense::Sense;

/// REPORT SUPPORTED OPERATION CODES, every REPORTING OPTIONS.
#[must_use]
pub fn report_supported_operation_codes(query: &Query<'_>) -> QueryResult {
    supported(query).into()
}

fn supported(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    let timeouts = bit(query.cdb, 2, RCTD);
    let (opcode, action) = (byte(query.cdb, 3), be16(query.cdb, 4));
    let rows = rows_of(opcode);
    let has_actions = rows.iter().any(|row| row.service_action.is_some());
    let row = match byte(query.cdb, 2) & 0x07 {
        ALL => return Ok(all(unit, timeouts)),
        OPCODE if has_actions => return Err(REPORTING_OPTIONS.into()),
        OPCODE => rows.first(),
        // An unknown opcode may have service actions.
        OPCODE_AND_ACTION if !has_actions && !rows.is_empty() => {
            return Err(REPORTING_OPTIONS.into());
        }
        OPCODE_AND_ACTION | EITHER => with_action(rows, action),
        _ => return Err(REPORTING_OPTIONS.into()),
    };
    let row = row.filter(|row| row.check_offered(unit).is_ok());
    Ok(one(row, timeouts))
}

/// Without service actions the field has to be zero.
fn with_action(rows: &'static [CommandRow], action: u16) -> Option<&'static CommandRow> {
    let names = |row: &&CommandRow| row.service_action.unwrap_or(0) == action;
    rows.iter().find(names)
}

/// The all_commands format.
fn all(unit: &UnitState, timeouts: bool) -> QueryResult {
    let mut data = vec![0; 4];
    for row in TABLE.iter().filter(|row| row.check_offered(unit).is_ok()) {
        let [high, low] = row.service_action.unwrap_or(0).to_be_bytes();
        let servactv = u8::from(row.service_action.is_some());
        let ctdp = if timeouts { 0x02 } else { 0 };
        let length = row.usage.len() as u8;
        data.extend([row.opcode, 0, high, low, 0, ctdp | servactv, 0, length]);
        if timeouts {
            data.extend(timeouts_of(row));
        }
    }
    let length = (data.len() - 4) as u32;
    data[..4].copy_from_slice(&length.to_be_bytes());
    QueryResult::Data(data)
}

/// The one_command format.
fn one(row: Option<&CommandRow>, timeouts: bool) -> QueryResult {
    let Some(row) = row else {
        return QueryResult::Data(vec![0, NOT_SUPPORTED, 0, 0]);
    };
    let ctdp = if timeouts { 0x80 } else { 0 };
    let mut data = vec![0, ctdp | AS_THE_STANDARD_SAYS, 0, row.usage.len() as u8];
    data.extend(usage(row));
    if timeouts {
        data.extend(timeouts_of(row));
    }
    QueryResult::Data(data)
}

/// CDB USAGE DATA: the mask, but that OPERATION CODE and SERVICE ACTION hold their values.
fn usage(row: &CommandRow) -> Vec<u8> {
    let mut usage = row.usage.to_vec();
    usage[0] = row.opcode;
    if let Some(action) = row.service_action {
        usage[1] = usage[1] & 0xe0 | action as u8;
    }
    usage
}

/// The command timeouts descriptor, in seconds; no nominal time is specified.
fn timeouts_of(row: &CommandRow) -> [u8; 12] {
    let [high, low] = row.timeout_s.to_be_bytes();
    [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, high, low]
}

const RCTD: u8 = 0x80;

/// REPORTING OPTIONS.
const ALL: u8 = 0b000;
const OPCODE: u8 = 0b001;
const OPCODE_AND_ACTION: u8 = 0b010;
const EITHER: u8 = 0b011;

const REPORTING_OPTIONS: Sense = Sense::cdb_field(2, Some(2));

/// SUPPORT.
const NOT_SUPPORTED: u8 = 0b001;
const AS_THE_STANDARD_SAYS: u8 = 0b011;
