//! Whether the unit is ready, and what makes it so: TEST UNIT READY (SPC-5 §6.47), START STOP UNIT
//! (SBC-4 §5.31), PREVENT ALLOW MEDIUM REMOVAL (SBC-4 §5.15), REQUEST SENSE (SPC-5 §6.39) and SEND
//! DIAGNOSTIC (SPC-5 §6.43).

use super::{NO_UNIT, unit};
use crate::commands::{Query, QueryResult};
use crate::long_operation::OperationState;
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::unit_settings::SettingChange;
use crate::wire::asc;
use crate::wire::cdb::{bit, byte};
use crate::wire::lun::WELL_KNOWN_REPORT_LUNS;
use crate::wire::sense::{Format, Sense, SenseKey};

/// TEST UNIT READY.
#[must_use]
pub fn test_unit_ready(query: &Query<'_>) -> QueryResult {
    match unit(query).and_then(UnitState::ready) {
        Ok(()) => QueryResult::Good,
        Err(failure) => QueryResult::Fail(failure),
    }
}

/// START STOP UNIT.
///
/// A volume has nothing that spins. Stopping it, and standby, have its caches flushed (unless
/// NO_FLUSH) and leave it ready, as if the next command woke it up: one host that shuts down must
/// not take a shared unit from all the others. Idle and reserved power conditions do nothing;
/// libiscsi's tests send every value and want GOOD. With a power condition, LOEJ and START do not
/// count.
#[must_use]
pub fn start_stop_unit(query: &Query<'_>) -> QueryResult {
    match setting(query) {
        Err(failure) => QueryResult::Fail(failure),
        Ok(None) => QueryResult::Good,
        Ok(Some(setting)) if setting == SettingChange::Load || bit(query.cdb, 4, NO_FLUSH) => {
            QueryResult::Change(UnitChange::Setting(setting))
        }
        Ok(Some(setting)) => QueryResult::ChangeAndFlush(UnitChange::Setting(setting)),
    }
}

fn setting(query: &Query<'_>) -> Result<Option<SettingChange>, CommandFailure> {
    let unit = unit(query)?;
    unit.operation.ready()?;
    let flags = byte(query.cdb, 4);
    let (start, load_or_eject) = (flags & START != 0, flags & LOEJ != 0);
    Ok(match flags >> 4 {
        START_VALID if load_or_eject && !unit.identity.removable => {
            return Err(Sense::cdb_field(4, Some(1)).into());
        }
        START_VALID if load_or_eject && start => Some(SettingChange::Load),
        START_VALID if load_or_eject => Some(SettingChange::Eject),
        START_VALID if !start => Some(SettingChange::Stop),
        STANDBY | FORCE_STANDBY_0 => Some(SettingChange::Stop),
        _ => None,
    })
}

const NO_FLUSH: u8 = 0x04;
const LOEJ: u8 = 0x02;
const START: u8 = 0x01;

/// POWER CONDITION.
const START_VALID: u8 = 0x0;
const STANDBY: u8 = 0x3;
const FORCE_STANDBY_0: u8 = 0xb;

/// PREVENT ALLOW MEDIUM REMOVAL.
#[must_use]
pub fn prevent_allow_medium_removal(query: &Query<'_>) -> QueryResult {
    match unit(query).and_then(|unit| unit.operation.ready()) {
        Ok(()) => QueryResult::Change(UnitChange::Setting(SettingChange::Prevent(bit(
            query.cdb, 4, PREVENT,
        )))),
        Err(failure) => QueryResult::Fail(failure),
    }
}

const PREVENT: u8 = 0x01;

/// REQUEST SENSE: the pending unit attention, or how a long operation gets on, in the format that
/// the DESC bit asks for whatever D_SENSE says.
#[must_use]
pub fn request_sense(query: &Query<'_>) -> QueryResult {
    let format = if bit(query.cdb, 1, DESC) {
        Format::Descriptor
    } else {
        Format::Fixed
    };
    QueryResult::Data(pollable(query).encode(format).as_slice().to_vec())
}

fn pollable(query: &Query<'_>) -> Sense {
    let Some(unit) = query.unit else {
        return match query.lun {
            WELL_KNOWN_REPORT_LUNS => Sense::new(SenseKey::NoSense, asc::NONE),
            _ => NO_UNIT,
        };
    };
    if let Some(code) = query.local.attention {
        return Sense::attention(code);
    }
    match (unit.operation, unit.operation.ready()) {
        (OperationState::Running { .. }, Err(CommandFailure::Check(sense))) => sense,
        _ => Sense::new(SenseKey::NoSense, asc::NONE),
    }
}

const DESC: u8 = 0x01;

/// SEND DIAGNOSTIC with the default self-test, which passes where commands can be carried out at
/// all. Other self-tests and diagnostic pages are refused by the usage mask of the CDB.
#[must_use]
pub fn send_diagnostic(query: &Query<'_>) -> QueryResult {
    match unit(query).and_then(|unit| unit.operation.ready()) {
        Ok(()) => QueryResult::Good,
        Err(failure) => QueryResult::Fail(failure),
    }
}
