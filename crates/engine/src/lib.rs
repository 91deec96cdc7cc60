//! Joins protocol state machines, device servers and volumes.
//!
//! | duty | modules |
//! |---|---|
//! | what a user writes: addresses, secrets, sizes | [`address`], [`secret`], [`size`] |
//! | serving: configuration, start and stop, the cores | [`serve`], [`core`], [`flushes`], [`polling`] |
//! | between cores, and between a core and its volumes | [`mailbox`], [`volumes`] |
//! | what outlives a process: identity, reservations, locks | [`identity`], [`state`], `lockfile` |
//! | the log of what peers do wrong | [`journal`] |
//! | Fibre Channel ports of this machine | `n_port` |
//! | units of other targets: as volumes, and what there is | [`remote`], [`discovery`] |
//! | using volumes without serving them: one thread, copy and verify | [`worker`], [`pair`] |
//! | the same cores on a simulated clock, wires, mailboxes and disks | [`sim`] |
#![forbid(unsafe_code)]

pub mod core;
pub mod discovery;
pub mod flushes;
pub mod identity;
pub mod journal;
mod lockfile;
pub mod mailbox;
mod n_port;
pub mod open;
pub mod pair;
pub mod polling;
pub mod remote;
pub mod secret;
pub mod serve;
pub mod sim;
pub mod state;
pub mod volumes;
pub mod worker;
