//! Whether the unit is ready, and what makes it so: TEST UNIT READY (SPC-5 §6.47), START STOP UNIT
//! (SBC-4 §5.31), PREVENT ALLOW MEDIUM REMOVAL (SBC-4 §5.15).

use super::unit;
use crate::commands::{Answer, Query};
use crate::owner::Change;
use crate::setting::Setting;
use crate::task::Failure;
use crate::unit::UnitState;
use crate::wire::cdb::{bit, octet};
use crate::wire::sense::Sense;

/// TEST UNIT READY.
#[must_use]
pub fn test_unit_ready(query: &Query<'_>) -> Answer {
    match unit(query).and_then(UnitState::ready) {
        Ok(()) => Answer::Good,
        Err(failure) => Answer::Fail(failure),
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
pub fn start_stop_unit(query: &Query<'_>) -> Answer {
    match setting(query) {
        Err(failure) => Answer::Fail(failure),
        Ok(None) => Answer::Good,
        Ok(Some(setting)) if setting == Setting::Load || bit(query.cdb, 4, NO_FLUSH) => {
            Answer::Change(Change::Setting(setting))
        }
        Ok(Some(setting)) => Answer::ChangeAndFlush(Change::Setting(setting)),
    }
}

fn setting(query: &Query<'_>) -> Result<Option<Setting>, Failure> {
    let unit = unit(query)?;
    unit.operation.ready()?;
    let flags = octet(query.cdb, 4);
    let (start, load_or_eject) = (flags & START != 0, flags & LOEJ != 0);
    Ok(match flags >> 4 {
        START_VALID if load_or_eject && !unit.identity.removable => {
            return Err(Sense::cdb_field(4, Some(1)).into());
        }
        START_VALID if load_or_eject && start => Some(Setting::Load),
        START_VALID if load_or_eject => Some(Setting::Eject),
        START_VALID if !start => Some(Setting::Stop),
        STANDBY | FORCE_STANDBY_0 => Some(Setting::Stop),
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
pub fn prevent_allow_medium_removal(query: &Query<'_>) -> Answer {
    match unit(query).and_then(|unit| unit.operation.ready()) {
        Ok(()) => Answer::Change(Change::Setting(Setting::Prevent(bit(
            query.cdb, 4, PREVENT,
        )))),
        Err(failure) => Answer::Fail(failure),
    }
}

const PREVENT: u8 = 0x01;
