//! One connection, from accept until its last task has ended: how far it got, and what may be done
//! with it.

use std::net::IpAddr;

use ::io::rdma::RdmaPair;
use ::io::ring::{SendBatch, SocketId};
use runtime::batch::BatchSink;
use scsi::medium::Now;

use super::event_key::SlotKey;
use super::rdma_carrier::{DeviceEnd, DeviceLogin};
use super::timers::ArmedTimer;
use super::transport::{CoreLogin, CoreSession, RdmaSession};

/// One connection.
pub(super) struct CoreConnection {
    pub(super) key: SlotKey,
    pub(super) peer: IpAddr,
    pub(super) phase: ConnectionPhase,
    /// `None` once closed, and over a device.
    pub(super) socket: Option<SocketId>,
    /// It is a session over iSER, or has a queue pair of a device. TCP is not to pay for a look
    /// into it.
    is_rdma: bool,
    /// It has a queue pair of a device that is polled each turn.
    pub(super) is_awake: bool,
    /// A batch is on its way.
    pub(super) sending: bool,
    /// A receive is in flight.
    pub(super) receiving: bool,
    /// Bytes received that could not be used yet.
    pub(super) early: Vec<u8>,
    /// It is to be closed (or moved) when everything queued has been sent; closed at this instant.
    pub(super) closing: Option<Now>,
    /// It is on the list of connections that may have something to send.
    pub(super) dirty: bool,
    /// The instant for which it is in the heap of timers.
    pub(super) timer: ArmedTimer,
}

/// How far a connection got.
pub(super) enum ConnectionPhase {
    /// Not logged in.
    Login(Box<CoreLogin>),
    /// Logged in, waiting for its last send to come back before it moves to its session's core.
    Moving(Box<CoreLogin>),
    /// In full-feature phase.
    Session {
        session: Box<CoreSession>,
        tsih: u16,
        nexus: NexusState,
    },
    /// The socket is gone; its tasks are coming to their end.
    Ending { tsih: u16 },
}

/// Whether the device server knows the nexus of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NexusState {
    /// It does.
    Yes,
    /// It is letting it go. Until then its initiator, which has logged out, gets no answer: what
    /// it does next, under another name even, must find nothing of this nexus.
    Leaving,
    /// It never did, as in discovery, or has let it go.
    No,
}

impl CoreConnection {
    /// It begins.
    pub(super) fn new(
        key: SlotKey,
        peer: IpAddr,
        socket: Option<SocketId>,
        phase: ConnectionPhase,
    ) -> Self {
        let is_rdma = match &phase {
            ConnectionPhase::Session { session, .. } => matches!(**session, CoreSession::Rdma(_)),
            _ => socket.is_none(),
        };
        Self {
            key,
            peer,
            is_rdma,
            is_awake: false,
            phase,
            socket,
            sending: false,
            receiving: false,
            early: Vec::new(),
            closing: None,
            dirty: false,
            timer: ArmedTimer::default(),
        }
    }

    /// What a login that failed said it was.
    pub(super) fn claimed(&self) -> Option<&str> {
        match &self.phase {
            ConnectionPhase::Login(login) => login.login.claimed(),
            _ => None,
        }
    }

    pub(super) const fn is_rdma(&self) -> bool {
        self.is_rdma
    }

    /// Whether its session has something to receive, other than bytes.
    pub(super) fn has_more(&self) -> bool {
        self.is_rdma && self.session().is_some_and(CoreSession::has_more)
    }

    /// Over iSER, whether its session takes nothing more for now.
    pub(super) fn rdma_stall(&self) -> Option<bool> {
        let is_stalled = || self.session().is_some_and(CoreSession::is_stalled);
        self.is_rdma.then(is_stalled)
    }

    #[cold]
    fn session(&self) -> Option<&CoreSession> {
        match &self.phase {
            ConnectionPhase::Session { session, .. } => Some(session),
            _ => None,
        }
    }

    /// Its queue pair, if it has one of a device.
    pub(super) fn pair(&self) -> Option<&RdmaPair> {
        match &self.phase {
            ConnectionPhase::Login(login) | ConnectionPhase::Moving(login) => {
                login.device().map(DeviceLogin::pair)
            }
            ConnectionPhase::Session { session, .. } => match &**session {
                CoreSession::Rdma(RdmaSession::Device(over)) => Some(over.pair()),
                _ => None,
            },
            ConnectionPhase::Ending { .. } => None,
        }
    }

