//! Measures volumes, and tells what was measured.
#![forbid(unsafe_code)]

mod crew;
pub mod floor;
pub mod load;
mod numbers;
pub mod outcome;
mod places;
pub mod processes;
mod random;
pub mod report;
mod series;
#[cfg(test)]
mod testing;
pub mod words;

pub use crew::{Live, Times, Watch};
