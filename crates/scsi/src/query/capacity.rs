//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn read_capacity10(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn read_capacity16(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn read_defect_data10(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn read_defect_data12(_q: &Query<'_>) -> Answer {
    Answer::Good
}
