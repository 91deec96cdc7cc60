//! What a core holds at the moment, to look for leaks.

use ::io::ring::{Ring, SocketId};
use scsi::device::DeviceCounts;

use super::Core;
use super::connection::CoreConnection;
use crate::mailbox::Mailer;

/// How many of everything that comes and goes a core holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Connections in any phase, those among them whose tasks are still ending.
    pub connections: usize,
    /// Connections that have not logged in, as core 0 counts them.
    pub logins: usize,
    /// Logins that wait for the end of a session.
    pub waiting: usize,
    /// Sessions in the registry of core 0.
    pub sessions: usize,
    /// Sessions that have a core.
    pub places: usize,
    /// A change of what is served is being made, or waits.
    pub is_changing: bool,
    /// Owners of units that are in the middle of something.
    pub busy_owners: usize,
    /// Bytes received that no machine has taken.
    pub early: usize,
    /// PDUs that sessions have not sent.
    pub queued: usize,
    /// What the device server holds.
    pub device: DeviceCounts,
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// What it holds now.
    #[must_use]
    pub fn census(&self) -> Census {
        let mut census = Census {
            connections: self.connections.iter().count(),
            queued: self.connections.iter().map(CoreConnection::queued).sum(),
            early: self.connections.iter().map(|one| one.early.len()).sum(),
            device: self.device.counts(),
            ..Census::default()
        };
        if let Some(control) = &self.control {
            census.logins = control.logins.len() + control.device_logins.len();
            census.waiting = control.waiting.len();
            census.sessions = control.registry.len();
            census.places = control.balancer.sessions();
            census.is_changing = !control.changes.is_idle();
            census.busy_owners = control.units().filter(|unit| !unit.owner.is_idle()).count();
        }
        census
    }

    /// Bytes received by a socket that its machine has not taken.
    #[must_use]
    pub fn early_bytes(&self, socket: SocketId) -> usize {
        let mut here = self.connections.iter();
        let connection = here.find(|connection| connection.socket == Some(socket));
        connection.map_or(0, |connection| connection.early.len())
    }
}
