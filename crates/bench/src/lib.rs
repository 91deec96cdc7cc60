//! Measures volumes, and tells what was measured.
#![forbid(unsafe_code)]

mod crew;
pub mod floor;
pub mod load;
pub mod numbers;
pub mod outcome;
mod places;
pub mod plan;
pub mod processes;
pub mod race;
mod random;
pub mod report;
pub mod run;
mod series;
#[cfg(test)]
mod testing;

pub use crew::{Live, Times, Watch};
