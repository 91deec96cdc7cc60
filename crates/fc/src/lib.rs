//! Fibre Channel over Ethernet (FC-BB-6, FC-FS-3, FC-LS-2, FCP-4), and LLDP beside it, as machines
//! without I/O, clock or randomness.
//!
//! Whole Ethernet frames go in by `receive`, events come out of `poll`, and `transmit` writes the
//! frames to be sent where a [`frames::FrameSink`] has room for them.
#![forbid(unsafe_code)]

pub mod exchange;
pub mod fabric;
pub mod fip;
pub mod frames;
pub mod initiator;
pub mod lldp;
pub mod path_probe;
pub mod port;
pub mod remote;
pub mod target;
#[cfg(any(test, feature = "testing"))]
pub mod tests;
pub mod wire;
