//! The commands that move no user data: answered at once from what is known, or after the owner
//! of the unit has agreed to a change.

pub mod buffer;
pub mod capacity;
pub mod diagnostic;
pub mod inquiry;
pub mod log;
pub mod mode;
pub mod power;
pub mod report;
pub mod sense;
#[cfg(test)]
pub(crate) mod test_unit;
pub mod time;
