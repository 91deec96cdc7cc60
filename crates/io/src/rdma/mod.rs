//! RDMA by a device: InfiniBand, RoCE, iWARP, by libibverbs and librdmacm.
//!
//! The libraries are opened when they are needed ([`RdmaLibrary::open`]); a machine without them
//! misses nothing else. A [`RdmaListener`] or a [`RdmaConnector`] makes an [`RdmaPair`]: one queue
//! pair, whose operations are those of the trait that datamovers are written against.
//!
//! - **A pair owns its queues**: completion queue, channels, receives, header memory. So it moves
//!   to
//!   another core whole ([`RdmaPair::release`]). The price is one queue to poll a connection.
//! - **Work is posted by the turn**: what was asked for since the last [`RdmaPair::flush`] goes to
//!   the device as one chain.
//! - **A busy owner polls** ([`RdmaPair::poll`]), which is no system call. Before it sleeps it arms
//!   the queue ([`RdmaPair::arm`]), which looks once more for what came in between, and watches
//!   [`RdmaPair::descriptor`]. When that is readable, [`RdmaPair::wake`] comes first.
//! - **A device reaches no memory that is not held.** Buffers of operations are kept until their
//!   completion; when a pair ends, its queue pair is destroyed before anything is given back.
//! - **Whatever fails ends the pair**, with a cause in plain words ([`RdmaEnd`]).
//!
//! | what | file |
//! |---|---|
//! | declarations of the two libraries | `sys/` |
//! | opening them; devices | `library.rs`, `domain.rs` |
//! | memory that devices know, and its limits | `registration.rs`, `memory.rs`, `staging.rs` |
//! | memory that devices know for good | `locked.rs` |
//! | connections | `channel.rs`, `listener.rs`, `connector.rs` |
//! | a queue pair | `pair.rs`, `pair/` |
//! | what a core sleeps on | `watch.rs` |

mod addresses;
mod channel;
mod connector;
mod device_events;
mod domain;
mod end;
mod error;
mod library;
mod listener;
mod locked;
mod memory;
mod pair;
mod registration;
mod requests;
mod staging;
#[allow(
    dead_code,
    reason = "declarations, shared with the pretend libraries of the tests"
)]
mod sys;
#[cfg(test)]
mod tests;
mod watch;

use crate::memory::Buffer;

pub use connector::{RdmaConnectOptions, RdmaConnected, RdmaConnector};
pub use device_events::{RdmaDeviceEvent, RdmaDeviceEvents};
pub use domain::RdmaDomain;
pub use end::{RdmaEnd, RdmaFailure};
pub use error::RdmaError;
pub use library::{RdmaDeviceInfo, RdmaLibrary, RdmaTransport};
pub use listener::{RdmaListener, RdmaRequest};
pub use locked::{RdmaCopies, RegionRegistered};
pub use memory::RdmaMemory;
pub use pair::{RdmaLimits, RdmaPair, RdmaPairInTransit, RdmaPairOptions};
pub use watch::RdmaWatch;

/// A place in memory of the peer, or in memory that the peer may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The rkey.
    pub key: u32,
    /// What the peer calls the address of the byte.
    pub address: u64,
}

/// What the peer may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteAccess {
    /// Read it.
    Read,
    /// Write it.
    Write,
}

/// An operation of a queue pair.
#[derive(Clone, Debug)]
pub enum RdmaWork {
    /// Sends a message: header, then data.
    Send {
        /// The first bytes, at most [`RdmaHeader::MAX`].
        header: RdmaHeader,
        /// The rest.
        data: Option<Buffer>,
        /// A key of the peer that is not to be used any more.
        invalidate: Option<u32>,
    },
    /// Writes into the peer's memory.
    Write {
        /// Where the first byte goes.
        to: RemoteAddress,
        /// What is written.
        from: Buffer,
    },
    /// Reads the peer's memory.
    Read {
        /// Comes back with the completion.
        id: u32,
        /// Where the first byte comes from.
        from: RemoteAddress,
        /// What is filled, all of it.
        into: Buffer,
    },
}

/// The beginning of a message, within the operation itself.
#[derive(Clone, Copy)]
pub struct RdmaHeader {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl RdmaHeader {
    /// The longest, in bytes.
    pub const MAX: usize = 160;

    /// These bytes; `None` if there are more than [`Self::MAX`].
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut header = Self {
            bytes: [0; Self::MAX],
            len: bytes.len() as u8,
        };
        header.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(header)
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for RdmaHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RdmaHeader").field(&self.as_slice()).finish()
    }
}

/// What a queue pair tells.
#[derive(Debug)]
pub enum RdmaCompletion {
    /// The oldest send that was not told yet has reached the peer's device.
    Sent,
    /// The same of a write.
    Written,
    /// A read is complete.
    Got {
        /// Which one.
        id: u32,
        /// The memory, filled; or as it is, of a read that was cancelled.
        into: Buffer,
    },
    /// A read that was cancelled before the device knew of it is over.
    Drained(u32),
    /// A message has come.
    Received {
        /// All of it. To be given back to [`RdmaPair::recycle`].
        bytes: Vec<u8>,
        /// The key of ours that it invalidated.
        invalidated: Option<u32>,
    },
    /// Nothing follows.
    Ended(RdmaEnd),
}
