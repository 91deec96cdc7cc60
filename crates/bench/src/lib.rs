//! Measures volumes, and tells what was measured.
#![forbid(unsafe_code)]

pub mod floor;
pub mod load;
mod load_threads;
pub mod numbers;
pub mod outcome;
pub mod plan;
pub mod processes;
pub mod race;
pub mod report;
pub mod run;
mod series;
#[cfg(test)]
mod testing;

pub use load_threads::{LiveFigures, RunObserver, RunTimes};
