//! What a device tells about itself, beside its connections.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use super::channel::{self, AllOf};
use super::domain::RdmaDomain;
use super::sys::verbs::{
    IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR,
    IBV_EVENT_QP_FATAL, IbvAsyncEvent,
};

/// What happened to a device, in words for a log: connections that are hit tell so themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RdmaDeviceEvent {
    /// A port has its link.
    #[error("a port has its link (IBV_EVENT_PORT_ACTIVE)")]
    PortUp,
    /// A port has lost its link.
    #[error("a port has lost its link (IBV_EVENT_PORT_ERR)")]
    PortDown,
    /// The device is broken, or was taken away.
    #[error("it is broken, or was taken away (IBV_EVENT_DEVICE_FATAL)")]
    Broken,
    /// A queue of one connection is broken.
    #[error("a queue of a connection is broken")]
    QueueBroken,
    /// Anything else, by its number in `enum ibv_event_type`.
    #[error("ibv_event_type {0}")]
    Other(i32),
}

/// The events of one device. One of these a process and device is enough; without it the kernel
/// keeps a few, and nothing else is lost.
pub struct RdmaDeviceEvents {
    domain: Arc<RdmaDomain>,
    fd: AllOf,
}

impl RdmaDeviceEvents {
    /// Those of the device of a domain.
    ///
    /// # Errors
    ///
    /// Of fcntl and epoll.
    pub fn new(domain: &Arc<RdmaDomain>) -> io::Result<Self> {
        // SAFETY: an open context has this descriptor; the domain, which is held, keeps it open.
        let events = unsafe { BorrowedFd::borrow_raw((*domain.context()).async_fd) };
        channel::unblock(events)?;
        Ok(Self {
            domain: Arc::clone(domain),
            fd: AllOf::new(domain.library(), &[events])?,
        })
    }

    /// The device.
    #[must_use]
    pub fn domain(&self) -> &Arc<RdmaDomain> {
        &self.domain
    }

    /// Readable when there is an event.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        self.fd.descriptor()
    }

    /// The next event, if there is one.
    pub fn poll(&mut self) -> Option<RdmaDeviceEvent> {
        let verbs = &self.domain.library().verbs;
        let mut event = IbvAsyncEvent {
            element: ptr::null_mut(),
            event_type: 0,
        };
        // SAFETY: an open context, and a place of ours.
        if unsafe { (verbs.get_async_event)(self.domain.context(), &mut event) } != 0 {
            return None;
        }
        // SAFETY: the event that was got. At once: to destroy what it is about waits for that.
        unsafe { (verbs.ack_async_event)(&mut event) };
        Some(match event.event_type {
            IBV_EVENT_PORT_ACTIVE => RdmaDeviceEvent::PortUp,
            IBV_EVENT_PORT_ERR => RdmaDeviceEvent::PortDown,
            IBV_EVENT_DEVICE_FATAL => RdmaDeviceEvent::Broken,
            IBV_EVENT_CQ_ERR | IBV_EVENT_QP_FATAL => RdmaDeviceEvent::QueueBroken,
            other => RdmaDeviceEvent::Other(other),
        })
    }
}

impl std::fmt::Debug for RdmaDeviceEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaDeviceEvents({:?})", self.domain)
    }
}
