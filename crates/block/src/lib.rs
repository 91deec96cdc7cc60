//! Volumes: anything that holds blocks.
#![forbid(unsafe_code)]

pub mod lease;
pub mod volume;
