//! Stories with the initiators that people have: libiscsi's tools, QEMU's block layer; with
//! tshark as a witness; and with peers that behave badly on purpose. The ring is that of
//! `$LUNAR_RING`.
#![forbid(unsafe_code)]
#![cfg(test)]

mod access;
mod bad_peers;
mod bench;
mod copies;
mod crashes;
mod discovery;
mod fcoe;
mod fcoe_trace;
mod growth;
mod identity;
mod lifecycle;
mod live;
mod own_initiator;
mod qemu;
mod remote;
mod trace;
mod waiting;

use std::process::Command;
use std::time::Duration;

use tests::tool::{self, Ran};

/// Runs a tool that may fail.
fn run(program: &str, args: &[&str]) -> Ran {
    tool::run(Command::new(program).args(args), Duration::from_secs(60)).unwrap()
}

/// Runs a tool that must not fail; gives what it said.
#[track_caller]
fn must(program: &str, args: &[&str]) -> String {
    tool::must(Command::new(program).args(args)).unwrap_or_else(|cause| panic!("{cause:#}"))
}
