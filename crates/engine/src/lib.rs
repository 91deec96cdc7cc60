//! Serves volumes: joins protocol state machines, device servers and volumes, one core each.
//!
//! | duty | modules |
//! |---|---|
//! | configuration, start and stop | [`serve`] |
//! | the cores and what is between them | [`core`], [`mailbox`], [`flushes`] |
//! | what outlives a process: identity, reservations | [`identity`], [`state`] |
#![forbid(unsafe_code)]

pub mod core;
pub mod flushes;
pub mod identity;
pub mod mailbox;
pub mod serve;
pub mod state;
