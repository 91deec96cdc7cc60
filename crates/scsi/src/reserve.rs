//! Reservations (SPC-5 §5.14): who may touch a unit.

mod commands;

pub use commands::{
    persistent_reserve_in, persistent_reserve_out, persistent_reserve_out_length, release, reserve,
};

use crate::commands::Row;
use crate::nexus::Identity;
use crate::task::Failure;
use crate::unit::UnitState;

/// Everything about the reservations of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {}

/// What a PERSISTENT RESERVE OUT asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {}

/// Whether a nexus may carry out a command now.
///
/// # Errors
/// RESERVATION CONFLICT.
pub fn check(
    _state: &UnitState,
    _identity: &Identity,
    _row: &Row,
    _cdb: &[u8],
) -> Result<(), Failure> {
    Ok(())
}
