//! Pairs over pretend libraries, both ends in this process.

mod connecting;
mod ending;
mod layout;
mod limits;
mod locked;
mod memory;
mod moving;
mod rig;
mod sending;
mod watch;
