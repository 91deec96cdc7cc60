//! Joins machines, device servers and volumes.
#![forbid(unsafe_code)]

pub mod address;
pub mod core;
pub mod discovery;
pub mod flushes;
pub mod identity;
pub mod journal;
mod lockfile;
pub mod mailbox;
mod n_port;
pub mod pair;
pub mod polling;
pub mod remote;
pub mod secret;
pub mod serve;
pub mod sim;
pub mod size;
pub mod state;
pub mod volumes;
pub mod worker;
