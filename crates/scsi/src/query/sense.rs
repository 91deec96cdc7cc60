//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn request_sense(_q: &Query<'_>) -> Answer {
    Answer::Good
}
