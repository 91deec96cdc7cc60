//! A session of iSCSI, and what carries it: TCP alone, or iSER.
//!
//! Over iSER a queue pair stands between the session and the wire: of software iWARP on a socket
//! (`session/iwarp.rs`), or of a device (`session/device.rs`).

mod device;
mod iwarp;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::rdma::RdmaConnected;
use block::lease::BlockLease;
use iscsi::initiator::config::{InitiatorConfig, Misconfigured};
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{
    ClientCommand, Initiator, InitiatorEvent, IscsiRefusal, IscsiRefused, LoginOutcome,
    RestingSession,
};
use runtime::batch::BatchSink;
use scsi::medium::Now;

use self::device::DeviceSession;
pub(super) use self::device::{DeviceFacts, DeviceFailure, connect_options};
pub(super) use self::iwarp::{IwarpConnection, IwarpFacts};
use self::iwarp::{IwarpSession, RestingIwarp};

/// A session and its carrier.
#[expect(clippy::large_enum_variant, reason = "it stands in a box of its own")]
pub(super) enum ClientSession {
    Tcp(Initiator<BlockLease>),
    Iwarp(Box<IwarpSession>),
    Device(Box<DeviceSession>),
}

/// What is told of a queue pair.
pub(super) enum QueuePairFacts {
    Iwarp(IwarpFacts),
    Device(DeviceFacts),
}

/// What does not depend on the transport.
macro_rules! each {
    ($self:expr, $session:ident => $call:expr) => {
        match $self {
            ClientSession::Tcp($session) => $call,
            ClientSession::Iwarp(over) => {
                let $session = &mut over.initiator;
                $call
            }
            ClientSession::Device(over) => {
                let $session = &mut over.initiator;
                $call
            }
        }
    };
}

/// The same for what only looks.
macro_rules! each_ref {
    ($self:expr, $session:ident => $call:expr) => {
        match $self {
            ClientSession::Tcp($session) => $call,
            ClientSession::Iwarp(over) => {
                let $session = &over.initiator;
                $call
            }
            ClientSession::Device(over) => {
                let $session = &over.initiator;
                $call
            }
        }
    };
}

impl ClientSession {
    /// A session on a connection of TCP that was just made.
    pub(super) fn new(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
        iwarp: Option<IwarpConnection>,
    ) -> Result<Self, Misconfigured> {
        match iwarp {
            None => Initiator::new(config, now, random).map(Self::Tcp),
            Some(connection) => {
                let session = IwarpSession::new(config, now, random, connection)?;
                Ok(Self::Iwarp(Box::new(session)))
            }
        }
    }

    /// A session on a connection of a device that was just made.
    pub(super) fn over_device(
        config: &InitiatorConfig,
        now: Now,
        random: [u8; 37],
        connected: RdmaConnected,
    ) -> Result<Self, Misconfigured> {
        let session = DeviceSession::new(config, now, random, connected)?;
        Ok(Self::Device(Box::new(session)))
    }

