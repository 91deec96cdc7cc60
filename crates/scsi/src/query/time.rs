//! REPORT TIMESTAMP and SET TIMESTAMP (SPC-5 §5.3, §6.35, §6.46).

use super::unit;
use crate::commands::{Query, QueryResult};
use crate::medium::Now;
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::unit_settings::{SettingChange, Timestamp};
use crate::wire::cdb::{Field, be32};
use crate::wire::sense::Sense;

/// REPORT TIMESTAMP: milliseconds since 1970 where an initiator has set them, else since power on.
#[must_use]
pub fn report_timestamp(query: &Query<'_>) -> QueryResult {
    match unit(query) {
        Ok(unit) => QueryResult::Data(encode(unit.settings.timestamp, query.now)),
        Err(failure) => QueryResult::Fail(failure),
    }
}

fn encode(timestamp: Timestamp, now: Now) -> Vec<u8> {
    let passed = now.saturating_sub(timestamp.at).as_millis() as u64;
    let (origin, ms) = match timestamp.set_ms {
        Some(set) => (SET, set.wrapping_add(passed)),
        None => (POWER_ON, passed),
    };
    let mut data = vec![0, 10, origin, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    MILLISECONDS.write(&mut data, ms);
    data
}

/// TIMESTAMP ORIGIN.
const POWER_ON: u8 = 0b000;
const SET: u8 = 0b010;

const MILLISECONDS: Field = Field::new(4, 6);

/// SET TIMESTAMP. PARAMETER LIST LENGTH 0 is not an error, and sets nothing.
#[must_use]
pub fn set_timestamp(query: &Query<'_>) -> QueryResult {
    set(query).into()
}

fn set(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    unit(query)?;
    let list = query.parameters;
    if be32(query.cdb, 6) == 0 {
        return Ok(QueryResult::Good);
    }
    if list.len() < LIST_LEN {
        return Err(Sense::parameter_length().into());
    }
    let timestamp = Timestamp {
        set_ms: Some(MILLISECONDS.read(list)),
        at: query.now,
    };
    Ok(QueryResult::Change(UnitChange::Setting(
        SettingChange::Timestamp(timestamp),
    )))
}

const LIST_LEN: usize = 12;
