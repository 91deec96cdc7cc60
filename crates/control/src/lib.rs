//! The control plane: one tree of what is configured, and one gate by which it changes.
//!
//! | file | duty |
//! |---|---|
//! | [`alarm`] | what somebody should look at |
//! | [`tree`] | the rows: volumes, groups, targets, switches |
//! | [`document`] | a tree as TOML, read with places and rewritten with comments kept |
//! | [`check`] | what does not fit together in a tree |
//! | [`panics`] | what a panic costs: the process, or a request |
//! | [`plan`] | what a difference between two trees does to whom |
//! | [`gate`] | the one way in which a tree takes the place of another |
//! | [`store`] | the document and its history in files |
//! | `login_keys` | the login keys that a target may have of its own |
//! | [`lower`] | from a tree to what the engine serves |
//! | [`serving`] | the engine behind the gate |
//! | `switches` | switches, each on a thread of its own |
//! | [`plane`] | what all front ends of a running server use |
//! | [`api`] | HTTP and JSON over a Unix socket and TCP |
//! | [`daemon`] | from a file to a server that can be asked and told |
//! | [`client`] | the other end of the API |
//! | [`audit`] | a line for each call that changes something |
//! | [`metrics`] | numbers for Prometheus and `lunar stats` |
//! | [`import`] | trees out of the files of other targets, and back to LIO |
//! | [`secret`] | secrets by reference |
//! | [`shell`] | the words and the grammar of targetcli over a tree |
#![forbid(unsafe_code)]

pub mod alarm;
#[cfg(test)]
mod any;
pub mod api;
pub mod audit;
pub mod check;
pub mod client;
pub mod daemon;
pub mod document;
pub mod gate;
pub mod import;
mod login_keys;
pub mod lower;
pub mod metrics;
pub mod panics;
pub mod plan;
pub mod plane;
mod schema;
pub mod secret;
pub mod serving;
pub mod shell;
pub mod store;
mod switches;
pub mod tree;
