//! Joins machines, device servers and volumes.
#![forbid(unsafe_code)]

pub mod address;
pub mod serve;
