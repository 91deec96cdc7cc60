//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn send_diagnostic(_q: &Query<'_>) -> Answer {
    Answer::Good
}
