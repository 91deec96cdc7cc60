//! Bodies of the fuzz targets: each takes any bytes and asserts what must hold whatever comes.
//!
//! `fuzz/` runs them under libFuzzer; the test `fuzzing` replays their corpora and mutations of
//! them, so that a finding stays found without a fuzzer. docs/fuzzing.md says what holds in each.

mod address;
mod cdb;
mod ct;
mod device;
mod document;
mod enode;
mod fcf;
mod fcoe;
mod fip;
mod flood;
mod framer;
mod import;
mod initiator;
mod lldp;
mod login;
mod mpa;
mod port;
mod reserve;
mod script;
mod session;
mod shell;
mod text;
mod zones;

pub use address::address;
pub use cdb::cdb;
pub use ct::ct;
pub use document::document;
pub use enode::enode;
pub use fcf::fcf;
pub use fcoe::{els, fcoe};
pub use fip::{fip, vn2vn};
pub use framer::framer;
pub use import::import;
pub use initiator::{initiator, iser_initiator};
pub use lldp::lldp;
pub use login::login;
pub use mpa::mpa;
pub use port::port;
pub use reserve::reserve;
pub use session::{iser_target, session};
pub use shell::shell;
pub use text::text;
pub use zones::zones;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// What it does with bytes.
    pub body: fn(&[u8]),
}

/// Every fuzz target.
pub const TARGETS: &[Target] = &[
    target("address", address),
    target("cdb", cdb),
    target("ct", ct),
    target("document", document),
    target("els", els),
    target("enode", enode),
    target("fcf", fcf),
    target("fcoe", fcoe),
    target("fip", fip),
    target("framer", framer),
    target("import", import),
    target("initiator", initiator),
    target("iser_initiator", iser_initiator),
    target("iser_target", iser_target),
    target("lldp", lldp),
    target("login", login),
    target("mpa", mpa),
    target("port", port),
    target("reserve", reserve),
    target("session", session),
    target("shell", shell),
    target("text", text),
    target("vn2vn", vn2vn),
    target("zones", zones),
];

const fn target(name: &'static str, body: fn(&[u8])) -> Target {
    Target { name, body }
}
