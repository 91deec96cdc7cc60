//! Measures volumes, and tells what was measured.
#![forbid(unsafe_code)]

pub mod outcome;