    /// The same, to act on it.
    pub(super) fn device(&mut self) -> Option<DeviceEnd<'_>> {
        match &mut self.phase {
            ConnectionPhase::Login(login) | ConnectionPhase::Moving(login) => {
                let (device, login) = login.device_mut()?;
                Some(DeviceEnd::Login(device, login))
            }
            ConnectionPhase::Session { session, .. } => match &mut **session {
                CoreSession::Rdma(RdmaSession::Device(over)) => Some(DeviceEnd::Session(over)),
                _ => None,
            },
            ConnectionPhase::Ending { .. } => None,
        }
    }

    /// PDUs that its session has not sent.
    pub(super) fn queued(&self) -> usize {
        match &self.phase {
            ConnectionPhase::Session { session, .. } => session.queued(),
            _ => 0,
        }
    }

    pub(super) fn transmit(&mut self, batch: &mut SendBatch) {
        match &mut self.phase {
            ConnectionPhase::Login(login) | ConnectionPhase::Moving(login) => {
                login.transmit(&mut BatchSink(batch));
            }
            ConnectionPhase::Session { session, .. } => session.transmit(&mut BatchSink(batch)),
            ConnectionPhase::Ending { .. } => {}
        }
    }

    /// Tells a session that all has left, if nothing else waits to be sent and nothing waits for
    /// that. Otherwise the next flush finds out, over iSER always.
    pub(super) fn rests(&mut self) -> bool {
        let ConnectionPhase::Session {
            session,
            nexus: NexusState::Yes,
            ..
        } = &mut self.phase
        else {
            return false;
        };
        match &mut **session {
            CoreSession::Tcp(session) if self.closing.is_none() && session.queued() == 0 => {
                session.all_left();
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        let leaving = NexusState::Leaving;
        matches!(self.phase, ConnectionPhase::Session { nexus, .. } if nexus == leaving)
    }

    /// Whether it is left to the peer to close it first: over iSER, after a logout, and where there
    /// was never a nexus.
    pub(super) fn lets_peer_close(&self) -> bool {
        match &self.phase {
            ConnectionPhase::Session { session, nexus, .. } => {
                matches!(**session, CoreSession::Rdma(_)) && *nexus == NexusState::No
            }
            _ => false,
        }
    }

    /// Bytes of Data-In that wait, of a session that the device server knows.
    pub(super) fn data_in_queued(&self) -> Option<usize> {
        match &self.phase {
            ConnectionPhase::Session {
                session,
                nexus: NexusState::Yes,
                ..
            } => Some(session.data_in_queued()),
            _ => None,
        }
    }

    /// Whether nothing that comes matters any more.
    pub(super) fn is_deaf(&self) -> bool {
        self.closing.is_some() && !self.hears_on()
    }

    /// Whether what comes matters before it closes: to the session that is to be, or as what is to
    /// be sent waits for RDMA Reads to be over.
    #[cold]
    fn hears_on(&self) -> bool {
        match &self.phase {
            ConnectionPhase::Session { session, .. } => {
                matches!(**session, CoreSession::Rdma(_)) && session.queued() > 0
            }
            ConnectionPhase::Moving(_) => true,
            _ => false,
        }
    }

    /// Where bytes are to be received now, which counts as begun; `None` if nowhere.
    #[inline]
    pub(super) fn begin_to_receive(&mut self) -> Option<SocketId> {
        let socket = self.socket?;
        if self.receiving || self.is_deaf() || !self.wants_bytes() {
            return None;
        }
        self.receiving = true;
        Some(socket)
    }

    fn wants_bytes(&self) -> bool {
        match &self.phase {
            // A login that waits for an older session to end may be admitted at any moment, and
            // moves then: nothing may be in flight.
            ConnectionPhase::Login(login) => self.early.is_empty() && !login.login.is_asking(),
            ConnectionPhase::Session { session, .. } => !session.is_stalled(),
            ConnectionPhase::Moving(_) | ConnectionPhase::Ending { .. } => false,
        }
    }
}

impl ConnectionPhase {
    /// The TSIH, once there is one.
    pub(super) fn tsih(&self) -> Option<u16> {
        match self {
            Self::Login(_) => None,
            Self::Moving(login) => login.login.outcome().map(|session| session.tsih),
            Self::Session { tsih, .. } | Self::Ending { tsih } => Some(*tsih),
        }
    }
}
