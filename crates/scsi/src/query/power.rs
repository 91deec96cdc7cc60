//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn test_unit_ready(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn start_stop_unit(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn prevent_allow_medium_removal(_q: &Query<'_>) -> Answer {
    Answer::Good
}
