//! REQUEST SENSE (SPC-5 §6.39) and SEND DIAGNOSTIC (SPC-5 §6.43).

use super::{NO_UNIT, unit};
use crate::commands::{Query, QueryResult};
use crate::long_operation::OperationState;
use crate::task::CommandFailure;
use crate::wire::asc;
use crate::wire::cdb::bit;
use crate::wire::lun::WELL_KNOWN_REPORT_LUNS;
use crate::wire::sense::{Format, Sense, SenseKey};

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
