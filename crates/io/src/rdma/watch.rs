//! Waiting for many pairs and listeners of one core by one descriptor.
//!
//! A core watches this once, however many connections sleep, and learns which of them woke it.
//! What is closed leaves by itself, so nothing has to be taken back of a connection that ends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use super::{RdmaDeviceEvents, RdmaListener, RdmaPair};

/// What a core sleeps on: pairs, listeners and devices, each with a number of the core's.
pub struct RdmaWatch {
    fd: Arc<OwnedFd>,
    found: Vec<epoll::Event>,
}

/// How many are told at once. Others are told by the next call.
const FOUND_MAX: usize = 64;

impl RdmaWatch {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// Of epoll, as when there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            fd: Arc::new(epoll::create(CreateFlags::CLOEXEC)?),
            found: Vec::with_capacity(FOUND_MAX),
        })
    }

    /// Readable while something can be read of any of them.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Adds a pair by a number.
    ///
    /// # Errors
    ///
    /// Of epoll, as above the limit of watches of the user.
    pub fn add(&self, pair: &RdmaPair, number: u64) -> io::Result<()> {
        self.add_descriptor(pair.descriptor(), number)
    }

    /// Adds a listener by a number.
    ///
    /// # Errors
    ///
    /// As of [`Self::add`].
    pub fn add_listener(&self, listener: &RdmaListener, number: u64) -> io::Result<()> {
        self.add_descriptor(listener.descriptor(), number)
    }

    /// Adds the events of a device by a number.
    ///
    /// # Errors
    ///
    /// As of [`Self::add`].
    pub fn add_events(&self, events: &RdmaDeviceEvents, number: u64) -> io::Result<()> {
        self.add_descriptor(events.descriptor(), number)
    }

    fn add_descriptor(&self, fd: &Arc<OwnedFd>, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.fd, fd, data, EventFlags::IN)?)
    }

    /// Takes a pair out, which goes to another core.
    pub fn remove(&self, pair: &RdmaPair) {
        // It is not there if it could not be added.
        let _ = epoll::delete(&self.fd, pair.descriptor());
    }

    /// The numbers of those of which something can be read, without waiting.
    pub fn ready(&mut self) -> impl Iterator<Item = u64> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.found.clear();
        let places = rustix::buffer::spare_capacity(&mut self.found);
        // Interrupted, it is asked again, as the descriptor stays readable.
        let _ = epoll::wait(&self.fd, places, Some(&now));
        self.found.iter().map(|event| event.data.u64())
    }
}

impl std::fmt::Debug for RdmaWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RdmaWatch")
    }
}