    /// Takes bytes, as many as can be used now; of a device what it has done.
    pub(super) fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        match self {
            Self::Tcp(session) => session.receive(now, bytes),
            Self::Iwarp(over) => over.receive(now, bytes),
            Self::Device(over) => {
                over.receive(now);
                bytes.len()
            }
        }
    }

    /// Whether something has come, other than bytes.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Iwarp(over) => over.has_more(),
            Self::Device(over) => over.has_more(),
        }
    }

    pub(super) fn transmit(&mut self, out: &mut BatchSink<'_>) {
        match self {
            Self::Tcp(session) => {
                session.transmit(out);
            }
            Self::Iwarp(over) => over.transmit(out),
            Self::Device(over) => over.transmit(),
        }
    }

    /// What is to leave before the connection is closed: why the queue pair has ended.
    pub(super) fn transmit_end(&mut self, out: &mut BatchSink<'_>) {
        if let Self::Iwarp(over) = self {
            over.transmit_end(out);
        }
    }

    /// That of a device, for what sockets do not have.
    pub(super) fn device(&mut self) -> Option<&mut DeviceSession> {
        match self {
            Self::Device(over) => Some(over),
            Self::Tcp(_) | Self::Iwarp(_) => None,
        }
    }

    /// Why a session over a device has ended so, and on which device.
    pub(super) fn device_failure(&self, end: &SessionEnd) -> Option<(String, DeviceFailure)> {
        match self {
            Self::Device(over) => Some((over.facts().device, over.failure(end)?)),
            Self::Tcp(_) | Self::Iwarp(_) => None,
        }
    }

    pub(super) fn outcome(&self) -> Option<&LoginOutcome> {
        each_ref!(self, session => session.outcome())
    }

    /// What became of the queue pair, once there is one.
    pub(super) fn queue_pair(&self) -> Option<QueuePairFacts> {
        match self {
            Self::Tcp(_) => None,
            Self::Iwarp(over) => over.facts().map(QueuePairFacts::Iwarp),
            Self::Device(over) => Some(QueuePairFacts::Device(over.facts())),
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        each_ref!(self, session => session.is_stalled())
    }

    pub(super) fn room(&self) -> usize {
        each_ref!(self, session => session.room())
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        match self {
            Self::Tcp(session) => session.next_deadline(),
            Self::Iwarp(over) => over.next_deadline(),
            Self::Device(over) => over.initiator.next_deadline(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<InitiatorEvent<BlockLease>> {
        match self {
            Self::Tcp(session) => session.poll(),
            Self::Iwarp(over) => over.initiator.poll(),
            Self::Device(over) => over.poll(),
        }
    }

    pub(super) fn execute(
        &mut self,
        now: Now,
        command: ClientCommand<BlockLease>,
    ) -> Result<(), IscsiRefused<BlockLease>> {
        each!(self, session => session.execute(now, command))
    }

    pub(super) fn send_targets(&mut self, now: Now, of: &str) -> Result<(), IscsiRefusal> {
        each!(self, session => session.send_targets(now, of))
    }

    pub(super) fn logout(&mut self, now: Now) -> Result<(), IscsiRefusal> {
        each!(self, session => session.logout(now))
    }

    pub(super) fn give_up(&mut self) {
        each!(self, session => session.give_up());
    }

    pub(super) fn expire(&mut self, now: Now) {
        match self {
            Self::Tcp(session) => session.expire(now),
            Self::Iwarp(over) => over.expire(now),
            Self::Device(over) => over.expire(now),
        }
    }

    pub(super) fn lost(&mut self) {
        match self {
            Self::Tcp(session) => session.lost(),
            Self::Iwarp(over) => over.lost(),
            Self::Device(over) => over.initiator.lost(),
        }
    }

    /// Lays it down, if nothing is in flight; else gives it back. One over a device is given back
    /// in any case: its memory is bound to its core, so another core logs in anew.
    pub(super) fn rest(self) -> Result<RestingClientSession, Box<Self>> {
        match self {
            Self::Tcp(session) => {
                let resting = session.rest().map(RestingClientSession::Tcp);
                resting.map_err(|session| Box::new(Self::Tcp(*session)))
            }
            Self::Iwarp(over) => over.rest(),
            Self::Device(_) => Err(Box::new(self)),
        }
    }
}

/// A session between two holders, so that a target sees one login of whoever opens a volume and
/// then uses it. Nothing answers its pings meanwhile, so it does not last long.
#[derive(Debug)]
pub(super) struct RestingConnection {
    pub(super) socket: OwnedFd,
    pub(super) session: RestingClientSession,
    pub(super) since: Instant,
}

/// Targets give up a session that is silent after 15 s or more.
const LASTS: Duration = Duration::from_secs(10);

impl RestingConnection {
    /// Whether the target may have given it up. A new login replaces it then.
    pub(super) fn is_stale(&self) -> bool {
        self.since.elapsed() > LASTS
    }
}

/// The session of that.
#[derive(Debug)]
pub(super) enum RestingClientSession {
    Tcp(RestingSession),
    Iwarp(RestingIwarp),
}

impl RestingClientSession {
    pub(super) fn resume(self, now: Now) -> ClientSession {
        match self {
            Self::Tcp(session) => ClientSession::Tcp(Initiator::resume(session, now)),
            Self::Iwarp(resting) => {
                let session = IwarpSession::resume(resting, now);
                ClientSession::Iwarp(Box::new(session))
            }
        }
    }
}
