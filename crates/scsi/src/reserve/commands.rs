//! The commands about reservations.

use crate::commands::{Answer, Query};
use crate::owner::Change;
use crate::task::Failure;
use crate::wire::sense::{Key, Sense};

/// PERSISTENT RESERVE IN, every service action.
#[must_use]
pub fn persistent_reserve_in(_query: &Query<'_>) -> Answer {
    refused()
}

/// PARAMETER LIST LENGTH of PERSISTENT RESERVE OUT.
#[must_use]
pub fn persistent_reserve_out_length(_cdb: &[u8]) -> u32 {
    0
}

/// PERSISTENT RESERVE OUT, every service action.
#[must_use]
pub fn persistent_reserve_out(_query: &Query<'_>) -> Answer {
    refused()
}

/// RESERVE(6) and RESERVE(10).
#[must_use]
pub fn reserve(_query: &Query<'_>) -> Answer {
    Answer::Change(Change::Reserve)
}

/// RELEASE(6) and RELEASE(10).
#[must_use]
pub fn release(_query: &Query<'_>) -> Answer {
    Answer::Change(Change::Release)
}

fn refused() -> Answer {
    Answer::Fail(Failure::Check(Sense::new(Key::IllegalRequest, 0x2000)))
}
