//! Opens volumes, here or at another target, and uses them without serving them.
//!
//! | duty | modules |
//! |---|---|
//! | from addresses to volumes | [`open`] |
//! | units of other targets as volumes | [`remote`] |
//! | what targets and units there are | [`discovery`] |
//! | one thread that uses volumes | [`worker`] |
//! | two volumes: copy and verify | [`pair`] |
#![forbid(unsafe_code)]

pub mod discovery;
pub mod open;
pub mod pair;
pub mod remote;
pub mod worker;
