//! Serves volumes: joins protocol state machines, device servers and volumes, one core each.
//!
//! | duty | modules |
//! |---|---|
//! | `lunar serve`: its options, its start and stop | [`serve`] |
//! | what is served, as a value; a server that serves it | [`inventory`], [`server`] |
//! | the cores and what is between them | [`core`], [`mailbox`], [`flushes`] |
//! | how it changes meanwhile; what each initiator sees | [`change`], [`views`] |
//! | what the cores have counted | [`survey`] |
//! | `lunar switch`: a Fibre Channel switch over Ethernet ports | [`switch`] |
//! | what outlives a process: identity, reservations | `server::units`, [`state`] |
#![forbid(unsafe_code)]

pub mod change;
pub mod core;
pub mod flushes;
pub mod inventory;
pub mod mailbox;
pub mod serve;
pub mod server;
pub mod state;
pub mod survey;
pub mod switch;
pub mod views;
