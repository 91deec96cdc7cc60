//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn inquiry(_q: &Query<'_>) -> Answer {
    Answer::Good
}
