//! Each command against bytes written by hand from the standards.

mod any;
mod buffer;
mod inquiry;
mod log;
mod medium;
mod mode_select;
mod mode_sense;
mod opcodes;
mod report;
