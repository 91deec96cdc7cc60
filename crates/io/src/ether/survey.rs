//! What the kernel tells of the interfaces of this network namespace, for those who look for the
//! place where frames are lost.
//!
//! All of it is read and nothing is changed; it needs no privilege. Each function asks the kernel
//! anew, under its RTNL lock, so a thread that moves data does not call them.

mod dcb;
mod dump;
mod hardware;
mod links;
mod qdiscs;

pub use dcb::{PfcReading, pfc};
pub use hardware::{PauseFrames, PauseReading, RingSizes, pause, ring_sizes};
pub use links::{LinkReading, LossCounters, links};
pub use qdiscs::{QdiscReading, qdiscs};

#[cfg(test)]
pub(super) use {dcb::parse as parse_pfc, qdiscs::parse as parse_qdisc};
