//! `lunar` as a user and a script meet it, one module a subject.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

mod bench;
mod command_line;
mod copy;
mod doctor;
mod fcoeadm;
mod fcping;
mod fipvlan;
mod iser;
mod looks;
mod manual;
mod namespace;
mod pinned;
mod race;
mod resume;
mod rig;
mod secrets;
mod signals;
mod switch;
mod switch_at_work;
mod volumes;
