//! Stories of sessions, told as packet traces.

mod commands;
mod data_by_memory;
mod digests;
mod errors;
mod iser;
mod logouts;
mod management;
mod opcodes;
mod pings;
mod reads;
mod rig;
mod splits;
mod texts;
mod window;
mod writes;
