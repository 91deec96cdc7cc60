//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn log_sense(_q: &Query<'_>) -> Answer {
    Answer::Good
}
