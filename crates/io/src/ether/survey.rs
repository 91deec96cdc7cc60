//! What the kernel tells of the interfaces of this network namespace, for those who look for the
//! place where frames are lost.
//!
//! All of it is read and nothing is changed; it needs no privilege. Each function asks the kernel
//! anew, under its RTNL lock, so a thread that moves data does not call them.

mod hardware;
mod links;
mod qdiscs;

use std::io;

use super::dcb::{self, DcbError, DcbPfc};

pub use hardware::{PauseFrames, PauseReading, RingSizes, filters_vlans, pause, ring_sizes};
pub use links::{LinkReading, LossCounters, links};
pub use qdiscs::{QdiscReading, qdiscs};

#[cfg(test)]
pub(super) use qdiscs::parse as parse_qdisc;

/// Priority flow control of an interface; `None` where its driver has no DCB.
///
/// # Errors
///
/// When there is no such interface, or the kernel does not tell.
pub fn pfc(interface: &str) -> io::Result<Option<DcbPfc>> {
    match dcb::read(interface) {
        Ok(told) => Ok(told.pfc),
        Err(DcbError::Unsupported(_)) => Ok(None),
        Err(DcbError::Missing(_)) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        Err(DcbError::Io(_, cause)) => Err(cause),
        Err(other) => Err(io::Error::other(other)),
    }
}
