//! SEND DIAGNOSTIC (SPC-5 §6.43).

use super::unit;
use crate::commands::{Query, QueryResult};

/// SEND DIAGNOSTIC with the default self-test, which passes where commands can be carried out at
/// all. Other self-tests and diagnostic pages are refused by the usage mask of the CDB.
#[must_use]
pub fn send_diagnostic(query: &Query<'_>) -> QueryResult {
    match unit(query).and_then(|unit| unit.operation.ready()) {
        Ok(()) => QueryResult::Good,
        Err(failure) => QueryResult::Fail(failure),
    }
}
