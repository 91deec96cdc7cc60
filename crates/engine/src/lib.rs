//! Joins machines, device servers and volumes.
#![forbid(unsafe_code)]

pub mod serve;
