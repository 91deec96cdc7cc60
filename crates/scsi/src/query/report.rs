//! placeholder
use crate::commands::{Answer, Query};
/// x
pub fn report_luns(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn report_supported_operation_codes(_q: &Query<'_>) -> Answer {
    Answer::Good
}
/// x
pub fn report_supported_task_management_functions(_q: &Query<'_>) -> Answer {
    Answer::Good
}
