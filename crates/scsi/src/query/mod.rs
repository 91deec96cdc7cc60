//! The commands that move no user data: answered at once from what is known, or after the owner
//! of the unit has agreed to a change.

pub mod buffer;
pub mod capacity;
pub mod inquiry;
pub mod log;
pub mod mode;
pub mod opcodes;
pub mod power;
pub mod report;
pub mod time;
mod vpd;

#[cfg(test)]
pub(crate) mod test_unit;
#[cfg(test)]
mod tests;

use crate::commands::Query;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::asc;
use crate::wire::sense::{Sense, SenseKey};

/// The unit that the query is about. The device server lets no command but INQUIRY, REPORT LUNS and
/// REQUEST SENSE come so far without one.
fn unit<'a>(query: &Query<'a>) -> Result<&'a UnitState, CommandFailure> {
    query.unit.ok_or(CommandFailure::Check(NO_UNIT))
}

const NO_UNIT: Sense = Sense::new(SenseKey::IllegalRequest, asc::LOGICAL_UNIT_NOT_SUPPORTED);

/// `text` from the left, filled up with spaces.
fn ascii<const LEN: usize>(text: &str) -> [u8; LEN] {
    let mut field = [b' '; LEN];
    field
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(to, from)| *to = from);
    field
}
