//! iSCSI (RFC 7143, RFC 7144) as machines without I/O, clock or randomness.
//!
//! At the target a connection begins as a [`login::Login`]; when that ends well it becomes a
//! [`session::Session`]. At the initiator it is an [`initiator::Initiator`] from its begin to its
//! end. Bytes go in by `receive`, events come out of `poll`, and bytes to be sent out of
//! `transmit`.
#![forbid(unsafe_code)]

pub mod auth;
#[cfg(test)]
mod connection;
pub mod datamover;
pub mod discovery;
pub mod initiator;
pub mod keys;
pub mod login;
pub mod names;
pub mod parameters;
pub mod pdu_sink;
pub mod session;
pub mod target;
#[cfg(any(test, feature = "testing"))]
pub mod test_support;
pub mod text;
pub mod wire;
